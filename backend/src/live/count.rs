//! The number of pending reviews: counted once for all sessions that subscribe to it, and again when reviews have
//! changed. What a session is told depends only on its rights.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::store::{Store, Tally};

/// The shortest time from one count to the next.
const GAP: Duration = Duration::from_millis(300);
/// How many times as long as a count took nothing is counted afterwards: at most a tenth of the time is spent on it.
const REST: u32 = 9;

/// The counter of a process.
pub(super) struct Counter {
    /// How many changes there may have been.
    changes: watch::Sender<u64>,
    /// How many counts were begun, and what came of the last that ended.
    counts: watch::Sender<Counts>,
}

#[derive(Default)]
struct Counts {
    begun: u64,
    last: Option<(u64, Arc<Tally>)>,
}

/// A session's view of the counts, from a moment on.
pub(super) struct Counted {
    counts: watch::Receiver<Counts>,
    /// Counts up to this one are older than what the session knows.
    known: u64,
}

impl Counter {
    pub fn new() -> Self {
        Self { changes: watch::Sender::new(0), counts: watch::Sender::default() }
    }

    /// A review has changed, or may have.
    pub fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Follows the counts that begin from now on.
    pub fn follow(&self) -> Counted {
        let counts = self.counts.subscribe();
        let known = counts.borrow().begun;
        // While nobody listened nothing was counted.
        self.changed();
        Counted { counts, known }
    }

    /// Counts while somebody listens, until it is stopped.
    pub async fn run(&self, store: &Store, stopped: &CancellationToken) {
        let mut changes = self.changes.subscribe();
        loop {
            tokio::select! {
                () = stopped.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            if self.counts.receiver_count() == 0 {
                continue;
            }
            let began = Instant::now();
            self.counts.send_if_modified(|counts| {
                counts.begun += 1;
                false
            });
            let counted = store.tally().await;
            match counted {
                Ok(tally) => self.counts.send_modify(|counts| counts.last = Some((counts.begun, Arc::new(tally)))),
                Err(error) => {
                    tracing::warn!(%error, "the pending reviews could not be counted; trying again");
                    self.changed();
                }
            }
            let gap = GAP.max(began.elapsed() * REST);
            tokio::select! {
                () = stopped.cancelled() => return,
                () = sleep(gap) => {}
            }
        }
    }
}

impl Counted {
    /// The next count. It may be dropped at any time.
    pub async fn next(&mut self) -> Arc<Tally> {
        loop {
            let newer = |last: &(u64, Arc<Tally>)| (last.0 > self.known).then(|| (last.0, Arc::clone(&last.1)));
            let found = self.counts.borrow_and_update().last.as_ref().and_then(newer);
            if let Some((number, tally)) = found {
                self.known = number;
                return tally;
            }
            if self.counts.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The next count of the queue.
pub(super) async fn next(counted: Option<&mut Counted>) -> Arc<Tally> {
    match counted {
        Some(counted) => counted.next().await,
        None => std::future::pending().await,
    }
}
