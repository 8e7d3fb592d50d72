//! `countersign audit …`: the proof that the record is what it was, at a terminal: against the database, or against an
//! export without either. Works beside a running server.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Subcommand;
use shared::seal::SealCheck;

use super::print;
use crate::app;
use crate::audit::{FileCheck, Head, KeyError, SealKey, Seals, Trusted, verify, verify_file};
use crate::config::{Storage, StorageArgs};

/// What can be done with the audit.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Holds every entry against the seals; names the first that was changed, removed, added or moved, and exits with 1
    Verify {
        /// The JSON lines of an export, to be verified by themselves, in place of the database
        #[arg(long, value_name = "FILE")]
        export: Option<PathBuf>,
        /// A key to trust: ed25519:…, or a file of them; may be said again [default: seal.pub beside the private key]
        #[arg(long = "public-key", value_name = "KEY")]
        public_keys: Vec<String>,
        /// A head that `countersign audit head` printed: also proves that nothing before it was cut or made anew
        #[arg(long, value_name = "HEAD")]
        expect: Option<Head>,
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
        AuditCommand::Verify { export: Some(path), public_keys, expect, storage } => {
            let trusted = trusted(&Storage::resolve(&storage)?.0, &public_keys)?;
            let shown = path.display();
            let file = File::open(&path).with_context(|| format!("{shown} cannot be read"))?;
            let checked = verify_file(BufReader::new(file), &trusted, expect.as_ref());
            let FileCheck { check, part } = checked.with_context(|| format!("{shown} cannot be read"))?;
            if check.entries == 0 {
                bail!("{shown} has no entries, and proves nothing; was the export refused?");
            }
            report(&check)?;
            if part {
                print("This is a part of the record: that no entry is missing in it cannot be told.");
                if expect.is_some() {
                    bail!("a part of the record proves nothing of its end; export all of it, without a filter");
                }
            }
        }
        AuditCommand::Verify { export: None, public_keys, expect, storage } => {
            let storage = Storage::resolve(&storage)?.0;
            let trusted = trusted(&storage, &public_keys)?;
            let store = app::open_store(&storage, clock).await?;
            let checked = verify(&store, &trusted, expect.as_ref()).await;
            store.close().await;
            report(&checked?)?;
        }
        AuditCommand::Head { storage } => {
            let storage = Storage::resolve(&storage)?.0;
            let trusted = Trusted::beside(&storage.seal_key)?;
            let store = app::open_store(&storage, clock).await?;
            let head = Seals::new(trusted).head(&store).await;
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
            bail!("the record does not hold: {}", bad.message);
        }
        (None, Some(head)) => {
            print(&format!("{} entries hold; {waiting} wait for their seal", check.sealed));
            print(&format!("head {head}"));
        }
        (None, None) => print(&format!("nothing is sealed yet; {waiting} entries wait for it")),
    }
    Ok(())
}
