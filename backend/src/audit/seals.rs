//! What a process knows about the seals: the trusted keys, and the head that is stored beside the key.

use std::sync::Arc;

use shared::seal::{SealCheck, SealHead, Tampering};

use super::head_file::{HeadError, HeadFile};
use super::key::Trusted;
use super::seal::{Head, Opened};
use super::verify::{SEALS, bad, found_bad, verify};
use crate::store::{self, Store};

/// The trusted keys and the file of the head. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Seals {
    trusted: Arc<Trusted>,
    /// `None` in a process without a key.
    kept: Option<HeadFile>,
    /// Serialises checks, since each reads the whole log.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Seals {
    /// Creates the state from the trusted keys and the file of the newest head.
    pub fn new(trusted: Trusted, kept: HeadFile) -> Self {
        Self { trusted: Arc::new(trusted), kept: Some(kept), ..Self::default() }
    }

    /// Verifies the whole log, and that it continues the stored head.
    pub async fn check(&self, store: &Store) -> Result<SealCheck, store::Error> {
        let _turn = self.turn.lock().await;
        // The head is read before the seals, so seals that are added meanwhile follow it.
        match self.kept() {
            Ok(kept) => verify(store, &self.trusted, kept.as_slice()).await,
            // Without the head, a cut end cannot be detected.
            Err(error) => Ok(found_bad(None, bad(Tampering::Cut, error.to_string()))),
        }
    }

    /// Returns the newest seal, if there is one and a trusted key has signed it.
    pub async fn head(&self, store: &Store) -> Result<Option<SealHead>, store::Error> {
        let last = store.last_seal().await?.and_then(|stored| Opened::open(&stored, &self.trusted).ok());
        Ok(last.map(|last| SealHead {
            head: last.head().to_string(),
            sealed: last.sealed(),
            sealed_at: last.seal.sealed_at,
        }))
    }

    pub(super) fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    pub(super) fn kept(&self) -> Result<Option<Head>, HeadError> {
        self.kept.as_ref().map_or(Ok(None), HeadFile::read)
    }

    pub(super) async fn keep(&self, head: Head) -> Result<(), HeadError> {
        let Some(file) = self.kept.clone() else { return Ok(()) };
        // On a thread for blocking work, since it waits for the disk.
        let kept = tokio::task::spawn_blocking(move || file.advance(&head)).await;
        kept.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The process is ending. The next one stores the head.
            Err(_) => Ok(()),
        })
    }

    /// Checks that the newest seal continues the stored head. The inner error says why not.
    pub(super) async fn continues(
        &self,
        store: &Store,
        kept: &Head,
        newest: Option<&Opened>,
    ) -> Result<Result<(), String>, store::Error> {
        let Some(newest) = newest.filter(|newest| newest.seal.number >= kept.number) else {
            return Ok(Err(format!("the end of the audit log was cut off: seal {kept} existed and is missing")));
        };
        let mut last: Option<Opened> = None;
        loop {
            let after = last.as_ref().map_or(kept.number - 1, |last| last.seal.number);
            if after >= newest.seal.number {
                return Ok(Ok(()));
            }
            let seals = store.seals(after, SEALS).await?;
            if seals.is_empty() {
                return Ok(Err(format!("seal {} is gone", after + 1)));
            }
            for stored in seals {
                let opened = match Opened::open(&stored, &self.trusted) {
                    Ok(opened) => opened,
                    Err(why) => return Ok(Err(why)),
                };
                let follows = match &last {
                    Some(last) => opened.follows(Some(last)),
                    None if opened.head() == *kept => Ok(()),
                    None => Err(format!(
                        "seal {} is {}, but {kept} existed: the audit log was replaced",
                        kept.number,
                        opened.head()
                    )),
                };
                if follows.is_err() {
                    return Ok(follows);
                }
                last = Some(opened);
            }
        }
    }
}
