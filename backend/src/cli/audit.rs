//! `countersign audit …`: verifies the audit log in the database, or an export of it without database or server. Works
//! beside a running server.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use shared::seal::{SealCheck, Tampering};

use super::{print, storage_of_server};
use crate::app;
use crate::archive::{self, ArchiveError, Folder};
use crate::audit::{FileCheck, Head, HeadFile, KeyError, SealKey, Seals, Trusted, verify, verify_file};
use crate::clock::SharedClock;
use crate::config::{Storage, StorageArgs};
use crate::store::{Change, Operation};

/// The commands for the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check every entry against the seals; report the first that was changed, removed, added or moved, and exit with 1
    Verify {
        /// Export to verify instead of the database, as JSON lines
        #[arg(long, value_name = "FILE", conflicts_with = "archive")]
        export: Option<PathBuf>,
        /// Key to trust: ed25519:…, or a file of keys; may be repeated [default: seal.pub beside the private key]
        #[arg(long = "public-key", value_name = "KEY")]
        public_keys: Vec<String>,
        /// Head that `countersign audit head` printed: also proves that nothing up to it was cut off or rewritten
        #[arg(long, value_name = "HEAD")]
        expect: Option<Head>,
        /// Do not expect the head that is stored beside the key, which is newer than a backup
        #[arg(long)]
        ignore_head: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Accept the current head of the audit log in place of the one stored beside the key, for example after restoring
    /// a backup, and record this in the audit log. Check it first with `countersign audit verify --ignore-head`
    Accept {
        /// Current head of the audit log, as `countersign audit head` prints it; `none` if nothing is sealed
        head: String,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Print the newest seal as <number>:<SHA-256>: keep it where the database's owner cannot change it
    Head {
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Print the public key of the seals
    Key {
        /// Create a new key; the old one stays trusted. Restart the servers afterwards
        #[arg(long)]
        new: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

pub async fn run(command: AuditCommand) -> anyhow::Result<()> {
    let clock = app::system_clock();
    match command {
        AuditCommand::Verify { export: Some(path), public_keys, expect, ignore_head: _, storage } => {
            // Named keys are all that it needs, so it works without settings and creates no data folder.
            let trusted = if public_keys.is_empty() {
                trusted(&Storage::resolve(&storage.with_usual_archive())?.0, &[])?
            } else {
                Trusted::named(&public_keys)?
            };
            verify_export(&path, &trusted, expect.as_ref())?;
        }
        AuditCommand::Verify { export: None, public_keys, expect, ignore_head, storage } => {
            let with_files = storage.archive.is_some();
            let storage = Storage::resolve(&storage.with_usual_archive())?.0;
            let trusted = trusted(&storage, &public_keys)?;
            let kept = if ignore_head { None } else { HeadFile::at(storage.seal_head.clone()).read()? };
            let files = with_files.then(|| Folder::at(storage.archive.clone()));
            verify_database(&storage, clock, &trusted, expect, kept, files).await?;
        }
        AuditCommand::Accept { head, storage } => accept(&head, &storage_of_server(&storage)?).await?,
        AuditCommand::Head { storage } => {
            let storage = storage_of_server(&storage)?;
            let trusted = Trusted::beside(&storage.seal_key)?;
            let store = app::open_to_read(&storage, clock).await?;
            let head = Seals::new(trusted, HeadFile::at(storage.seal_head.clone())).head(&store).await;
            store.close().await;
            match head? {
                Some(head) => print(&head.head),
                None => {
                    bail!("no seal was made with a key in {}", storage.seal_key.with_extension("pub").display())
                }
            }
        }
        AuditCommand::Key { new, storage } => {
            let path = Storage::resolve(&storage)?.0.seal_key;
            // In a folder that does not exist, a new key would replace none.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let key = if new && folder.is_dir() { SealKey::renew(&path, &*clock)?.0 } else { existing_key(&path)? };
            print(&key.public().to_string());
        }
    }
    Ok(())
}

/// Reads the key. Fails if there is none: a key that is created here would have sealed nothing.
fn existing_key(path: &Path) -> anyhow::Result<SealKey> {
    SealKey::existing(path)?.with_context(|| {
        format!(
            "there is no key of the audit log in {}: name the server's folder (--data), its settings (--config) or the \
             file (--seal-key); a server creates its key when it first starts",
            path.display()
        )
    })
}

/// Verifies an export, without the database.
fn verify_export(path: &Path, trusted: &Trusted, expect: Option<&Head>) -> anyhow::Result<()> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("{shown} cannot be read"))?;
    let checked = verify_file(BufReader::new(file), trusted, expect);
    let FileCheck { check, part } = checked.with_context(|| format!("{shown} cannot be read"))?;
    if check.valid && check.entries == 0 {
        bail!("{shown} has no entries and proves nothing; was the export refused?");
    }
    // Anyone can write such a file. In a database, entries that wait for their seal are authenticated.
    if check.valid && check.sealed == 0 {
        bail!(
            "{shown} proves nothing: none of its {} entries has a seal (`sealed` and `seal` are missing from the lines); \
             entries are sealed within seconds, so export it again as JSON lines",
            check.entries
        );
    }
    report(&check)?;
    if check.entries > check.sealed {
        print("Entries without a seal are not proven: anyone could have added them to the file.");
    }
    if part {
        print("This is a part of the audit log: it cannot be proven that no entry is missing from it.");
        if expect.is_some() {
            bail!("a part of the audit log proves nothing about its end; export it whole, without a filter");
        }
    }
    Ok(())
}

/// Verifies the audit log in the database, and the archive files in the folder, if one is given. `kept` is the head in the file
/// beside the key, if it counts.
async fn verify_database(
    storage: &Storage,
    clock: SharedClock,
    trusted: &Trusted,
    expect: Option<Head>,
    kept: Option<Head>,
    files: Option<Folder>,
) -> anyhow::Result<()> {
    let expected: Vec<Head> = expect.into_iter().chain(kept.clone()).collect();
    let store = app::open_to_read(storage, clock).await?;
    let with_files = files.is_some();
    let checked = match &files {
        Some(folder) => archive::verify(&store, trusted, &expected, folder).await,
        None => verify(&store, trusted, &expected).await.map_err(ArchiveError::from),
    };
    store.close().await;
    let checked = checked?;
    let is_behind = |kept: &Head| {
        let bad = checked.first_bad.as_ref();
        bad.is_some_and(|bad| bad.what == Tampering::Cut && bad.seal == Some(kept.number))
    };
    if let Some(kept) = kept.filter(is_behind) {
        let file = storage.seal_head.display();
        print(&format!("expected head {kept} from {file}; for an older backup, use --ignore-head"));
    }
    report(&checked)?;
    if checked.erased > 0 {
        print(&format!("a person was erased from {} of them, as the audit log records", checked.erased));
    }
    match (checked.archived, with_files) {
        (0, _) => {}
        (archived, true) => print(&format!("{archived} of them are archived, and are in the files")),
        (archived, false) => print(&format!(
            "{archived} of them are archived, as the audit log records; use --archive to check the files"
        )),
    }
    Ok(())
}

/// Replaces the stored head by `head`, and records this in the audit log. Fails if the audit log is not valid or does
/// not end with `head`.
async fn accept(head: &str, storage: &Storage) -> anyhow::Result<()> {
    storage.make_folder()?;
    let file = HeadFile::at(storage.seal_head.clone());
    file.check()?;
    let accepted: Option<Head> = match head {
        "none" => None,
        head => Some(head.parse().map_err(anyhow::Error::msg)?),
    };
    let (store, _, trusted) = app::open_to_write(storage, app::system_clock()).await?;
    let done = async {
        let check = verify(&store, &trusted, &[]).await?;
        report(&check)?;
        let found = check.head.as_deref().unwrap_or("none");
        if found != head {
            bail!("the audit log ends with {found}, not with {head}; nothing was changed");
        }
        let previous = file.read()?;
        if previous == accepted {
            print(&format!("{head} is already the stored head"));
            return Ok(());
        }
        let text = |head: &Option<Head>| head.as_ref().map(Head::to_string);
        let operation = Operation::AcceptHead { previous: text(&previous), head: text(&accepted) };
        store.commit(Change::by_server(operation)).await?;
        file.replace(accepted.as_ref())?;
        print(&format!("accepted {head} in place of {}", text(&previous).as_deref().unwrap_or("none")));
        Ok(())
    };
    let done = done.await;
    store.close().await;
    done
}

/// Returns the public keys to trust: the named ones, or else those beside the private key.
fn trusted(storage: &Storage, named: &[String]) -> Result<Trusted, KeyError> {
    if !named.is_empty() {
        return Trusted::named(named);
    }
    let trusted = Trusted::beside(&storage.seal_key)?;
    // Without a key every seal would look forged.
    if trusted.is_empty() {
        return Err(KeyError::NothingTrusted(storage.seal_key.with_extension("pub").display().to_string()));
    }
    Ok(trusted)
}

/// Prints the result of a verification. Fails if the audit log is not valid.
fn report(check: &SealCheck) -> anyhow::Result<()> {
    let waiting = check.entries - check.sealed;
    match (&check.first_bad, &check.head) {
        (Some(bad), _) => {
            print(&format!("{} entries are valid up to there", check.sealed));
            bail!("the audit log is not valid: {}", bad.message);
        }
        (None, Some(head)) => {
            print(&format!("{} entries are valid; {waiting} are not sealed yet", check.sealed));
            print(&format!("head {head}"));
        }
        (None, None) => print(&format!("nothing is sealed yet; {waiting} entries are waiting")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_without_seals_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (_, trusted) = SealKey::open(&folder.path().join("seal.key"), &*app::system_clock()).unwrap();
        let path = folder.path().join("audit.jsonl");
        let invented = r#"{"cursor":"1","kind":"user.created","at":"2026-01-02T03:04:05Z","data":{"username":"ada"}}"#;
        for (text, why) in
            [(String::new(), "has no entries"), (format!("{invented}\n{invented}\n"), "of its 2 entries")]
        {
            std::fs::write(&path, text).unwrap();
            let error = verify_export(&path, &trusted, None).unwrap_err().to_string();
            assert!(error.contains("proves nothing") && error.contains(why), "{error}");
        }
    }

    #[tokio::test]
    async fn an_export_is_verified_with_the_named_keys_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (key, _) = SealKey::open(&folder.path().join("seal.key"), &*app::system_clock()).unwrap();
        let (export, data) = (folder.path().join("audit.jsonl"), folder.path().join("data"));
        std::fs::write(&export, "").unwrap();
        let command = AuditCommand::Verify {
            export: Some(export),
            public_keys: vec![key.public().to_string()],
            expect: None,
            ignore_head: false,
            storage: StorageArgs { data: Some(data.clone()), ..StorageArgs::default() },
        };
        let error = run(command).await.unwrap_err().to_string();
        assert!(error.contains("has no entries"), "{error}");
        assert!(!data.exists(), "a data folder was created");
    }

    #[tokio::test]
    async fn a_command_in_the_wrong_folder_creates_nothing_and_names_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let storage = || StorageArgs { data: Some(data.clone()), ..StorageArgs::default() };
        for command in [
            AuditCommand::Key { new: false, storage: storage() },
            AuditCommand::Key { new: true, storage: storage() },
            AuditCommand::Head { storage: storage() },
            AuditCommand::Accept { head: "none".to_owned(), storage: storage() },
        ] {
            let error = run(command).await.unwrap_err().to_string();
            assert!(error.contains("--data") && error.contains("--config"), "{error}");
            assert!(!data.exists(), "a data folder was created: {error}");
        }
    }

    #[test]
    fn a_key_is_never_created_to_be_printed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seal.key");
        let error = existing_key(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("seal.key") && error.contains("--data"), "{error}");
        assert!(!path.exists());
    }
}
