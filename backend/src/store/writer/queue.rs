//! The changes that wait to be written, in one queue per writer.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use shared::time::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::super::{Change, CommitError, Committed, Operation};
use super::log_share::LogShare;
use crate::flow::guardrail::Inquiry;

/// The largest number of changes that wait for one writer.
pub(super) const WAITING: usize = 1024;
/// How long a change waits for a place in the queue.
const ENQUEUE_TIMEOUT: Duration = Duration::from_secs(2);

/// A waiting change, with its caller.
pub(in crate::store) struct QueuedChange {
    pub change: Change,
    pub caller: Caller,
}

/// The caller that waits for a change, and what was tried to make it.
pub(in crate::store) struct Caller {
    pub answer: oneshot::Sender<CommitAnswer>,
    /// Whether the flows that it needs were compiled for it.
    pub is_prepared: bool,
    /// How often it took too long to decide.
    pub slow: u32,
}

/// The answer to a queued change.
pub(in crate::store) enum CommitAnswer {
    /// The change was made or refused.
    Done(Result<Committed, CommitError>),
    /// Guardrails need answers of programs first; then the change is to be sent again.
    AskFirst { change: Box<Change>, inquiries: Vec<Inquiry>, until: Option<Timestamp> },
}

impl From<CommitError> for CommitAnswer {
    fn from(error: CommitError) -> Self {
        Self::Done(Err(error))
    }
}

/// The waiting changes, in one queue per writer.
pub(in crate::store) struct Queue {
    writers: Vec<mpsc::Sender<QueuedChange>>,
    share: LogShare,
}

impl Queue {
    pub fn new(writers: u32) -> (Self, Vec<mpsc::Receiver<QueuedChange>>) {
        let (senders, receivers) = (0..writers).map(|_| mpsc::channel(WAITING)).unzip();
        (Self { writers: senders, share: LogShare::new(writers) }, receivers)
    }

    /// Queues a change and waits for its answer.
    pub async fn commit(&self, change: Change) -> CommitAnswer {
        let (answer, answered) = oneshot::channel();
        let writer = self.writer_of(&change.operation);
        let unavailable = |why: &str| CommitError::Unavailable(why.to_owned()).into();
        let caller = Caller { answer, is_prepared: false, slow: 0 };
        match writer.send_timeout(QueuedChange { change, caller }, ENQUEUE_TIMEOUT).await {
            Ok(()) => {}
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                return unavailable("too many changes are waiting to be written; try again in a moment");
            }
            Err(mpsc::error::SendTimeoutError::Closed(_)) => return unavailable("the server is stopping"),
        }
        answered.await.unwrap_or_else(|_| {
            let why = "the writer ended, so it is not known whether the change was made";
            CommitError::Unknown(why.to_owned()).into()
        })
    }

    /// The number of changes that no writer has begun.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.writers.iter().map(|queue| queue.max_capacity() - queue.capacity()).sum()
    }

    /// The share of the log that this process writes.
    pub fn share(&self) -> &LogShare {
        &self.share
    }

    /// Distributes changes over the writers by run, so that changes of one run meet in one group instead of waiting for
    /// its lock. A review may go to another writer than its run, and the number of working writers may change; the lock
    /// then keeps the order.
    fn writer_of(&self, operation: &Operation) -> &mpsc::Sender<QueuedChange> {
        let mut hasher = DefaultHasher::new();
        match operation {
            Operation::Launch { run, .. }
            | Operation::Ask { run, .. }
            | Operation::Run { run, .. }
            | Operation::GiveFeedback { run, .. } => {
                run.0.hash(&mut hasher);
            }
            Operation::Review { review, .. } => review.0.hash(&mut hasher),
            _ => 0_u8.hash(&mut hasher),
        }
        let count = u64::from(self.share.working());
        let index = usize::try_from(hasher.finish() % count).unwrap_or(0);
        &self.writers[index]
    }
}
