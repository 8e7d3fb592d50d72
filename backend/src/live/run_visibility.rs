//! The visibility of runs and of their reviews, cached once per process for runs in the log, so that sessions need not
//! query the database.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use shared::access::{Access, Act, Involvement, Principal, access};
use shared::collaboration::Delegation;
use shared::decision::Decision;
use shared::definition::Reviewers;
use shared::id::{ReviewId, RunId, Username};
use shared::inbox::rights_outline;
use shared::log::{Audience, EntryKind};
use shared::review::Review;
use shared::run::RunSummary;

use super::parsed_entry::ParsedEntry;
use crate::store::{self, Store};

/// The maximum number of cached runs. The run that was cached first is evicted first.
const MAX_RUNS: usize = 4096;
/// The maximum size of the cached outlines of their reviews, in bytes.
const MAX_BYTES: usize = 64 << 20;
/// The size that is counted for a name, in bytes: usernames and roles are short.
const NAME: usize = 64;

/// The data that determine who may see a run.
#[derive(Debug, Clone)]
pub(super) struct RunVisibility {
    run: RunSummary,
    /// The outlines of all reviews of the run. Entries in transit keep the version of their time; unchanged outlines are
    /// shared.
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

    /// Returns the outline of one of the run's reviews.
    pub fn review(&self, id: ReviewId) -> Option<&Arc<Review>> {
        self.reviews.iter().rev().find(|review| review.id == id)
    }

    /// Returns the approximate size in memory, in bytes.
    fn size(&self) -> usize {
        size_of::<Self>() + self.reviews.iter().map(|review| outline_size(review)).sum::<usize>()
    }

    fn put(&mut self, review: Arc<Review>) {
        // Searched from the end, since nearly always the newest changes.
        match self.reviews.iter_mut().rev().find(|old| old.id == review.id) {
            Some(old) if old.version > review.version => {}
            Some(old) => *old = review,
            None => self.reviews.push(review),
        }
    }
}

/// Returns the approximate size of an outline in memory, in bytes: its parts are the names of people and roles.
fn outline_size(review: &Review) -> usize {
    let Reviewers { roles, users, tags, .. } = &review.reviewers;
    let names = roles.len() + users.len() + tags.len() + review.escalated.len() + review.barred.len();
    let voters = review.voting.as_ref().map_or(0, |voting| voting.voters.len());
    size_of::<Review>()
        + (names + voters) * NAME
        + review.delegations.len() * (size_of::<Delegation>() + 3 * NAME)
        + review.decisions.len() * (size_of::<Decision>() + 2 * NAME)
}

/// The audience of an entry, with the data that determine who belongs to it.
#[derive(Debug)]
pub(super) enum Viewers {
    /// Those who may see flows.
    Flows,
    /// Those who may see this review, of which only the outline is kept.
    Review(Arc<Review>),
    /// Of those who may see this review, the actor and admins.
    Viewer(Arc<Review>, Option<Username>),
    /// Those who may see this run.
    Run(Arc<RunVisibility>),
    /// Of those who may see this run, those who may see feedback of this person.
    Feedback(Arc<RunVisibility>, Option<Username>),
    /// The actor, and admins.
    Actor(Option<Username>),
    /// Nobody: the review or run no longer exists, or cannot be read.
    Nobody,
}

impl Viewers {
    /// Whether `principal` belongs to the audience.
    pub fn include(&self, principal: &Principal) -> bool {
        let may = |act| access(principal, act).is_allowed();
        match self {
            Viewers::Flows => may(Act::SeeFlows),
            Viewers::Review(review) => may(Act::SeeReview(review)),
            Viewers::Viewer(review, actor) => may(Act::SeeEntryBy(actor.as_ref())) && may(Act::SeeReview(review)),
            Viewers::Run(run) => run.is_seen_by(principal),
            Viewers::Feedback(run, by) => may(Act::SeeFeedback(by.as_ref())) && run.is_seen_by(principal),
            Viewers::Actor(actor) => may(Act::SeeEntryBy(actor.as_ref())),
            Viewers::Nobody => false,
        }
    }
}

pub(super) struct VisibilityCache {
    store: Store,
    known: Mutex<Cached>,
}

#[derive(Default)]
struct Cached {
    runs: HashMap<RunId, Arc<RunVisibility>>,
    order: VecDeque<RunId>,
    /// Their total size, in bytes.
    bytes: usize,
}

impl Cached {
    fn insert(&mut self, id: RunId, visibility: RunVisibility) -> Arc<RunVisibility> {
        let visibility = Arc::new(visibility);
        self.bytes += visibility.size();
        match self.runs.insert(id, Arc::clone(&visibility)) {
            Some(old) => self.bytes -= old.size(),
            None => self.order.push_back(id),
        }
        while self.order.len() > MAX_RUNS || (self.bytes > MAX_BYTES && self.order.len() > 1) {
            let Some(oldest) = self.order.pop_front() else { break };
            let forgotten = self.runs.remove(&oldest);
            self.bytes -= forgotten.map_or(0, |forgotten| forgotten.size());
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
        let reviews = reviews.iter().map(|review| Arc::new(rights_outline(review))).collect();
        let loaded = RunVisibility { run: run.summary(), reviews };
        let mut known = self.known.lock();
        // A version that was cached meanwhile has followed the log, so it may be newer than what was read here.
        if let Some(known) = known.runs.get(&id) {
            return Ok(Some(Arc::clone(known)));
        }
        Ok(Some(known.insert(id, loaded)))
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
        let of_run = match run {
            Some(run) => self.of(run).await?,
            None => None,
        };
        match of_run.as_ref().and_then(|run| run.review(id)) {
            Some(review) => Ok(Some(Arc::clone(review))),
            None => Ok(self.store.review_outline(id).await?.map(|review| Arc::new(rights_outline(&review)))),
        }
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
            visibility.put(Arc::clone(review));
            self.known.lock().insert(id, visibility);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::time::Timestamp;

    use super::*;

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
            let id = RunId(uuid::Uuid::from_u128(number));
            let run = serde_json::from_value(json!({
                "id": id, "flow": "poll", "title": "Poll", "version": 1, "revision": 1, "status": "running", "requested_by": "dev",
                "created_at": Timestamp(0), "updated_at": Timestamp(0),
            }));
            cached.insert(id, RunVisibility { run: run.expect("a run"), reviews: vec![Arc::new(outline.clone())] });
        }
        assert!(cached.bytes <= MAX_BYTES, "{}", cached.bytes);
        assert!((100..400).contains(&cached.runs.len()), "{}", cached.runs.len());
        assert_eq!(cached.bytes, cached.runs.values().map(|run| run.size()).sum::<usize>());
    }
}
