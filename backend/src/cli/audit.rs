//! `countersign audit …`: the proof that the audit log is what it was, at a terminal: against the database, or against an
//! export without either. Works beside a running server.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Subcommand;
use shared::seal::{SealCheck, Tampering};

use super::print;
use crate::app;
use crate::archive::{self, ArchiveError, Folder};
use crate::audit::{FileCheck, Head, HeadFile, KeyError, SealKey, Seals, Trusted, verify, verify_file};
use crate::config::{Storage, StorageArgs};
use crate::store::{Change, Operation};

/// What can be done with the audit.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Holds every entry against the seals; names the first that was changed, removed, added or moved, and exits with 1
    Verify {
        /// The JSON lines of an export, to be verified by themselves, in place of the database
        #[arg(long, value_name = "FILE")]
        export: Option<PathBuf>,
        /// A key to trust: ed25519:…, or a file of them; may be repeated [default: seal.pub beside the private key]
        #[arg(long = "public-key", value_name = "KEY")]
        public_keys: Vec<String>,
        /// A head that `countersign audit head` printed: also proves that nothing before it was cut or made anew
        #[arg(long, value_name = "HEAD")]
        expect: Option<Head>,
        /// Also reads the files of the archive, and holds their entries against the seals [default folder:
        /// COUNTERSIGN_ARCHIVE, that of the settings file, or archive in the data folder]
        #[arg(long, value_name = "FOLDER", conflicts_with = "export")]
        #[expect(clippy::option_option, reason = "with or without a folder")]
        archive: Option<Option<PathBuf>>,
        /// Do not expect the head that is kept beside the key: a backup is older than it
        #[arg(long)]
        ignore_head: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Accepts that the audit log ends with another seal than the one that is kept beside the key, such as after a backup
    /// was restored, and writes that to the audit log. Look at it first: `countersign audit verify --ignore-head`
    Accept {
        /// The head that the audit log has now, as `countersign audit head` prints it; or none, where nothing is sealed
        head: String,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Prints the newest seal as <number>:<SHA-256>: keep it where the database's owner cannot change it
    Head {
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Prints the public key of the seals
    Key {
        /// Puts a new key in the place of the one that is there, which stays trusted; start the servers again
        #[arg(long)]
        new: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

/// Carries the command out.
pub async fn run(command: AuditCommand) -> anyhow::Result<()> {
    let clock = app::system_clock();
    match command {
        AuditCommand::Verify { export: Some(path), public_keys, expect, archive: _, ignore_head: _, storage } => {
            let trusted = trusted(&Storage::resolve(&storage)?.0, &public_keys)?;
            let shown = path.display();
            let file = File::open(&path).with_context(|| format!("{shown} cannot be read"))?;
            let checked = verify_file(BufReader::new(file), &trusted, expect.as_ref());
            let FileCheck { check, part } = checked.with_context(|| format!("{shown} cannot be read"))?;
            if check.valid && check.entries == 0 {
                bail!("{shown} has no entries, and proves nothing; was the export refused?");
            }
            report(&check)?;
            if part {
                print("This is a part of the audit log: that no entry is missing in it cannot be told.");
                if expect.is_some() {
                    bail!("a part of the audit log proves nothing of its end; export all of it, without a filter");
                }
            }
        }
        AuditCommand::Verify { export: None, public_keys, expect, archive, ignore_head, storage } => {
            let storage = Storage::resolve(&storage)?.0;
            let trusted = trusted(&storage, &public_keys)?;
            let kept = if ignore_head { None } else { HeadFile::at(storage.seal_head.clone()).read()? };
            let expected: Vec<Head> = expect.into_iter().chain(kept.clone()).collect();
            let store = app::open_to_read(&storage, clock).await?;
            let with_files = archive.is_some();
            let checked = match archive {
                Some(folder) => {
                    let folder = Folder::at(folder.unwrap_or_else(|| storage.archive.clone()));
                    archive::verify(&store, &trusted, &expected, &folder).await
                }
                None => verify(&store, &trusted, &expected).await.map_err(ArchiveError::from),
            };
            store.close().await;
            let checked = checked?;
            let is_behind = |kept: &Head| {
                let bad = checked.first_bad.as_ref();
                bad.is_some_and(|bad| bad.what == Tampering::Cut && bad.seal == Some(kept.number))
            };
            if let Some(kept) = kept.filter(is_behind) {
                let file = storage.seal_head.display();
                print(&format!("expected {kept}, which {file} keeps (a backup is older: --ignore-head)"));
            }
            report(&checked)?;
            if checked.erased > 0 {
                print(&format!("{} of them had a person erased from them, as the audit log says", checked.erased));
            }
            match (checked.archived, with_files) {
                (0, _) => {}
                (archived, true) => print(&format!("{archived} of them are archived, and stand in the files")),
                (archived, false) => print(&format!(
                    "{archived} of them are archived, as the audit log says; --archive looks into the files"
                )),
            }
        }
        AuditCommand::Accept { head, storage } => accept(&head, &Storage::resolve(&storage)?.0).await?,
        AuditCommand::Head { storage } => {
            let storage = Storage::resolve(&storage)?.0;
            let trusted = Trusted::beside(&storage.seal_key)?;
            let store = app::open_to_read(&storage, clock).await?;
            let head = Seals::new(trusted, HeadFile::at(storage.seal_head.clone())).head(&store).await;
            store.close().await;
            match head? {
                Some(head) => print(&head.head),
                None => {
                    bail!("there is no seal that a key in {} made", storage.seal_key.with_extension("pub").display())
                }
            }
        }
        AuditCommand::Key { new, storage } => {
            let path = Storage::resolve(&storage)?.0.seal_key;
            let (key, _) = if new { SealKey::renew(&path, &*clock)? } else { SealKey::open(&path, &*clock)? };
            print(&key.public().to_string());
        }
    }
    Ok(())
}

/// Keeps the head that the audit log has now, whatever was kept before.
async fn accept(head: &str, storage: &Storage) -> anyhow::Result<()> {
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
            bail!("the audit log ends with {found}, not with {head}: nothing was changed");
        }
        let previous = file.read()?;
        if previous == accepted {
            print(&format!("{head} is the head that is kept already"));
            return Ok(());
        }
        let text = |head: &Option<Head>| head.as_ref().map(Head::to_string);
        let operation = Operation::AcceptHead { previous: text(&previous), head: text(&accepted) };
        store.commit(Change::by_server(operation)).await?;
        file.replace(accepted.as_ref())?;
        print(&format!("accepted {head} in the place of {}", text(&previous).as_deref().unwrap_or("none")));
        Ok(())
    };
    let done = done.await;
    store.close().await;
    done
}

/// The keys that are named, or those beside the private one.
fn trusted(storage: &Storage, named: &[String]) -> Result<Trusted, KeyError> {
    if named.is_empty() { Trusted::beside(&storage.seal_key) } else { Trusted::named(named) }
}

/// Says what was found; what does not hold is the command's failure.
fn report(check: &SealCheck) -> anyhow::Result<()> {
    let waiting = check.entries - check.sealed;
    match (&check.first_bad, &check.head) {
        (Some(bad), _) => {
            print(&format!("{} entries hold up to there", check.sealed));
            bail!("the audit log does not hold: {}", bad.message);
        }
        (None, Some(head)) => {
            print(&format!("{} entries hold; {waiting} wait for their seal", check.sealed));
            print(&format!("head {head}"));
        }
        (None, None) => print(&format!("nothing is sealed yet; {waiting} entries wait for it")),
    }
    Ok(())
}
