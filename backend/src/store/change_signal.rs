//! Wakes tasks that wait for commits and for work: immediately after commits of this process, by NOTIFY and LISTEN
//! (PostgreSQL) or the file's version (SQLite) after commits of others, and by polling every second in case a notice is
//! lost. Owns the one connection that listens, also for the text of running agents.
//!
//! NOTIFY is sent off the write path: inside the transaction it would cost more than the transaction. A notice names
//! its sender, so that no server wakes itself. It says whether there are new tasks, so that the worker of an idle server
//! does not look for tasks whenever a busy server commits, and whether the log has new rows that belong to no run, so
//! that a server without listeners does not read the log for each notice. While commits keep coming, one notice covers
//! those of several milliseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgNotification};
use sqlx::{Acquire, Connection as _};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::cursor::LogPlace;
use super::db::{Db, Sql};
use super::driver_error::DriverError;
use super::postgres::{PING, in_time};
use super::recent_rows::RecentRows;
use super::sqlite::{self, RunsOn, column};
use super::{Error, Inner, stream_relay};
use crate::token_bucket::TokenBucket;

const CHANNEL: &str = "countersign";
/// The suffix of a notice without new tasks. A notice without it may have some: earlier versions did not tell.
const NO_TASKS: &str = " no-tasks";
/// The suffix, before that one, of a notice whose rows in the log all belong to runs. A notice without it may have
/// others.
const OF_RUNS: &str = " of-runs";
/// The interval at which the database is polled.
const POLL: Duration = Duration::from_secs(1);
/// The time without a notice after which the connection that listens is checked.
const SILENCE: Duration = Duration::from_secs(30);
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
    /// The number of those that may have written log rows that belong to no run.
    pub beside_runs: u64,
    /// When another process last announced a commit. `None` if never.
    others: Option<Instant>,
}

impl Commits {
    /// Whether other processes write, too. If so, the rows that follow a commit of this process are probably theirs.
    pub(super) fn are_shared(self) -> bool {
        self.others.is_some_and(|at| at.elapsed() < OTHERS_WRITE)
    }
}

/// What followers and workers need to know of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct News {
    /// Whether there may be new tasks.
    pub tasks: bool,
    /// Whether there may be new log rows that belong to no run.
    pub beside_runs: bool,
}

impl News {
    /// What is assumed of commits of which nothing is known.
    const UNKNOWN: Self = Self { tasks: true, beside_runs: true };
}

/// Signals commits, and commits with new tasks.
pub(super) struct ChangeSignal {
    /// The name that distinguishes this process from others.
    name: String,
    commits: watch::Sender<Commits>,
    tasks_due: watch::Sender<u64>,
    committed: Notify,
    /// Whether tasks, and log rows that belong to no run, were added since the last notice to other processes.
    unannounced_tasks: AtomicBool,
    unannounced_beside_runs: AtomicBool,
}

impl ChangeSignal {
    pub fn new(name: String) -> Self {
        Self {
            name,
            commits: watch::Sender::new(Commits::default()),
            tasks_due: watch::Sender::new(0),
            committed: Notify::new(),
            unannounced_tasks: AtomicBool::new(false),
            unannounced_beside_runs: AtomicBool::new(false),
        }
    }

    pub fn commits(&self) -> watch::Receiver<Commits> {
        self.commits.subscribe()
    }

    pub fn tasks_due(&self) -> watch::Receiver<u64> {
        self.tasks_due.subscribe()
    }

    /// Signals that this process has committed.
    pub fn committed(&self, news: News) {
        self.send(news, None);
        if news.tasks {
            self.unannounced_tasks.store(true, Ordering::Release);
        }
        if news.beside_runs {
            self.unannounced_beside_runs.store(true, Ordering::Release);
        }
        self.committed.notify_one();
    }

    /// Signals that another process may have committed. `said`: it announced the commit itself.
    fn noticed(&self, newest: &RecentRows, news: News, said: bool) {
        newest.forget();
        self.send(news, said.then(Instant::now));
    }

    fn send(&self, news: News, others: Option<Instant>) {
        self.commits.send_modify(|commits| {
            commits.count += 1;
            commits.beside_runs += u64::from(news.beside_runs);
            commits.others = others.or(commits.others);
        });
        if news.tasks {
            self.tasks_due.send_modify(|count| *count += 1);
        }
    }

    /// The payload of a notice about the commits since the last one.
    fn payload(&self) -> String {
        let beside_runs = self.unannounced_beside_runs.swap(false, Ordering::AcqRel);
        let tasks = self.unannounced_tasks.swap(false, Ordering::AcqRel);
        let of_runs = if beside_runs { "" } else { OF_RUNS };
        format!("{}{of_runs}{}", self.name, if tasks { "" } else { NO_TASKS })
    }

    /// What a notice of another process announces. `None` for a notice of this process.
    fn news_in(&self, payload: &str) -> Option<News> {
        let (rest, tasks) = payload.strip_suffix(NO_TASKS).map_or((payload, true), |rest| (rest, false));
        let (name, beside_runs) = rest.strip_suffix(OF_RUNS).map_or((rest, true), |name| (name, false));
        (name != self.name).then_some(News { tasks, beside_runs })
    }
}

/// Listens and polls until the store is closed.
pub(super) async fn run(inner: Arc<Inner>) {
    let work = async {
        match &inner.db {
            Db::Sqlite { writer, .. } => watch_file(&inner, writer).await,
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

/// SQLite: the version of the file changes when another process has written.
async fn watch_file(inner: &Inner, writer: &sqlite::Pool) {
    let mut seen = None;
    loop {
        sleep(POLL).await;
        match version_of_others(writer).await {
            Ok(version) => {
                if seen.replace(version).is_some_and(|before| before != version) {
                    inner.signal.noticed(&inner.recent, News::UNKNOWN, false);
                }
            }
            Err(error) => report(&error),
        }
    }
}

/// Returns a number that changes when the file is written with another connection than the writer's, the only one with
/// which this process writes.
async fn version_of_others(writer: &sqlite::Pool) -> Result<i64, DriverError> {
    let rows = writer.acquire(RunsOn::BlockingThread).await?.fetch(Sql::new("PRAGMA data_version")).await?;
    column(rows.first().map_or(&[], Vec::as_slice), 0)
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
        // The notice may not have arrived, so the next one announces everything again.
        inner.signal.unannounced_tasks.store(true, Ordering::Release);
        inner.signal.unannounced_beside_runs.store(true, Ordering::Release);
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
        let notice = next_notice(&mut listener, SILENCE).await?;
        if notice.channel() == stream_relay::CHANNEL {
            stream_relay::receive(inner, notice.payload());
        } else if let Some(news) = inner.signal.news_in(notice.payload()) {
            inner.signal.noticed(&inner.recent, news, true);
        }
    }
}

/// Returns the next notice. A connection that the network lost is as silent as one without notices, so after some silence
/// it must answer a ping; if it does not, this fails, and another one has to be opened.
async fn next_notice(listener: &mut PgListener, silence: Duration) -> Result<PgNotification, sqlx::Error> {
    loop {
        if let Ok(notice) = timeout(silence, listener.recv()).await {
            return notice;
        }
        in_time(PING, async { Acquire::acquire(&mut *listener).await?.ping().await }).await?;
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
                    inner.signal.noticed(&inner.recent, News::UNKNOWN, false);
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::store::sqlite::PoolUse;
    use crate::store::testing::Database;

    #[tokio::test]
    async fn a_connection_that_the_network_lost_is_not_listened_to_for_ever() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://postgres@{}/test?sslmode=disable", server.local_addr().unwrap());
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&is_lost);
        tokio::spawn(async move {
            let (mut conn, _) = server.accept().await.unwrap();
            let mut message = [0; 1024];
            // As PostgreSQL does, it accepts the session, and then says after each message that it is ready.
            conn.write_all(b"R\0\0\0\x08\0\0\0\0").await.unwrap();
            while matches!(conn.read(&mut message).await, Ok(1..)) {
                if !lost.load(Ordering::SeqCst) {
                    conn.write_all(b"Z\0\0\0\x05I").await.unwrap();
                }
            }
        });
        let mut listener = PgListener::connect(&url).await.unwrap();
        is_lost.store(true, Ordering::SeqCst);
        tokio::time::pause();
        let notice = next_notice(&mut listener, SILENCE).await;
        assert!(matches!(&notice, Err(sqlx::Error::Io(error)) if error.kind() == std::io::ErrorKind::TimedOut));
    }

    #[tokio::test]
    async fn a_connection_that_is_only_silent_is_kept() {
        let Some(database) = Database::postgres().await.unwrap() else { return };
        let mut listener = PgListener::connect(&database.url).await.unwrap();
        listener.listen(CHANNEL).await.unwrap();
        let mut notice = Box::pin(next_notice(&mut listener, Duration::from_millis(1)));
        // In this time, the connection is checked many times.
        assert!(timeout(Duration::from_millis(100), &mut notice).await.is_err());
        database.execute("NOTIFY countersign, 'news'").await.unwrap();
        assert_eq!(notice.await.unwrap().payload(), "news");
    }

    #[tokio::test]
    async fn a_process_does_not_take_its_own_writes_to_a_file_for_those_of_another() {
        let database = Database::sqlite().unwrap();
        database.execute("CREATE TABLE t (a)").await.unwrap();
        let path = sqlite::path_of(&database.url).unwrap();
        let writer = sqlite::Pool::new(&path, PoolUse::Writing, 1);
        let before = version_of_others(&writer).await.unwrap();
        let mut own = writer.begin(RunsOn::BlockingThread).await.unwrap();
        own.execute(Sql::new("INSERT INTO t VALUES (1)")).await.unwrap();
        own.end("COMMIT").await.unwrap();
        assert_eq!(version_of_others(&writer).await.unwrap(), before);
        database.execute("INSERT INTO t VALUES (2)").await.unwrap();
        assert_ne!(version_of_others(&writer).await.unwrap(), before);
    }

    #[test]
    fn others_are_notified_of_news_once_and_no_process_notifies_itself() {
        let (one, other) = (ChangeSignal::new("one".to_owned()), ChangeSignal::new("other".to_owned()));
        let news = |tasks, beside_runs| News { tasks, beside_runs };
        for (commits, announced) in [
            (&[news(true, false), news(false, false)][..], news(true, false)),
            (&[news(false, true), news(false, false)], news(false, true)),
            (&[news(false, true), news(true, false)], news(true, true)),
            (&[news(false, false)], news(false, false)),
        ] {
            for news in commits {
                one.committed(*news);
            }
            let notice = one.payload();
            assert_eq!((other.news_in(&notice), one.news_in(&notice)), (Some(announced), None), "{notice}");
        }
        assert_eq!(other.news_in("one"), Some(News::UNKNOWN), "a server of an earlier version does not say");
        assert_eq!(other.news_in("one no-tasks"), Some(news(false, true)));
    }

    #[test]
    fn rows_that_belong_to_no_run_are_counted() {
        let signal = ChangeSignal::new("one".to_owned());
        let counts = || {
            let commits = *signal.commits().borrow();
            (commits.count, commits.beside_runs)
        };
        signal.committed(News { tasks: true, beside_runs: false });
        assert_eq!(counts(), (1, 0));
        signal.noticed(&RecentRows::default(), News { tasks: false, beside_runs: false }, true);
        assert_eq!(counts(), (2, 0));
        signal.noticed(&RecentRows::default(), News::UNKNOWN, false);
        signal.committed(News { tasks: false, beside_runs: true });
        assert_eq!(counts(), (4, 2));
    }
}
