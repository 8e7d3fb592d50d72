//! Requests that wait until a review is over. However many there are, one task of this process looks for all of them,
//! after commits only; where nobody waits, there is none. How many requests of one person wait is limited, since each holds
//! a connection for as long as it does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shared::error::{Code, Problem};
use shared::id::{ReviewId, Username};
use shared::time::Span;
use tokio::sync::watch;

use crate::store::Store;

/// The longest wait of one request.
pub(in crate::http) const LONGEST: Duration = Duration::from_mins(1);
/// How many requests of one person may wait at once.
const EACH: usize = 20;
/// After how many seconds somebody with more of them may try again.
const TRY_AGAIN: u64 = 1;
/// How long commits are collected before the next look.
const PAUSE: Duration = Duration::from_millis(50);
/// How long to pause where the database could not be asked.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// How often it is seen who has gone, where nothing is committed.
const ROLL_CALL: Duration = Duration::from_secs(5);

/// The reviews for which somebody waits.
#[derive(Debug, Default)]
pub(in crate::http) struct ReviewWaits(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    reviews: HashMap<ReviewId, watch::Sender<()>>,
    /// How many requests of each person wait.
    people: HashMap<Username, usize>,
    /// Whether somebody looks.
    is_followed: bool,
}

/// The end of a review, to be waited for. What was committed before this was made may have to be read.
pub(in crate::http) struct End {
    over: watch::Receiver<()>,
    review: ReviewId,
    person: Username,
    waiting: Arc<Mutex<Waiting>>,
}

impl End {
    /// Waits for it.
    pub async fn come(&mut self) {
        // A sender that is gone says so too.
        let _ = self.over.changed().await;
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut waiting = self.waiting.lock();
        if let Some(count) = waiting.people.get_mut(&self.person) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                waiting.people.remove(&self.person);
            }
        }
        // This one still counts among the receivers.
        if waiting.reviews.get(&self.review).is_some_and(|end| end.receiver_count() <= 1) {
            waiting.reviews.remove(&self.review);
        }
    }
}

impl ReviewWaits {
    /// The end of this review, for somebody who waits for no more than they may.
    pub fn end_of(&self, review: ReviewId, person: &Username, store: &Store) -> Result<End, Problem> {
        let mut waiting = self.0.lock();
        let count = waiting.people.entry(person.clone()).or_default();
        if *count >= EACH {
            let problem = Problem { retry_after: Some(TRY_AGAIN), ..Problem::new(Code::TooManyRequests) };
            return Err(problem.detail(format!("{EACH} of your requests are already waiting: ask without `wait`")));
        }
        *count += 1;
        let over = waiting.reviews.entry(review).or_insert_with(|| watch::Sender::new(())).subscribe();
        if !std::mem::replace(&mut waiting.is_followed, true) {
            tokio::spawn(follow(Arc::clone(&self.0), store.clone()));
        }
        Ok(End { over, review, person: person.clone(), waiting: Arc::clone(&self.0) })
    }
}

/// How long a request may wait.
pub(super) fn checked(wait: Span) -> Result<Duration, Problem> {
    if wait.0 > LONGEST {
        return Err(Problem::invalid("/wait", "at most 60s; to wait longer, ask again"));
    }
    Ok(wait.0)
}

/// Looks after commits until nobody waits any more.
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
