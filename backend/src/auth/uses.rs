//! When sessions and tokens were last used: collected in memory, and written together every few seconds. After a
//! restart, all consoles are back within a moment, and each write of its own would be a transaction of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;

use crate::store::{CredentialUse, Store};

/// How long uses are collected.
const GATHER: Duration = Duration::from_secs(2);
/// The most uses that wait to be written. One more is not noted now, but when the credential is used again.
const MAX_WAITING: usize = 10_000;

/// The uses that are not written yet, by the SHA-256 of the secret. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Uses(Arc<Mutex<BTreeMap<[u8; 32], CredentialUse>>>);

impl Uses {
    /// Notes a use. The first one starts the task that writes it together with those that follow.
    pub fn note(&self, store: &Store, digest: [u8; 32], used: CredentialUse) {
        let mut waiting = self.0.lock();
        if waiting.len() >= MAX_WAITING {
            return;
        }
        let is_first = waiting.is_empty();
        waiting.insert(digest, used);
        if is_first {
            let (uses, store) = (self.clone(), store.clone());
            tokio::spawn(async move {
                sleep(GATHER).await;
                let used = std::mem::take(&mut *uses.0.lock());
                if let Err(error) = store.credentials_used(used).await {
                    tracing::warn!(%error, "the last uses of sessions and tokens could not be stored");
                }
            });
        }
    }
}
