//! The store: one `commit` for all changes, and the queries. SQLite and PostgreSQL behind one type.

mod archives;
mod audit;
mod audit_scan;
mod backfill;
mod batch;
mod blobs;
mod change;
mod change_signal;
mod checkpoint;
mod commit;
mod commit_error;
mod compact_review;
mod consumer;
pub(crate) mod cursor;
mod database_clock;
mod db;
mod decided_list;
mod deliveries;
mod delivery_kind;
mod driver_error;
mod erasure;
mod error;
mod facets;
mod feedback;
mod flows;
mod follow;
mod grants;
mod interrupt;
mod lag;
mod leases;
mod log;
mod log_index;
mod log_row;
mod notifications;
mod open;
mod outbox;
pub mod packed;
mod page_bytes;
mod people_cache;
mod postgres;
mod queue;
mod queue_place;
mod ranking;
mod ready;
mod recent_rows;
mod recount;
mod retention;
mod retries;
mod review_list;
mod review_row;
mod reviews;
mod row_count;
mod row_mac;
mod run_list;
mod run_search;
mod run_steps;
mod runs;
mod saved_views;
mod schema;
mod seal_key;
mod seals;
mod search;
mod sql;
mod sqlite;
mod statistics;
mod stored_review;
mod stream_relay;
mod tasks;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod tests;
mod unreadable;
mod users;
mod visibility;
mod whole_run;
mod words;
mod writer;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use shared::api::User;
use shared::deputy::Deputyship;
use shared::log::{Cursor, Entry};
use shared::review::Review;
use shared::time::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use change::{
    Actor, Change, ChosenNotifications, Committed, ConfirmedSession, Credential, CredentialKind, CredentialUse,
    FactorChange, FailedLogin, IdempotencyKey, NewArchive, NewCredential, NewErasure, NewFlow, NewSession,
    NewUserRecord, Operation, PasswordChange, Proof, ProviderAccount, ProviderSignIn, RefusedSignIn, RunInArchive,
    SecondFactor, SessionClient, SignIn, UserChange,
};
pub use commit_error::CommitError;

pub use archives::Archive;
pub use change_signal::Commits;
pub use commit::GUARDRAIL_TIME;
pub use consumer::{Consumer, Jobs, LeaseTerms, consume};
pub(crate) use db::DatabaseKind;
pub use deliveries::{DeliveryOutcome, StoredDelivery};
pub use delivery_kind::{DeliveryEvent, DeliveryKind, DeliveryLane, DeliverySubject};
pub use driver_error::DriverError;
pub use erasure::{ErasedRow, Erasing, ErasureStep, Prepared, RunPlace};
pub use error::{Error, ErrorKind};
pub use follow::{CommitFollower, Resume, follow};
pub use leases::{Lease, NextReady, Progress, WorkTable};
pub use log_row::Form;
pub use outbox::NewDelivery;
pub use queue::Tally;
pub use retention::{FinishedFilter, FinishedPlace, FinishedRun, FinishedRuns};
pub use retries::{ExponentialBackoff, with_retries};
pub use row_mac::{Authenticity, RowKey, RowKeys, Stored as RowContent};
pub use runs::FoundRun;
pub use seals::{RecordPage, RecordRow, StoredSeal};
pub use statistics::TooMuch;
pub use tasks::{Room, SUSPECT};
pub use users::Standing;
pub use whole_run::{RunRow, WholeRun};

use crate::background::Background;
use crate::clock::SharedClock;
use crate::engine::Task;
use crate::flow::Environment;
use crate::flow::guardrail::GuardrailPrograms;
use crate::token_stream::Streams;
use db::Db;

/// The options for opening a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// The URL: `sqlite:<path>` or `postgres://…`.
    pub url: String,
    /// The clock for commits. One that can be moved is moved onto PostgreSQL's.
    pub clock: SharedClock,
    /// The number of connections for reading.
    pub readers: u32,
    /// What flows use of the server's environment.
    pub environment: Arc<Environment>,
    /// The longest lifetime of a grant.
    pub longest_grant: Duration,
    /// Whether the database is opened for writing, too.
    pub access: OpenMode,
    /// The key that authenticates the rows of the log. `None` if they are not sealed.
    pub row_keys: Option<RowKeys>,
    /// Whether the log is indexed in the background. Parts without an index are read from the log itself.
    pub index_log: bool,
}

impl StoreOptions {
    /// Creates options with the defaults for everything else.
    pub fn new(url: String, clock: SharedClock) -> Self {
        let (environment, longest_grant) = (Arc::default(), shared::grant::DEFAULT_MAX_LIFETIME);
        Self {
            url,
            clock,
            readers: 4,
            environment,
            longest_grant,
            access: OpenMode::Write,
            row_keys: None,
            index_log: true,
        }
    }
}

/// The purpose for which a database is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading and writing. The schema is migrated to this version.
    Write,
    /// Only for reading. The database may be a read-only SQLite file, such as a backup.
    Read,
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    clock: SharedClock,
    environment: Arc<Environment>,
    longest_grant: Duration,
    log: cursor::Log,
    row_keys: Option<RowKeys>,
    flows: flows::FlowCache,
    /// The flows of runs that only carry a question. They cannot be started by name.
    carriers: flows::FlowCache,
    classes: queue::ClassCache,
    people: people_cache::PeopleCache,
    recent: recent_rows::RecentRows,
    readers: lag::Readers,
    written: ready::LastProbe,
    signal: change_signal::ChangeSignal,
    /// The random name of this process, which distinguishes it from others on the same database.
    name: String,
    url: String,
    /// The receiver of streamed text of other servers' agents. `None` if no flows run here.
    streams: Mutex<Option<Streams>>,
    queue: writer::Queue,
    /// The caller of guardrail webhooks.
    guardrails: OnceLock<Arc<dyn GuardrailPrograms>>,
    /// The signal that ends background tasks.
    stop: CancellationToken,
    background: Background,
    tasks: Mutex<JoinSet<()>>,
}

/// A task that a worker has claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The task. It has no payload: that is read from the run's state.
    pub task: Task,
    /// The attempt, which increases with every claim; the result names it.
    pub attempt: u32,
    /// Whether an earlier worker was lost while it held the task.
    pub lost_before: bool,
    /// The number of successive workers that were lost while holding it.
    pub lost: u32,
}

/// The pending reviews, as a person sees them.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The counts of all pending reviews, and the cursor at that moment.
    pub tally: Tally,
    /// The first page of the reviews that the person sees, most urgent first.
    pub reviews: Vec<Review>,
}

/// A page of the log.
#[derive(Debug, Clone)]
pub struct LogPage {
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// The cursor after the last entry that was read (the head, if there was none).
    pub cursor: Cursor,
    /// Whether there may be further entries already.
    pub more: bool,
}

/// A user, including what only the server may know.
#[derive(Debug, Clone)]
pub struct UserRecord {
    /// The account as admins see it.
    pub user: User,
    /// The PHC string of their password. `None` if they cannot log in with a password.
    pub password_hash: Option<String>,
    /// Their deputyships. They are stored with the deputy, so that reading the deputy's rights also reads them.
    pub deputyships: Vec<Deputyship>,
    /// Their second factor, if any.
    pub second_factor: Option<SecondFactor>,
    /// Their account at the identity provider, if they sign in there.
    pub account: Option<ProviderAccount>,
    /// When they last signed in with the identity provider.
    pub signed_in_at: Option<Timestamp>,
}

impl UserRecord {
    /// Creates the record of a user of whom nothing else is stored.
    fn new(user: User) -> Self {
        Self {
            user,
            password_hash: None,
            deputyships: Vec::new(),
            second_factor: None,
            account: None,
            signed_in_at: None,
        }
    }
}

impl Store {
    /// Opens the database. If it is opened for writing, migrates it to this version and starts the writers.
    pub async fn open(options: StoreOptions) -> Result<Self, Error> {
        let (db, log) = open::open(&options).await?;
        database_clock::correct(&db, &*options.clock).await?;
        if options.access == OpenMode::Write {
            backfill::all(&db).await?;
        }
        let (queue, receivers) = writer::Queue::new(if db.is_postgres() { open::WRITERS } else { 1 });
        let name = hex::encode(&options.clock.random()[..8]);
        let inner = Arc::new(Inner {
            db,
            clock: options.clock,
            log,
            row_keys: options.row_keys,
            environment: options.environment,
            longest_grant: options.longest_grant,
            flows: flows::FlowCache::default(),
            carriers: flows::FlowCache::default(),
            classes: queue::ClassCache::default(),
            people: people_cache::PeopleCache::default(),
            recent: recent_rows::RecentRows::default(),
            signal: change_signal::ChangeSignal::new(name.clone()),
            name,
            url: options.url,
            streams: Mutex::default(),
            written: ready::LastProbe::default(),
            readers: lag::Readers::default(),
            queue,
            guardrails: OnceLock::new(),
            stop: CancellationToken::new(),
            background: Background::default(),
            tasks: Mutex::new(JoinSet::new()),
        });
        if options.access == OpenMode::Read {
            return Ok(Self { inner });
        }
        let mut tasks = JoinSet::new();
        let watched = |name, task: BoxFuture<'static, ()>| inner.background.watch(name, &inner.stop, task);
        for receiver in receivers {
            let writer = writer::start(&inner, receiver)
                .map_err(|error| Error::Settings(format!("a thread for writing cannot be started: {error}")))?;
            tasks.spawn(watched("writer", writer));
        }
        tasks.spawn(watched("watch for commits", change_signal::run(Arc::clone(&inner)).boxed()));
        if inner.db.is_postgres() {
            tasks.spawn(watched("clock of the database", database_clock::run(Arc::clone(&inner)).boxed()));
        } else {
            tasks.spawn(watched("checkpoint", checkpoint::run(Arc::clone(&inner)).boxed()));
        }
        if options.index_log {
            tasks.spawn(watched("index of the log", log_index::run(Arc::clone(&inner)).boxed()));
        }
        *inner.tasks.lock() = tasks;
        Ok(Self { inner })
    }

    /// Completes accepted changes, then closes the database.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        let mut tasks = std::mem::take(&mut *self.inner.tasks.lock());
        // A panic was already reported when it happened.
        while tasks.join_next().await.is_some() {}
        self.inner.db.close().await;
    }

    /// Returns the watcher of tasks that run as long as the server.
    pub fn background(&self) -> &Background {
        &self.inner.background
    }

    /// Whether the database may exist: for SQLite, whether the file exists.
    pub fn may_exist(url: &str) -> bool {
        !url.starts_with("sqlite:") || sqlite::path_of(url).is_ok_and(|path| path.exists())
    }

    /// Returns a signal of the commits that this process made or noticed: each is a reason to read the log.
    pub fn commits(&self) -> watch::Receiver<Commits> {
        self.inner.signal.commits()
    }

    /// Returns a number that increases whenever tasks may have become due.
    pub fn tasks_due(&self) -> watch::Receiver<u64> {
        self.inner.signal.tasks_due()
    }
}

/// Cuts a list that was read with one row more than its limit. Returns the cursor of the next page, if there is one.
fn cut<T, P>(items: &mut Vec<T>, limit: u32, cursor: impl Fn(&T) -> P) -> Option<P> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if items.len() <= limit {
        return None;
    }
    items.truncate(limit);
    items.last().map(cursor)
}
