//! The one write path. A writer takes what waits (up to [`GROUP`] changes), reads all that they rest on in a few
//! queries inside one transaction, decides each change after the other in memory, writes what came of it in a few
//! statements, commits, and answers.
//!
//! Since a run is read inside the transaction that writes it (SQLite has one writer; PostgreSQL's take the locks of
//! their runs first), nothing can move under a decision, and there is no retry. A group that fails as a whole is run
//! again one by one, so that a bad change hurts only itself.

mod deputies;
mod fate;
mod flows;
mod grants;
mod group;
mod load;
mod locks;
mod notifications;
mod people;
mod rights;
mod runs;
mod sign_in;
mod write;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use sqlx::error::DatabaseError;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use self::fate::Fate;
use self::group::Group;
use super::{Answer, Change, CommitError, Error, Inner, Operation};
use crate::clock::Moment;
use crate::engine::Refusal;
use shared::error::Mistake;
use shared::time::Timestamp;

/// The most changes in one transaction. Twice as many would come a little cheaper each, but a full load of callers would
/// then wait for one commit together, and nobody would keep the other cores busy meanwhile.
const GROUP: usize = 32;
/// The most changes that wait for one writer.
const WAITING: usize = 1024;
/// How long a change waits for a place in the queue.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often what has expired is cleaned up.
const CLEANUP: Duration = Duration::from_mins(10);

/// A change that waits, and where its answer goes.
pub(super) struct Job {
    change: Change,
    answer: oneshot::Sender<Result<Answer, CommitError>>,
}

/// Where changes wait, one queue a writer.
pub(super) struct Queue(Vec<mpsc::Sender<Job>>);

impl Queue {
    pub fn new(writers: u32) -> (Self, Vec<mpsc::Receiver<Job>>) {
        let (senders, receivers) = (0..writers).map(|_| mpsc::channel(WAITING)).unzip();
        (Self(senders), receivers)
    }

    /// Puts a change in the queue, and waits for its answer.
    pub async fn commit(&self, change: Change) -> Result<Answer, CommitError> {
        let (answer, answered) = oneshot::channel();
        let writer = self.writer_of(&change.operation);
        match writer.send_timeout(Job { change, answer }, PATIENCE).await {
            Ok(()) => {}
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                return Err(CommitError::Unavailable("too much waits to be written; try again in a moment".to_owned()));
            }
            Err(mpsc::error::SendTimeoutError::Closed(_)) => {
                return Err(CommitError::Unavailable("the server is stopping".to_owned()));
            }
        }
        answered.await.unwrap_or_else(|_| {
            Err(CommitError::Database("the writer ended; whether the change was made is not known".to_owned()))
        })
    }

    /// What concerns one run goes through one writer, so that it meets in one group instead of waiting for a lock.
    fn writer_of(&self, operation: &Operation) -> &mpsc::Sender<Job> {
        let mut hasher = DefaultHasher::new();
        match operation {
            Operation::Launch { run, .. } | Operation::Run { run, .. } => run.0.hash(&mut hasher),
            Operation::Review { review, .. } => review.0.hash(&mut hasher),
            _ => 0_u8.hash(&mut hasher),
        }
        let count = u64::try_from(self.0.len()).unwrap_or(1).max(1);
        let index = usize::try_from(hasher.finish() % count).unwrap_or(0);
        &self.0[index]
    }
}

/// Starts a writer. SQLite's has a thread, where its statements run.
pub(super) fn start(
    inner: &Arc<Inner>,
    queue: mpsc::Receiver<Job>,
    background: &mut JoinSet<()>,
) -> Result<(), sqlx::Error> {
    let writer = run(Arc::clone(inner), queue);
    if inner.db.is_postgres() {
        background.spawn(writer);
        return Ok(());
    }
    let runtime = Handle::current();
    let (done, ended) = oneshot::channel::<()>();
    let work = move || {
        runtime.block_on(writer);
        drop(done);
    };
    std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(work)?;
    // A runtime that ends without closing the store ends the thread too.
    let stop = inner.stop.clone().drop_guard();
    background.spawn(async move {
        let _ = ended.await;
        drop(stop);
    });
    Ok(())
}

/// A writer: ends when the store is closed and what waited is written.
async fn run(inner: Arc<Inner>, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(GROUP);
    let mut cleaned = Timestamp::default();
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
        }
        let now = inner.clock.now();
        if now.since(cleaned) >= CLEANUP && !stopping {
            cleaned = now;
            if let Err(error) = write::clean_up(&inner.db, now).await {
                tracing::warn!(%error, "removing what has expired");
            }
        }
    }
}

/// Writes a group; where it fails as a whole, each change alone.
async fn write_all(inner: &Inner, mut jobs: Vec<Job>) {
    // Whoever has gone no longer wants an answer, but the change was accepted: it is made all the same.
    let changes: Vec<Change> = jobs.iter().map(|job| job.change.clone()).collect();
    match write_group(inner, changes).await {
        Ok(answers) => {
            for (job, answer) in jobs.into_iter().zip(answers) {
                let _ = job.answer.send(answer);
            }
        }
        Err(error) if jobs.len() == 1 => {
            tracing::error!(%error, "a change could not be written");
            if let Some(job) = jobs.pop() {
                let _ = job.answer.send(Err(error));
            }
        }
        Err(error) => {
            tracing::warn!(%error, changes = jobs.len(), "a group could not be written: writing each change alone");
            for job in jobs {
                Box::pin(write_all(inner, vec![job])).await;
            }
        }
    }
}

/// One transaction. `Err`: nothing of it was written.
async fn write_group(inner: &Inner, changes: Vec<Change>) -> Result<Vec<Result<Answer, CommitError>>, CommitError> {
    let mut conn = inner.db.write_here().await.map_err(failed)?;
    let locks =
        if inner.db.is_postgres() { locks::take(&mut conn, &changes).await.map_err(failed)? } else { Vec::new() };
    let mut group = Group::load(inner, &mut conn, &changes).await.map_err(failed)?;
    let mut answers = Vec::with_capacity(changes.len());
    for change in changes {
        answers.push(group.decide(change, Moment::of(&*inner.clock)));
    }
    if group.is_empty() {
        conn.rollback().await.map_err(failed)?;
        return Ok(answers);
    }
    let commit = shared::id::CommitId(Moment::of(&*inner.clock).ids().uuid());
    let written = group.write(&mut conn, commit).await.map_err(failed)?;
    if let Err(error) = conn.commit().await {
        match fate::after(inner, &locks, &written, &error).await {
            Fate::Committed => {}
            Fate::NotCommitted => return Err(failed(error)),
            // Each answer is the same: nothing may be tried again, since it may have been made.
            Fate::Unknown => {
                let unknown = || {
                    Err(CommitError::Unknown(format!(
                        "the connection was lost during COMMIT ({error}), and whether the change was made is not known"
                    )))
                };
                return Ok(answers.iter().map(|_| unknown()).collect());
            }
        }
    }
    if !inner.db.is_postgres() && !written.large {
        inner.newest.add(group.take_log(written.seq));
    }
    inner.wake.committed(written.xid, group.has_new_tasks());
    Ok(answers)
}

fn failed(error: impl Into<Error>) -> CommitError {
    match error.into() {
        Error::Database(error) if is_away(&error) => {
            CommitError::Unavailable("the database does not answer; try again in a moment".to_owned())
        }
        Error::Database(error) if is_full(&error) => CommitError::Unavailable(
            "the disk of the database is full; nothing was changed, and nothing can be until there is room".to_owned(),
        ),
        Error::Database(error) => CommitError::Database(error.to_string()),
        error @ Error::TooDeep => Refusal::Invalid(vec![Mistake::new("", "invalid", error.to_string())]).into(),
        other => CommitError::Database(other.to_string()),
    }
}

/// Whether the connection is gone, or the database is: it goes down, comes up, or ends connections (class 57P).
fn is_away(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut | sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    }
}

/// Whether there is no room: `SQLITE_FULL`, or PostgreSQL's `disk_full`.
fn is_full(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| code == "13" || code == "53100")
}
