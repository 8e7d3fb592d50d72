//! Requests that wait until a review is over. While requests wait, one task of this process checks their reviews after
//! each commit. The number of waiting requests of a person, and of a person's tokens, is limited, because each occupies a
//! connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::time::Span;
use tokio::sync::watch;

use crate::rate_limit::LimitHolder;
use crate::store::Store;

/// The longest wait of one request.
pub(in crate::http) const LONGEST: Duration = Duration::from_mins(1);
/// The most waiting requests of one holder.
const EACH: usize = 20;
/// The `Retry-After` for further requests, in seconds.
const TRY_AGAIN: u64 = 1;
/// The pause between two checks, during which commits accumulate.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause before another check if the database could not be read.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// The interval at which the task checks, while nothing is committed, whether requests still wait.
const ROLL_CALL: Duration = Duration::from_secs(5);

/// The reviews for which requests wait.
#[derive(Debug, Default)]
pub(in crate::http) struct ReviewWaits(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    reviews: HashMap<ReviewId, watch::Sender<()>>,
    /// The number of waiting requests of each person, and of the tokens of each.
    holders: HashMap<LimitHolder, usize>,
    /// Whether the task [`follow`] is running.
    is_followed: bool,
}

/// A wait for the end of a review. Counts against the limit of its holder until it is dropped.
pub(in crate::http) struct End {
    over: watch::Receiver<()>,
    review: ReviewId,
    holder: LimitHolder,
    waiting: Arc<Mutex<Waiting>>,
}

impl End {
    /// Waits for the end of the review.
    pub async fn come(&mut self) {
        // An error means that the sender was dropped, which ends the wait, too.
        let _ = self.over.changed().await;
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock();
        if let Some(count) = waiting.holders.get_mut(&self.holder) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                waiting.holders.remove(&self.holder);
            }
        }
        // `self.over` still counts as a receiver.
        if waiting.reviews.get(&self.review).is_some_and(|end| end.receiver_count() <= 1) {
            waiting.reviews.remove(&self.review);
        }
    }
}

impl ReviewWaits {
    /// Begins a wait for the end of a review; `429` if too many requests of the holder are waiting. Read the review
    /// after this call, so that its end is not missed.
    pub fn end_of(&self, review: ReviewId, holder: LimitHolder, store: &Store) -> Result<End, Problem> {
        let mut waiting = self.0.lock();
        let count = waiting.holders.entry(holder.clone()).or_default();
        if *count >= EACH {
            let problem = Problem { retry_after: Some(TRY_AGAIN), ..Problem::new(Code::TooManyRequests) };
            return Err(problem.detail(format!("{EACH} of your requests are already waiting: ask without `wait`")));
        }
        *count += 1;
        let over = waiting.reviews.entry(review).or_insert_with(|| watch::Sender::new(())).subscribe();
        if !std::mem::replace(&mut waiting.is_followed, true) {
            tokio::spawn(follow(Arc::clone(&self.0), store.clone()));
        }
        Ok(End { over, review, holder, waiting: Arc::clone(&self.0) })
    }
}

/// Returns the requested wait, or a problem if it is too long.
pub(super) fn checked(wait: Span) -> Result<Duration, Problem> {
    if wait.0 > LONGEST {
        return Err(Problem::invalid("/wait", "at most 60s; to wait longer, ask again"));
    }
    Ok(wait.0)
}

/// Notifies waiting requests whose reviews are over, until no request waits.
async fn follow(waiting: Arc<Mutex<Waiting>>, store: Store) {
    let mut commits = store.commits();
    loop {
        commits.mark_unchanged();
        let ids = {
            let mut waiting = waiting.lock();
            waiting.reviews.retain(|_, end| end.receiver_count() > 0);
            if waiting.reviews.is_empty() {
                waiting.is_followed = false;
                return;
            }
            waiting.reviews.keys().copied().collect::<Vec<_>>()
        };
        match store.over_among(&ids).await {
            Ok(over) => {
                let mut waiting = waiting.lock();
                for end in over.iter().filter_map(|review| waiting.reviews.remove(review)) {
                    let _ = end.send(());
                }
            }
            Err(error) => {
                tracing::warn!(%error, "could not check the reviews that requests are waiting for");
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                continue;
            }
        }
        tokio::time::sleep(PAUSE).await;
        while let Err(_elapsed) = tokio::time::timeout(ROLL_CALL, commits.changed()).await {
            if waiting.lock().reviews.values().all(|end| end.receiver_count() == 0) {
                break;
            }
        }
    }
}
