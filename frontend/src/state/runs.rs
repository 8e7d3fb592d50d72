//! Runs by id: those that are shown, and, while the list of runs is open, all runs in the log.

use std::collections::BTreeMap;

use shared::id::RunId;
use shared::protocol::ServerMessage;
use shared::run::RunSummary;

/// The largest number of runs in memory; the oldest are dropped. (Ids begin with the time.)
const KEPT: usize = 5000;

/// Runs by id. Summaries with an older or equal revision are ignored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs {
    known: BTreeMap<RunId, RunSummary>,
    /// Whether the list of runs is shown.
    listed: bool,
    /// The runs of the reviews that are shown, and by how many components.
    followed: BTreeMap<RunId, usize>,
}

impl Runs {
    /// Applies a message of the live socket.
    pub fn apply(&mut self, message: &ServerMessage) {
        if let ServerMessage::Entry(entry) = message
            && let Some(run) = entry.event.run()
            && (self.listed || self.followed.contains_key(&run.id) || self.known.contains_key(&run.id))
        {
            self.put(run);
        }
    }

    /// Sets whether the list of runs is shown. While it is, unknown runs in the log are added too; the list itself
    /// loads older ones.
    pub fn list(&mut self, listed: bool) {
        self.listed = listed;
    }

    /// Follows the run of a review that is shown: it is added too when it appears in the log.
    pub fn follow(&mut self, run: RunId) {
        *self.followed.entry(run).or_default() += 1;
    }

    /// Ends one [`Self::follow`]. The run is dropped with the last one: a person who reads review after review would
    /// otherwise keep all their runs.
    pub fn unfollow(&mut self, run: RunId) {
        if let Some(count) = self.followed.get_mut(&run) {
            *count -= 1;
            if *count == 0 {
                self.followed.remove(&run);
                if !self.listed {
                    self.known.remove(&run);
                }
            }
        }
    }

    /// Adds a summary that was loaded for a review, unless the review has been left meanwhile.
    pub fn put_followed(&mut self, run: RunSummary) {
        if self.listed || self.followed.contains_key(&run.id) {
            self.put(run);
        }
    }

    /// Adds a summary, unless the known one is as new.
    pub fn put(&mut self, run: RunSummary) {
        if self.known.get(&run.id).is_none_or(|known| known.revision < run.revision) {
            self.known.insert(run.id, run);
            if self.known.len() > KEPT {
                self.known.pop_first();
            }
        }
    }

    /// The newest known summary of a run.
    pub fn get(&self, id: RunId) -> Option<&RunSummary> {
        self.known.get(&id)
    }

    /// All known runs, ordered by id.
    pub fn all(&self) -> impl Iterator<Item = &RunSummary> {
        self.known.values()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn started(number: u8) -> (RunId, ServerMessage) {
        let id = format!("018f0000-0000-7000-8000-0000000000{number:02x}");
        let run = json!({
            "id": id, "revision": 1, "flow": "article", "version": 1, "title": "Article", "status": "running",
            "requested_by": "ana", "created_at": "2026-11-20T10:00:00Z", "updated_at": "2026-11-20T10:00:00Z",
        });
        let entry = json!({ "type": "entry", "cursor": "c", "kind": "run.started", "at": "2026-11-20T10:00:00Z",
            "data": { "run": run } });
        (id.parse().unwrap(), serde_json::from_value(entry).unwrap())
    }

    #[test]
    fn runs_of_others_are_kept_only_while_runs_are_listed() {
        let mut runs = Runs::default();
        let ((one, first), (two, second)) = (started(1), started(2));
        runs.apply(&first);
        assert_eq!(runs.get(one), None);
        runs.list(true);
        runs.apply(&first);
        runs.list(false);
        runs.apply(&second);
        assert!(runs.get(one).is_some() && runs.get(two).is_none());
        runs.follow(two);
        runs.follow(two);
        runs.apply(&second);
        runs.unfollow(two);
        assert!(runs.get(two).is_some(), "and the one of what is read");
        runs.unfollow(two);
        runs.apply(&second);
        assert_eq!(runs.get(two), None, "until it is left");
    }
}
