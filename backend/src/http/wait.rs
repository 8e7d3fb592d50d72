//! Requests that wait until a review is over or commented on, or until a run ends or stops for people. While requests wait, one task of
//! this process checks what they wait for after each commit. The number of waiting requests of a person, and of a
//! person's tokens, is limited, because each occupies a connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Uri};
use parking_lot::Mutex;
use shared::error::Problem;
use shared::id::{ReviewId, RunId};
use shared::time::Span;
use tokio::sync::watch;

use super::Caller;
use super::problem::Refused;
use crate::problem::too_many;
use crate::rate_limit::{LimitHolder, give_back};
use crate::store::{self, Store};

/// The longest wait of one request.
pub(super) const MAX_WAIT: Duration = Duration::from_mins(1);
/// The most waiting requests of one holder.
const EACH: usize = 20;
/// The pause between two checks, during which commits accumulate.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause before another check if the database could not be read.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// The interval at which the task checks, while nothing is committed, whether requests still wait.
const ROLL_CALL: Duration = Duration::from_secs(5);

pub(super) fn is_asked(uri: &Uri) -> bool {
    form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).any(|(name, _)| name == "wait")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WaitTarget {
    /// The end of a review.
    Review(ReviewId),
    /// The end of a review, or one more comment on it than this many.
    Comment(ReviewId, u32),
    /// The end of a run, or its next stop for people.
    Run(RunId),
}

/// The reviews and runs for which requests wait.
#[derive(Debug, Default)]
pub(super) struct Waits(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    awaited: HashMap<WaitTarget, watch::Sender<()>>,
    /// The number of waiting requests of each person, and of the tokens of each.
    holders: HashMap<LimitHolder, usize>,
    /// Whether the task [`follow`] is running.
    is_followed: bool,
}

/// A wait that has begun. Counts against the limit of its holder until it is dropped.
pub(super) struct Wait {
    over: watch::Receiver<()>,
    at_most: Duration,
    awaited: WaitTarget,
    holder: LimitHolder,
    waiting: Arc<Mutex<Waiting>>,
}

impl Wait {
    /// Begins a wait if one is requested: `422` if it is too long, `429` if too many requests of the caller are waiting.
    /// Read what is awaited after this call, so that its end is not missed.
    pub fn begin(caller: &Caller, awaited: WaitTarget, requested: Option<Span>) -> Result<Option<Self>, Problem> {
        let Some(Span(at_most)) = requested else { return Ok(None) };
        if at_most > MAX_WAIT {
            return Err(Problem::invalid("/wait", "at most 60s; to wait longer, ask again"));
        }
        let holder = LimitHolder::of(caller.principal());
        caller.state.waits.begin(awaited, at_most, holder, &caller.state.store).map(Some)
    }

    /// Waits, and returns the caller with the rights that they have afterwards: they may have lost some in the meantime.
    pub async fn end(mut self, caller: Caller, headers: &HeaderMap) -> Result<Caller, Refused> {
        tokio::select! {
            // An error means that the sender was dropped, which ends the wait, too.
            _ = self.over.changed() => {}
            () = tokio::time::sleep(self.at_most) => {}
            () = caller.state.options.stopping.cancelled() => {}
        }
        let identity = caller.state.authenticator.authenticate(headers).await?;
        identity.may_go_on()?;
        Ok(Caller { identity, ..caller })
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock();
        give_back(&mut waiting.holders, &self.holder);
        // `self.over` still counts as a receiver.
        if waiting.awaited.get(&self.awaited).is_some_and(|end| end.receiver_count() <= 1) {
            waiting.awaited.remove(&self.awaited);
        }
    }
}

impl Waits {
    fn begin(
        &self,
        awaited: WaitTarget,
        at_most: Duration,
        holder: LimitHolder,
        store: &Store,
    ) -> Result<Wait, Problem> {
        let mut waiting = self.0.lock();
        let count = waiting.holders.entry(holder.clone()).or_default();
        if *count >= EACH {
            return Err(too_many(format!("{EACH} of your requests are already waiting: ask without `wait`")));
        }
        *count += 1;
        let over = waiting.awaited.entry(awaited).or_insert_with(|| watch::Sender::new(())).subscribe();
        if !std::mem::replace(&mut waiting.is_followed, true) {
            tokio::spawn(follow(Arc::clone(&self.0), store.clone()));
        }
        Ok(Wait { over, at_most, awaited, holder, waiting: Arc::clone(&self.0) })
    }
}

/// Notifies waiting requests of what is over, until no request waits.
async fn follow(waiting: Arc<Mutex<Waiting>>, store: Store) {
    let mut commits = store.commits();
    loop {
        commits.mark_unchanged();
        let awaited = {
            let mut waiting = waiting.lock();
            waiting.awaited.retain(|_, end| end.receiver_count() > 0);
            if waiting.awaited.is_empty() {
                waiting.is_followed = false;
                return;
            }
            waiting.awaited.keys().copied().collect::<Vec<_>>()
        };
        match over_among(&store, &awaited).await {
            Ok(over) => {
                let mut waiting = waiting.lock();
                for end in over.iter().filter_map(|awaited| waiting.awaited.remove(awaited)) {
                    let _ = end.send(());
                }
            }
            Err(error) => {
                tracing::warn!(%error, "could not check what requests are waiting for");
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                continue;
            }
        }
        tokio::time::sleep(PAUSE).await;
        while let Err(_elapsed) = tokio::time::timeout(ROLL_CALL, commits.changed()).await {
            if waiting.lock().awaited.values().all(|end| end.receiver_count() == 0) {
                break;
            }
        }
    }
}

/// Returns what is over: reviews that are no longer pending or were commented on, and runs that are no longer running.
async fn over_among(store: &Store, awaited: &[WaitTarget]) -> Result<Vec<WaitTarget>, store::Error> {
    let (mut reviews, mut commented, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for awaited in awaited {
        match awaited {
            WaitTarget::Review(review) => reviews.push(*review),
            WaitTarget::Comment(review, seen) => commented.push((*review, *seen)),
            WaitTarget::Run(run) => runs.push(*run),
        }
    }
    let mut over = Vec::new();
    // Usually, requests wait for only one of the three.
    if !reviews.is_empty() {
        over.extend(store.over_among(&reviews).await?.into_iter().map(WaitTarget::Review));
    }
    if !commented.is_empty() {
        let commented = store.over_or_commented_among(&commented).await?;
        over.extend(commented.into_iter().map(|(review, seen)| WaitTarget::Comment(review, seen)));
    }
    if !runs.is_empty() {
        over.extend(store.stopped_among(&runs).await?.into_iter().map(WaitTarget::Run));
    }
    Ok(over)
}
