//! The visibility of the runs in the log, cached once per process, so that sessions need not query the database.
//!
//! However many runs there are, an entry costs at most one read of its run's reviews, without their large values: the
//! tail of the log keeps the cached runs up to date, and reads none for this.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use shared::id::{ReviewId, RunId, Username};
use shared::inbox::rights_outline;
use shared::log::{Audience, EntryKind};
use shared::review::Review;

use super::parsed_entry::ParsedEntry;
use super::run_visibility::{RunVisibility, Viewers};
use crate::store::{self, Store};

/// The maximum number of cached runs. The run that was used least recently is evicted first.
const MAX_RUNS: usize = 65_536;
/// The maximum size of the cached runs with the outlines of their reviews, in bytes.
const MAX_BYTES: usize = 64 << 20;

pub(super) struct VisibilityCache {
    store: Store,
    known: Mutex<Cached>,
}

#[derive(Default)]
struct Cached {
    runs: HashMap<RunId, Used>,
    /// The runs by their last use.
    order: BTreeMap<u64, RunId>,
    uses: u64,
    /// Their total size, in bytes.
    bytes: usize,
    reading: HashMap<RunId, PendingReads>,
}

struct Used {
    visibility: Arc<RunVisibility>,
    bytes: usize,
    /// The number of the last use.
    at: u64,
}

/// The reads of a run that is not cached.
#[derive(Default)]
struct PendingReads {
    readers: usize,
    /// Whether an entry has changed the run meanwhile, so that what is read may be older than the tail of the log.
    is_outdated: bool,
}

impl Cached {
    fn get(&mut self, id: RunId) -> Option<Arc<RunVisibility>> {
        let used = self.runs.get_mut(&id)?;
        self.uses += 1;
        self.order.remove(&used.at);
        self.order.insert(self.uses, id);
        used.at = self.uses;
        Some(Arc::clone(&used.visibility))
    }

    fn insert(&mut self, id: RunId, visibility: RunVisibility) -> Arc<RunVisibility> {
        let visibility = Arc::new(visibility);
        self.remove(id);
        self.uses += 1;
        let bytes = visibility.size();
        self.bytes += bytes;
        self.runs.insert(id, Used { visibility: Arc::clone(&visibility), bytes, at: self.uses });
        self.order.insert(self.uses, id);
        while self.runs.len() > MAX_RUNS || (self.bytes > MAX_BYTES && self.runs.len() > 1) {
            let Some(oldest) = self.order.first_key_value().map(|(_, id)| *id) else { break };
            self.remove(oldest);
        }
        visibility
    }

    fn remove(&mut self, id: RunId) {
        if let Some(used) = self.runs.remove(&id) {
            self.order.remove(&used.at);
            self.bytes -= used.bytes;
        }
    }
}

/// A read of a run. It ends when it is dropped, also if its session does not wait for it any longer.
struct Read<'c> {
    cache: &'c VisibilityCache,
    id: RunId,
}

impl Drop for Read<'_> {
    fn drop(&mut self) {
        let mut known = self.cache.known.lock();
        if let Some(reading) = known.reading.get_mut(&self.id) {
            reading.readers -= 1;
            if reading.readers == 0 {
                known.reading.remove(&self.id);
            }
        }
    }
}

impl VisibilityCache {
    pub fn new(store: Store) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// Empties the cache, because entries will be skipped.
    pub fn forget(&self) {
        let mut known = self.known.lock();
        let mut reading = std::mem::take(&mut known.reading);
        for reading in reading.values_mut() {
            reading.is_outdated = true;
        }
        *known = Cached { reading, ..Cached::default() };
    }

    /// Returns the visibility of a run. `None` if there is no such run.
    pub async fn of(&self, id: RunId) -> Result<Option<Arc<RunVisibility>>, store::Error> {
        let _read = {
            let mut known = self.known.lock();
            if let Some(visibility) = known.get(id) {
                return Ok(Some(visibility));
            }
            known.reading.entry(id).or_default().readers += 1;
            Read { cache: self, id }
        };
        let Some((requested_by, reviews)) = self.store.run_rights(id).await? else { return Ok(None) };
        let read = RunVisibility::new(requested_by, &reviews);
        let mut known = self.known.lock();
        // A version that was cached meanwhile has followed the log, so it may be newer than what was read here.
        if let Some(visibility) = known.get(id) {
            return Ok(Some(visibility));
        }
        if known.reading.get(&id).is_some_and(|reading| reading.is_outdated) {
            return Ok(Some(Arc::new(read)));
        }
        Ok(Some(known.insert(id, read)))
    }

    /// Returns the audience of an entry, with the data that determine who belongs to it.
    pub async fn viewers(&self, parsed: &ParsedEntry) -> Result<Viewers, store::Error> {
        let run = parsed.entry.event.run_id;
        Ok(match parsed.entry.event.audience() {
            Audience::Flows => Viewers::Flows,
            Audience::Review(id) => self.review(id, run, parsed).await?.map_or(Viewers::Nobody, Viewers::Review),
            Audience::Viewer(id, actor) => {
                let review = self.review(id, run, parsed).await?;
                review.map_or(Viewers::Nobody, |review| Viewers::Viewer(review, actor.cloned()))
            }
            Audience::Run(id) => self.of(id).await?.map_or(Viewers::Nobody, Viewers::Run),
            Audience::Feedback(id, by) => {
                self.of(id).await?.map_or(Viewers::Nobody, |run| Viewers::Feedback(run, by.cloned()))
            }
            Audience::Actor(actor) => Viewers::Actor(actor.cloned()),
        })
    }

    /// Returns the outline of an entry's review: that in the entry itself, which is of its time, or else the newest.
    async fn review(
        &self,
        id: ReviewId,
        run: Option<RunId>,
        parsed: &ParsedEntry,
    ) -> Result<Option<Arc<Review>>, store::Error> {
        if let Some(own) = &parsed.review {
            return Ok(Some(Arc::clone(own)));
        }
        let cached = run.and_then(|run| self.known.lock().get(run));
        match cached.as_ref().and_then(|run| run.review(id)) {
            Some(review) => Ok(Some(Arc::clone(review))),
            None => Ok(self.store.review_outline(id).await?.map(|review| Arc::new(rights_outline(&review)))),
        }
    }

    /// Updates the cache from an entry. Only the tail of the log calls this, in the order of the log.
    pub fn learn(&self, parsed: &ParsedEntry) {
        let ParsedEntry { entry, review } = parsed;
        let Some(id) = entry.event.run_id else { return };
        if entry.event.kind == EntryKind::RunStarted
            && let Some(run) = entry.event.run()
        {
            self.started(id, run.requested_by);
        } else if entry.event.kind.is_review()
            && let Some(review) = review
        {
            self.reviewed(id, review);
        }
    }

    fn started(&self, id: RunId, requested_by: Username) {
        let mut known = self.known.lock();
        if known.get(id).is_none() {
            known.insert(id, RunVisibility::new(requested_by, &[]));
        }
    }

    /// A run that is not cached is not read for this: whoever reads it later finds the review in the database.
    fn reviewed(&self, id: RunId, review: &Arc<Review>) {
        let mut known = self.known.lock();
        if let Some(visibility) = known.get(id) {
            let mut visibility = RunVisibility::clone(&visibility);
            visibility.put(Arc::clone(review));
            known.insert(id, visibility);
        } else if let Some(reading) = known.reading.get_mut(&id) {
            reading.is_outdated = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::time::Timestamp;

    use super::*;

    fn run(number: u128) -> RunId {
        RunId(uuid::Uuid::from_u128(number))
    }

    fn dev() -> Username {
        "dev".parse().expect("a name")
    }

    #[test]
    fn the_cache_is_bounded_in_bytes_also_if_reviews_name_many_people() {
        let voters: Vec<_> = (0..5_000).map(|number| format!("voter{number}")).collect();
        let review: Review = serde_json::from_value(json!({
            "id": uuid::Uuid::nil(), "revision": 1, "digest": "", "version": 1, "kind": "approval", "status": "pending",
            "title": "A long title", "prompt": "A long prompt", "requested_by": "dev", "created_at": Timestamp(0),
            "voting": { "voters": voters, "votes": 0, "standing": "" },
        }))
        .expect("a review");
        let outline = rights_outline(&review);
        assert_eq!((outline.title.as_str(), outline.prompt.as_str()), ("", ""));
        assert_eq!(outline.voting.as_ref().map(|voting| voting.voters.len()), Some(5_000));
        let mut cached = Cached::default();
        for number in 0..400 {
            cached.insert(run(number), RunVisibility::new(dev(), std::slice::from_ref(&review)));
            assert!(cached.get(run(0)).is_some(), "the run that is used stays");
        }
        assert!(cached.bytes <= MAX_BYTES, "{}", cached.bytes);
        assert!((100..400).contains(&cached.runs.len()), "{}", cached.runs.len());
        assert_eq!(cached.bytes, cached.runs.values().map(|used| used.visibility.size()).sum::<usize>());
        assert_eq!(cached.order.len(), cached.runs.len());
    }

    #[test]
    fn many_small_runs_are_known_at_once() {
        let mut cached = Cached::default();
        for number in 0..20_000 {
            cached.insert(run(number), RunVisibility::new(dev(), &[]));
        }
        assert!(cached.get(run(0)).is_some() && cached.runs.len() == 20_000);
    }
}
