//! The number of pending reviews: counted once for all sessions that subscribe to it, and again when reviews have
//! changed. What a session is told depends only on its rights.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::store::{Store, Tally};

/// The minimum time between the ends of counts.
const GAP: Duration = Duration::from_millis(300);
/// The rest after a count, as a multiple of the time that it took, so that counting takes at most a tenth of the time.
const REST: u32 = 9;

/// The counter of a process, shared by all sessions.
pub(super) struct Counter {
    /// The number of changes that may have affected the counts.
    changes: watch::Sender<u64>,
    /// The number of counts begun, and the result of the last one that ended.
    counts: watch::Sender<Counts>,
}

#[derive(Default)]
struct Counts {
    begun: u64,
    last: Option<(u64, Arc<Tally>)>,
}

/// A session's subscription to the counts.
pub(super) struct Counted {
    counts: watch::Receiver<Counts>,
    /// The number of the newest count that is no newer than what the session knows.
    known: u64,
}

impl Counter {
    pub fn new() -> Self {
        Self { changes: watch::Sender::new(0), counts: watch::Sender::default() }
    }

    /// Reports that a review may have changed.
    pub fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Subscribes to the counts that begin from now on.
    pub fn follow(&self) -> Counted {
        let counts = self.counts.subscribe();
        let known = counts.borrow().begun;
        // Without subscribers, nothing was counted.
        self.changed();
        Counted { counts, known }
    }

    /// Counts while there are subscribers, until `stopped` is cancelled.
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
    /// Waits for the next count. Cancel safe.
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
