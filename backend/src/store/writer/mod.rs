//! The only write path. A writer takes the waiting changes (up to [`GROUP`]), reads everything that they depend on in a
//! few queries inside one transaction, decides one change after the other in memory, writes the results in a few
//! statements, commits, and answers.
//!
//! Since a run is read inside the transaction that writes it (SQLite has one writer; in PostgreSQL, writers take the
//! locks of their runs first), nothing can change under a decision, and no retry is needed. If the database is
//! unreachable, the whole group gets that error at once. If one change may be to blame, the group is divided until that
//! change stands alone. A change whose caller has gone before it was begun is dropped, and never made later.

mod archive;
mod clean_up;
mod commit_outcome;
mod credentials;
mod decide;
mod deputies;
mod erase;
mod feedback;
mod flows;
mod grants;
mod group;
mod load;
mod load_runs;
mod locks;
mod log_numbers;
mod log_share;
mod named;
mod notifications;
mod pending;
mod places;
mod provider;
mod questions;
mod rights;
mod runs;
mod sign_in;
mod unanswered;
mod users;
mod views;
mod write;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use self::commit_outcome::CommitOutcome;
use self::group::Group;
use self::log_share::LogShare;
use self::named::Named;
use super::change_signal::News;
use super::{Change, CommitError, Committed, Error, Inner, Operation};
use crate::clock::Moment;
use crate::engine::Refusal;
use crate::flow::guardrail::Inquiry;
use crate::flow::{LARGE_STACK, on_large_stack};
use shared::time::Timestamp;

/// The largest number of changes in one transaction. With twice as many, each would cost slightly less, but under full
/// load all callers would wait for one commit together, and the other cores would be idle meanwhile.
const GROUP: usize = 32;
/// The largest number of changes that wait for one writer.
const WAITING: usize = 1024;
/// How long a change waits for a place in the queue.
const ENQUEUE_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval between clean-ups of expired rows, and the shorter one if some were left.
const CLEANUP: Duration = Duration::from_mins(10);
const CLEANUP_OF_MORE: Duration = Duration::from_millis(100);

/// A waiting change, with the channel for its answer.
pub(super) struct QueuedChange {
    change: Change,
    answer: oneshot::Sender<CommitAnswer>,
}

/// The answer to a queued change.
pub(super) enum CommitAnswer {
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
pub(super) struct Queue {
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
        match writer.send_timeout(QueuedChange { change, answer }, ENQUEUE_TIMEOUT).await {
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

/// Returns the task of a writer, to be run in the background. The writer for SQLite has its own thread, on which its
/// statements run.
pub(super) fn start(
    inner: &Arc<Inner>,
    queue: mpsc::Receiver<QueuedChange>,
) -> std::io::Result<BoxFuture<'static, ()>> {
    let writer = run(Arc::clone(inner), queue);
    if inner.db.is_postgres() {
        return Ok(writer.boxed());
    }
    let runtime = Handle::current();
    let (done, ended) = oneshot::channel::<()>();
    let work = move || {
        runtime.block_on(writer);
        drop(done);
    };
    // With this stack, templates, conditions and schemas need no separate one: mapping one costs ten times as much as a
    // template.
    std::thread::Builder::new().name("sqlite-writer".to_owned()).stack_size(LARGE_STACK).spawn(work)?;
    // If the runtime ends without closing the store, the thread must end, too.
    let stop = inner.stop.clone().drop_guard();
    Ok(async move {
        let _ = ended.await;
        // The thread ended by itself, so the store is not stopped.
        stop.disarm();
    }
    .boxed())
}

/// Runs a writer until the store is closed and all waiting changes are written.
async fn run(inner: Arc<Inner>, mut queue: mpsc::Receiver<QueuedChange>) {
    let mut jobs = Vec::with_capacity(GROUP);
    // By the uptime: the clock may be set back.
    let mut cleaned = None::<Duration>;
    // When to continue, if some expired rows were left.
    let mut more_at = None;
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            () = inner.stop.cancelled(), if !stopping => {
                stopping = true;
                queue.close();
            }
            count = queue.recv_many(&mut jobs, GROUP) => {
                if count == 0 {
                    return;
                }
                write_all(&inner, std::mem::take(&mut jobs)).await;
            }
            () = sleep(if more_at.is_some() { CLEANUP_OF_MORE } else { CLEANUP }), if !stopping => {}
        }
        let now = inner.clock.now();
        let uptime = inner.clock.uptime();
        let is_due = cleaned.is_none_or(|at| uptime.saturating_sub(at) >= CLEANUP)
            || more_at.is_some_and(|at| at <= Instant::now());
        if is_due && !stopping {
            cleaned = Some(uptime);
            more_at = match clean_up::some(&inner.db, now).await {
                Ok(more) => more.then(|| Instant::now() + CLEANUP_OF_MORE),
                Err(error) => {
                    tracing::warn!(%error, "could not remove expired rows; trying again later");
                    None
                }
            };
        }
    }
}

/// Writes a group. If it fails and one change may be to blame, each half is written separately.
async fn write_all(inner: &Inner, jobs: Vec<QueuedChange>) {
    // A change whose caller no longer waits is not begun; the caller was told that it may not have taken effect.
    let (jobs, gone): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| !job.answer.is_closed());
    if !gone.is_empty() {
        tracing::info!(changes = gone.len(), "changes were dropped before they began: no one waits for them");
    }
    if jobs.is_empty() {
        return;
    }
    let (changes, answers): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.change, job.answer)).unzip();
    match write_group(inner, &changes).await {
        Ok(results) => {
            for ((answer, mut change), result) in answers.into_iter().zip(changes).zip(results) {
                let _ = answer.send(match result {
                    Err(CommitError::Refused(Refusal::Unasked { inquiries, until })) if change.looked().is_some() => {
                        CommitAnswer::AskFirst { change: Box::new(change), inquiries, until }
                    }
                    result => CommitAnswer::Done(result),
                });
            }
        }
        Err(error) if changes.len() > 1 && error.can_be_due_to_one_change() => {
            tracing::warn!(%error, changes = changes.len(), "a group could not be written; writing its two halves");
            let jobs = changes.into_iter().zip(answers).map(|(change, answer)| QueuedChange { change, answer });
            let mut first: Vec<QueuedChange> = jobs.collect();
            let second = first.split_off(first.len() / 2);
            Box::pin(write_all(inner, first)).await;
            Box::pin(write_all(inner, second)).await;
        }
        Err(error) => {
            tracing::error!(%error, changes = changes.len(), "changes could not be written");
            for answer in answers {
                let _ = answer.send(error.of_commit().into());
            }
        }
    }
}

/// Writes a group in one transaction. After an error, nothing of it was written.
async fn write_group(inner: &Inner, changes: &[Change]) -> Result<Vec<Result<Committed, CommitError>>, Error> {
    let mut conn = inner.db.writer_on_this_thread().await?;
    let named = Named::of_all(changes);
    let run_of = load::runs_of(&mut conn, &named.reviews).await?;
    let locks =
        if inner.db.is_postgres() { locks::take(&mut conn, changes, &named, &run_of).await? } else { Vec::new() };
    let mut group = Group::load(inner, &mut conn, changes, named, run_of).await?;
    // One stack for all templates, conditions and schemas of the group.
    let decide = |change| group.decide(change, Moment::of(&*inner.clock));
    let answers: Vec<_> = on_large_stack(|| changes.iter().map(decide).collect());
    if group.is_empty() {
        conn.rollback().await?;
        return Ok(answers);
    }
    let commit = shared::id::CommitId(Moment::of(&*inner.clock).ids().uuid());
    let written = group.write(inner, &mut conn, commit).await?;
    if let Err(error) = conn.commit().await {
        match commit_outcome::after(inner, &locks, &written, &error).await {
            CommitOutcome::Committed => {}
            CommitOutcome::NotCommitted => return Err(error.into()),
            // All changes get the same answer: none may be retried, since it may have been made.
            CommitOutcome::Unknown => {
                let unknown = || {
                    Err(CommitError::Unknown(format!(
                        "the connection was lost during COMMIT ({error}); it is not known whether the change was made"
                    )))
                };
                return Ok(answers.iter().map(|_| unknown()).collect());
            }
        }
    }
    group.measure();
    let beside_runs = group.out.events.iter().any(|(run, _)| run.is_none());
    let news = News { tasks: group.has_new_tasks(), beside_runs };
    if !group.erasures.is_empty() {
        // Recent rows in memory may still contain the erased data.
        inner.recent.forget();
    } else if !written.large {
        inner.recent.add(group.take_log(written.seq));
    }
    inner.signal.committed(news);
    Ok(answers)
}
