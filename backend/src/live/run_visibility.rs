//! The visibility of runs, cached once per process for runs in the log, so that sessions need not query the database.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use shared::access::{Access, Act, Involvement, Principal, access};
use shared::id::RunId;
use shared::log::EntryKind;
use shared::review::Review;
use shared::run::RunSummary;

use super::parsed_entry::{ParsedEntry, without_content};
use crate::store::{self, Store};

/// The maximum number of cached runs. The run that was cached first is evicted first.
const MAX_RUNS: usize = 4096;
/// The maximum number of cached reviews of these runs.
const MAX_REVIEWS: usize = 50_000;

/// The data that determine who may see a run.
#[derive(Debug, Clone)]
pub(super) struct RunVisibility {
    run: RunSummary,
    /// All reviews of the run, without their content. Entries in transit keep the version of their time; unchanged
    /// reviews are shared.
    reviews: Vec<Arc<Review>>,
}

impl RunVisibility {
    /// Whether `principal` may see the run. A principal who sees one of its reviews, but neither sees all runs nor
    /// started this one, may decide that review or has decided it. This involvement lets reviewers see the run.
    pub fn is_seen_by(&self, principal: &Principal) -> bool {
        let may = |involvement| access(principal, Act::SeeRun(&self.run, involvement)) == Access::Allowed;
        may(Involvement::None)
            || (self.reviews.iter().any(|review| access(principal, Act::SeeReview(review)) == Access::Allowed)
                && may(Involvement::Reviews))
    }

    fn put(&mut self, review: Review) {
        // Searched from the end, since nearly always the newest changes.
        match self.reviews.iter_mut().rev().find(|old| old.id == review.id) {
            Some(old) if old.version > review.version => {}
            Some(old) => *old = Arc::new(review),
            None => self.reviews.push(Arc::new(review)),
        }
    }
}

/// The cached runs.
pub(super) struct VisibilityCache {
    store: Store,
    known: Mutex<Cached>,
}

#[derive(Default)]
struct Cached {
    runs: HashMap<RunId, Arc<RunVisibility>>,
    order: VecDeque<RunId>,
    /// The total number of their reviews.
    reviews: usize,
}

impl Cached {
    fn insert(&mut self, id: RunId, visibility: RunVisibility) -> Arc<RunVisibility> {
        let visibility = Arc::new(visibility);
        self.reviews += visibility.reviews.len();
        match self.runs.insert(id, Arc::clone(&visibility)) {
            Some(old) => self.reviews -= old.reviews.len(),
            None => self.order.push_back(id),
        }
        while self.order.len() > MAX_RUNS || (self.reviews > MAX_REVIEWS && self.order.len() > 1) {
            let Some(oldest) = self.order.pop_front() else { break };
            let forgotten = self.runs.remove(&oldest);
            self.reviews -= forgotten.map_or(0, |forgotten| forgotten.reviews.len());
        }
        visibility
    }
}

impl VisibilityCache {
    pub fn new(store: Store) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// Empties the cache, because entries will be skipped.
    pub fn forget(&self) {
        *self.known.lock() = Cached::default();
    }

    /// Returns the visibility of a run. `None` if there is no such run.
    pub async fn of(&self, id: RunId) -> Result<Option<Arc<RunVisibility>>, store::Error> {
        if let Some(known) = self.known.lock().runs.get(&id) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some((run, reviews)) = self.store.run_with_reviews(id).await? else { return Ok(None) };
        let reviews = reviews.into_iter().map(without_content).map(Arc::new).collect();
        let loaded = RunVisibility { run: run.summary(), reviews };
        let mut known = self.known.lock();
        // A version that was cached meanwhile has followed the log, so it may be newer than what was read here.
        if let Some(known) = known.runs.get(&id) {
            return Ok(Some(Arc::clone(known)));
        }
        Ok(Some(known.insert(id, loaded)))
    }

    /// Updates the cache from an entry. Only the tail of the log calls this, in the order of the log.
    pub async fn learn(&self, parsed: &ParsedEntry) -> Result<(), store::Error> {
        let ParsedEntry { entry, review } = parsed;
        let Some(id) = entry.event.run_id else { return Ok(()) };
        if entry.event.kind == EntryKind::RunStarted
            && let Some(run) = entry.event.run()
        {
            let mut known = self.known.lock();
            if !known.runs.contains_key(&id) {
                known.insert(id, RunVisibility { run, reviews: Vec::new() });
            }
            return Ok(());
        }
        if !entry.event.kind.is_review() {
            return Ok(());
        }
        let Some(review) = review else { return Ok(()) };
        // Loads the run if it is not cached: a session that loads it now must not miss this review.
        if let Some(visibility) = self.of(id).await? {
            let mut visibility = RunVisibility::clone(&visibility);
            visibility.put(review.clone());
            self.known.lock().insert(id, visibility);
        }
        Ok(())
    }
}
