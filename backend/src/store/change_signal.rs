//! Wakes tasks that wait for commits and for work: immediately after commits of this process, by NOTIFY and LISTEN
//! (PostgreSQL) or the file's version (SQLite) after commits of others, and by polling every second in case a notice is
//! lost. Owns the one connection that listens, also for the text of running agents.
//!
//! NOTIFY is sent off the write path: inside the transaction it would cost more than the transaction. A notice names
//! its sender, so that no server wakes itself, and says whether there are new tasks, so that the worker of an idle
//! server does not look for tasks whenever a busy server commits. While commits keep coming, one notice covers those of
//! several milliseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use super::cursor::LogPlace;
use super::db::{Conn, Db, Sql};
use super::driver_error::DriverError;
use super::recent_rows::RecentRows;
use super::{Error, Inner, stream_relay};
use crate::token_bucket::TokenBucket;

const CHANNEL: &str = "countersign";
/// The suffix of a notice without new tasks. A notice without it may have some: earlier versions did not tell.
const NO_TASKS: &str = " no-tasks";
/// The interval at which the database is polled.
const POLL: Duration = Duration::from_secs(1);
/// The number of notices, or steps of a follower, that need not wait after a pause.
pub(super) const AT_ONCE: u32 = 16;
/// The interval between notices while this process keeps committing.
const NOTICE_INTERVAL: Duration = Duration::from_millis(10);
/// The time after a notice during which other processes are assumed to write.
const OTHERS_WRITE: Duration = Duration::from_secs(1);

/// The commits that this process made or noticed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Commits {
    /// The number of commits. When it grows, there may be something to read.
    pub count: u64,
    /// When another process last announced a commit. `None` if never.
    others: Option<Instant>,
}

impl Commits {
    /// Whether other processes write, too. If so, the rows that follow a commit of this process are probably theirs.
    pub(super) fn are_shared(self) -> bool {
        self.others.is_some_and(|at| at.elapsed() < OTHERS_WRITE)
    }
}

/// Signals commits, and commits with new tasks.
pub(super) struct ChangeSignal {
    /// The name that distinguishes this process from others.
    name: String,
    commits: watch::Sender<Commits>,
    tasks_due: watch::Sender<u64>,
    committed: Notify,
    /// Whether tasks were added since the last notice to other processes.
    unannounced_tasks: AtomicBool,
}

impl ChangeSignal {
    pub fn new(name: String) -> Self {
        Self {
            name,
            commits: watch::Sender::new(Commits::default()),
            tasks_due: watch::Sender::new(0),
            committed: Notify::new(),
            unannounced_tasks: AtomicBool::new(false),
        }
    }

    pub fn commits(&self) -> watch::Receiver<Commits> {
        self.commits.subscribe()
    }

    pub fn tasks_due(&self) -> watch::Receiver<u64> {
        self.tasks_due.subscribe()
    }

    /// Signals that this process has committed. `tasks`: with new tasks.
    pub fn committed(&self, tasks: bool) {
        self.commits.send_modify(|commits| commits.count += 1);
        if tasks {
            self.tasks_due.send_modify(|count| *count += 1);
            self.unannounced_tasks.store(true, Ordering::Release);
        }
        self.committed.notify_one();
    }

    /// Signals that another process may have committed. `said`: it announced the commit itself.
    fn noticed(&self, newest: &RecentRows, tasks: bool, said: bool) {
        newest.forget();
        self.commits.send_modify(|commits| {
            commits.count += 1;
            if said {
                commits.others = Some(Instant::now());
            }
        });
        if tasks {
            self.tasks_due.send_modify(|count| *count += 1);
        }
    }

    /// The payload of a notice about the commits since the last one.
    fn payload(&self) -> String {
        let tasks = self.unannounced_tasks.swap(false, Ordering::AcqRel);
        format!("{}{}", self.name, if tasks { "" } else { NO_TASKS })
    }

    /// Whether a notice of another process announces tasks. `None` for a notice of this process.
    fn tasks_of(&self, payload: &str) -> Option<bool> {
        let (name, tasks) = payload.strip_suffix(NO_TASKS).map_or((payload, true), |name| (name, false));
        (name != self.name).then_some(tasks)
    }
}

/// Listens and polls until the store is closed.
pub(super) async fn run(inner: Arc<Inner>) {
    let work = async {
        match &inner.db {
            Db::Sqlite { .. } => watch_file(&inner).await,
            Db::Postgres { .. } => {
                tokio::join!(signal_others(&inner), listen(&inner), watch_log(&inner));
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = inner.stop.cancelled() => {}
    }
}

/// SQLite: `data_version` changes when another connection has written.
async fn watch_file(inner: &Inner) {
    let mut conn: Option<Conn> = None;
    let mut seen = None;
    loop {
        sleep(POLL).await;
        if conn.is_none() {
            conn = inner.db.read().await.inspect_err(report).ok();
        }
        let Some(open) = &mut conn else { continue };
        match open
            .fetch_one(Sql::new("PRAGMA data_version"))
            .await
            .and_then(|row| row.map(|row| row.int(0)).transpose())
        {
            Ok(version) => {
                if seen.replace(version).is_some_and(|before| before != version) {
                    inner.signal.noticed(&inner.recent, true, false);
                }
            }
            Err(error) => {
                report(&error);
                conn = None;
            }
        }
    }
}

/// PostgreSQL: notifies other processes of commits, several per notice.
async fn signal_others(inner: &Inner) {
    let mut pace = TokenBucket::new(AT_ONCE, NOTICE_INTERVAL);
    loop {
        inner.signal.committed.notified().await;
        sleep(pace.take(Instant::now())).await;
        if let Err(error) = notify(inner).await {
            report(&error);
        }
    }
}

async fn notify(inner: &Inner) -> Result<(), DriverError> {
    let sql = Sql::new("SELECT pg_notify('countersign', ").bind(inner.signal.payload()).push(")::text");
    let notified = async { inner.db.read().await?.fetch_one(sql).await };
    if let Err(error) = notified.await {
        // The notice may not have arrived, so the next one announces the tasks again.
        inner.signal.unannounced_tasks.store(true, Ordering::Release);
        return Err(error);
    }
    Ok(())
}

async fn listen(inner: &Inner) {
    loop {
        if let Err(error) = listen_once(inner).await {
            report(&error);
        }
        sleep(POLL).await;
    }
}

async fn listen_once(inner: &Inner) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect(&inner.url).await?;
    listener.listen_all([CHANNEL, stream_relay::CHANNEL]).await?;
    loop {
        let notice = listener.recv().await?;
        if notice.channel() == stream_relay::CHANNEL {
            stream_relay::receive(inner, notice.payload());
        } else if let Some(tasks) = inner.signal.tasks_of(notice.payload()) {
            inner.signal.noticed(&inner.recent, tasks, true);
        }
    }
}

/// PostgreSQL: polls the head of the log, in case a NOTIFY was lost.
async fn watch_log(inner: &Inner) {
    let mut seen = None;
    loop {
        sleep(POLL).await;
        match head(inner).await {
            Ok(now) => {
                if seen.replace(now).is_some_and(|before| before != now) {
                    inner.signal.noticed(&inner.recent, true, false);
                }
            }
            Err(error) => report(&error),
        }
    }
}

async fn head(inner: &Inner) -> Result<LogPlace, Error> {
    inner.db.read().await?.head().await
}

fn report(error: &impl std::fmt::Display) {
    tracing::warn!(%error, "could not watch the database for commits");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_notified_of_tasks_once_and_no_process_notifies_itself() {
        let (one, other) = (ChangeSignal::new("one".to_owned()), ChangeSignal::new("other".to_owned()));
        one.committed(true);
        one.committed(false);
        let notice = one.payload();
        assert_eq!((other.tasks_of(&notice), one.tasks_of(&notice)), (Some(true), None));
        one.committed(false);
        let notice = one.payload();
        assert_eq!((other.tasks_of(&notice), one.tasks_of(&notice)), (Some(false), None));
        assert_eq!(other.tasks_of("one"), Some(true), "a server of an earlier version does not say");
    }
}
