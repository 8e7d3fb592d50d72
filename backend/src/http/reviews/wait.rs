//! Requests that wait until a review is over. However many there are, one task of this process looks for all of them,
//! after commits only; where nobody waits, there is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::error::Problem;
use shared::id::ReviewId;
use shared::time::Span;
use tokio::sync::watch;

use crate::store::Store;

/// The longest wait of one request.
const LONGEST: Duration = Duration::from_mins(1);
/// How long commits are collected before the next look.
const PAUSE: Duration = Duration::from_millis(50);
/// How long to pause where the database could not be asked.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// How often it is seen who has gone, where nothing is committed.
const ROLL_CALL: Duration = Duration::from_secs(5);

/// The reviews for which somebody waits.
#[derive(Debug, Default)]
pub(in crate::http) struct Waits(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    reviews: HashMap<ReviewId, watch::Sender<()>>,
    /// Whether somebody looks.
    is_followed: bool,
}

/// The end of a review, to be waited for. What was committed before this was made may have to be read.
pub(in crate::http) struct End(watch::Receiver<()>);

impl End {
    /// Waits for it.
    pub async fn come(mut self) {
        // A sender that is gone says so too.
        let _ = self.0.changed().await;
    }
}

impl Waits {
    /// The end of this review.
    pub fn end_of(&self, review: ReviewId, store: &Store) -> End {
        let mut waiting = lock(&self.0);
        let end = waiting.reviews.entry(review).or_insert_with(|| watch::Sender::new(())).subscribe();
        if !std::mem::replace(&mut waiting.is_followed, true) {
            tokio::spawn(follow(Arc::clone(&self.0), store.clone()));
        }
        End(end)
    }
}

/// How long a request may wait.
pub(super) fn checked(wait: Span) -> Result<Duration, Problem> {
    if wait.0 > LONGEST {
        return Err(Problem::invalid("/wait", "at most 60s; ask again for longer"));
    }
    Ok(wait.0)
}

/// Looks after commits until nobody waits any more.
async fn follow(waiting: Arc<Mutex<Waiting>>, store: Store) {
    let mut commits = store.commits();
    loop {
        commits.mark_unchanged();
        let ids = {
            let mut waiting = lock(&waiting);
            waiting.reviews.retain(|_, end| end.receiver_count() > 0);
            if waiting.reviews.is_empty() {
                waiting.is_followed = false;
                return;
            }
            waiting.reviews.keys().copied().collect::<Vec<_>>()
        };
        match store.over_among(&ids).await {
            Ok(over) => {
                let mut waiting = lock(&waiting);
                for end in over.iter().filter_map(|review| waiting.reviews.remove(review)) {
                    let _ = end.send(());
                }
            }
            Err(error) => {
                tracing::warn!(%error, "whether reviews are over that somebody waits for could not be seen");
                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                continue;
            }
        }
        tokio::time::sleep(PAUSE).await;
        while let Err(_elapsed) = tokio::time::timeout(ROLL_CALL, commits.changed()).await {
            if lock(&waiting).reviews.values().all(|end| end.receiver_count() == 0) {
                break;
            }
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
