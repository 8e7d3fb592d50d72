//! Which rows of the log must have been written with the key, and what is wrong with those that were not.
//!
//! Rows from before the first key was registered with the database need no HMAC, up to the first seal that says that
//! its rows are authenticated. From then on, the note in the database no longer counts.

use super::seal::Opened;
use crate::store::{self, Authenticity, RecordRow, Store};

/// The rule that rows after a number must be authentic.
#[derive(Debug, Clone, Copy)]
pub(super) struct MustBeAuthentic {
    behind: i64,
}

impl MustBeAuthentic {
    /// Returns the rule for rows after the last seal.
    pub async fn after(store: &Store, last: Option<&Opened>) -> Result<Self, store::Error> {
        let authenticated = last.is_some_and(|last| last.seal.authenticated);
        Ok(Self { behind: if authenticated { 0 } else { store.unauthenticated_to().await? } })
    }

    /// Returns why a row cannot be sealed. `None` if it can.
    pub fn refuses(self, row: &RecordRow) -> Option<String> {
        let why = match &row.mac {
            Authenticity::Authentic => return None,
            Authenticity::Missing if row.number <= self.behind => return None,
            Authenticity::Missing => "was not written with the key of the audit log: it was inserted".to_owned(),
            Authenticity::Wrong => "was changed, copied or moved after it was written".to_owned(),
            Authenticity::UnknownKey(id) => {
                format!("was written with the unknown key {id}: it was inserted, or the file seal.key.{id} is missing")
            }
            Authenticity::Unchecked => "cannot be checked without the key".to_owned(),
        };
        let first = row.entries.as_ref().ok().and_then(|entries| entries.first());
        let told = first.map(|(_, event)| format!(" ({} at {})", event.kind, event.at)).unwrap_or_default();
        let run = row.run_id.map(|run| format!(" of run {run}")).unwrap_or_default();
        Some(format!("row {} of the log{told}{run} {why}", row.number))
    }
}
