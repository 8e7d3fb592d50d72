//! Runs by id: those that are shown, and, while the list of runs is open, all runs in the log.

use std::collections::{BTreeMap, BTreeSet};

use shared::id::RunId;
use shared::protocol::ServerMessage;
use shared::run::RunSummary;

/// The largest number of runs in memory besides those that the list has loaded; the oldest are dropped. (Ids begin with the
/// time.)
const MAX_KEPT: usize = if cfg!(test) { 3 } else { 5000 };

/// Runs by id. Summaries with an older or equal revision are ignored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs {
    known: BTreeMap<RunId, RunSummary>,
    /// The runs that the list has loaded with its current filter. They may be older than all others, and are kept.
    loaded: BTreeSet<RunId>,
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
        if !listed {
            self.unload();
        }
    }

    /// Adds a summary that the list has loaded. It is kept until [`Self::unload`], unless the list has been left meanwhile.
    pub fn put_loaded(&mut self, run: RunSummary) {
        if self.listed {
            self.loaded.insert(run.id);
        }
        self.put(run);
    }

    /// Ends the list that was loaded: its filter has changed, or it has been left.
    pub fn unload(&mut self) {
        self.loaded.clear();
        self.drop_oldest();
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
    fn put(&mut self, run: RunSummary) {
        if self.known.get(&run.id).is_none_or(|known| known.revision < run.revision) {
            self.known.insert(run.id, run);
            self.drop_oldest();
        }
    }

    /// Drops the oldest runs that the list has not loaded, down to the limit.
    fn drop_oldest(&mut self) {
        while self.known.len() > MAX_KEPT + self.loaded.len() {
            let Some(oldest) = self.known.keys().find(|id| !self.loaded.contains(id)).copied() else { return };
            self.known.remove(&oldest);
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
    #[test]
    fn the_list_keeps_what_it_has_loaded_however_many_runs_start() {
        let mut runs = Runs::default();
        runs.list(true);
        let (oldest, message) = started(1);
        let ServerMessage::Entry(entry) = message else { panic!("an entry") };
        runs.put_loaded(entry.event.run().unwrap());
        (2..20).for_each(|number| runs.apply(&started(number).1));
        assert!(runs.get(oldest).is_some());
        assert_eq!(runs.all().count(), MAX_KEPT + 1);
        runs.unload();
        assert_eq!((runs.get(oldest), runs.all().count()), (None, MAX_KEPT));
    }
}
