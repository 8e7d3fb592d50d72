//! Runs by id, as far as the console has heard of them.

use std::collections::BTreeMap;

use shared::id::RunId;
use shared::protocol::ServerMessage;
use shared::run::RunSummary;

/// How many runs are in memory at most; the oldest are let go. (Ids begin with the time.)
const KEPT: usize = 5000;

/// Runs by id. An older or equal revision changes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs {
    known: BTreeMap<RunId, RunSummary>,
}

impl Runs {
    /// Takes in a message of the live socket.
    pub fn hear(&mut self, message: &ServerMessage) {
        if let ServerMessage::Entry(entry) = message
            && let Some(run) = entry.event.run()
        {
            self.put(run);
        }
    }

    /// Takes in a summary, from wherever.
    pub fn put(&mut self, run: RunSummary) {
        if self.known.get(&run.id).is_none_or(|known| known.revision < run.revision) {
            self.known.insert(run.id, run);
            if self.known.len() > KEPT {
                self.known.pop_first();
            }
        }
    }

    /// A run.
    pub fn get(&self, id: RunId) -> Option<&RunSummary> {
        self.known.get(&id)
    }

    /// All runs that were heard of, in no order.
    pub fn all(&self) -> impl Iterator<Item = &RunSummary> {
        self.known.values()
    }
}
