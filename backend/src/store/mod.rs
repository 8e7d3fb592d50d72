//! The store: one `commit` for everything that changes, and the queries. SQLite and PostgreSQL behind one type.
//!
//! Imports `shared`, `crate::clock`, `crate::flow` and `crate::engine` only.

mod change;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use shared::access::{Involvement, Principal};
use shared::api::{AuditQuery, FlowVersion, Page, ReviewQuery, RunQuery, Token, User};
use shared::id::{ReviewId, RunId, TaskId};
use shared::log::{Cursor, Entry};
use shared::review::Review;
use shared::run::{RunSummary, Step};
use shared::time::Timestamp;
use tokio::sync::watch;

pub use change::{
    Actor, Answer, Change, CommitError, Credential, CredentialKind, IdempotencyKey, NewCredential, NewFlow,
    NewUserRecord, Operation, UserChange,
};

use crate::clock::SharedClock;
use crate::engine::{RunState, Task};
use crate::flow::Compiled;

/// What went wrong in the database, or with what is stored there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database said no.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// What is stored cannot be read by this server.
    #[error("stored data: {0}")]
    Stored(String),
    /// The settings do not fit.
    #[error("{0}")]
    Settings(String),
}

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// `sqlite:<path>` or `postgres://…`.
    pub url: String,
    /// The clock of commits.
    pub clock: SharedClock,
    /// Connections for reading.
    pub readers: u32,
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Store;

/// A task with the lease under which a worker holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The task.
    pub task: Task,
    /// Raised by every claim; the result names it.
    pub attempt: u32,
    /// Whether an earlier worker held it and was lost.
    pub lost_before: bool,
}

/// The pending reviews of one person, and the place in the log of the same moment.
#[derive(Debug, Clone)]
pub struct Pending {
    /// That place.
    pub cursor: Cursor,
    /// How many there are.
    pub count: u64,
    /// The first page of them, newest first.
    pub reviews: Vec<Review>,
}

/// A part of the log.
#[derive(Debug, Clone)]
pub struct LogPage {
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// The place after the last entry that was looked at (the head, where there was none).
    pub cursor: Cursor,
    /// Whether there may be more right now.
    pub more: bool,
}

/// A person with what the server alone may know.
#[derive(Debug, Clone)]
pub struct UserRecord {
    /// The person.
    pub user: User,
    /// PHC string of their password; none: they cannot log in with one.
    pub password_hash: Option<String>,
}

impl Store {
    /// Opens the database, brings it to this version, and starts the writer. Holds a lock on an SQLite file.
    pub async fn open(_options: Options) -> Result<Self, Error> {
        unreachable!("written by its own part")
    }

    /// Finishes what was accepted, and closes.
    pub async fn close(&self) {
        unreachable!("written by its own part")
    }

    /// The one write path: decides, writes, and answers only when it is on disk.
    pub async fn commit(&self, _change: Change) -> Result<Answer, CommitError> {
        unreachable!("written by its own part")
    }

    /// A number that grows with every commit that this process made or noticed: a reason to read the log.
    pub fn commits(&self) -> watch::Receiver<u64> {
        unreachable!("written by its own part")
    }

    /// A number that grows whenever tasks may have become due.
    pub fn tasks_due(&self) -> watch::Receiver<u64> {
        unreachable!("written by its own part")
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), Error> {
        unreachable!("written by its own part")
    }

    // --- flows ---

    /// One version of a flow, whole (without its picture); the newest where no version is named.
    pub async fn flow(&self, _id: &str, _version: Option<u32>) -> Result<Option<FlowVersion>, Error> {
        unreachable!("written by its own part")
    }

    /// The newest version of each flow, without what is large.
    pub async fn flows(&self, _limit: u32, _cursor: Option<&str>) -> Result<Page<FlowVersion>, Error> {
        unreachable!("written by its own part")
    }

    /// A version ready to run; kept in memory.
    pub async fn compiled(&self, _id: &str, _version: u32) -> Result<Option<Arc<Compiled>>, Error> {
        unreachable!("written by its own part")
    }

    // --- runs ---

    /// A run's state.
    pub async fn run(&self, _id: RunId) -> Result<Option<RunState>, Error> {
        unreachable!("written by its own part")
    }

    /// The runs that somebody may see.
    pub async fn runs(&self, _viewer: &Principal, _query: &RunQuery) -> Result<Page<RunSummary>, Error> {
        unreachable!("written by its own part")
    }

    /// Every visit of every node of a run, in order.
    pub async fn steps(&self, _run: RunId) -> Result<Vec<Step>, Error> {
        unreachable!("written by its own part")
    }

    /// A run's reviews, in the order in which they were asked.
    pub async fn run_reviews(&self, _run: RunId) -> Result<Vec<Review>, Error> {
        unreachable!("written by its own part")
    }

    /// Whether somebody may decide one of a run's reviews, or has.
    pub async fn involvement(&self, _viewer: &Principal, _run: RunId) -> Result<Involvement, Error> {
        unreachable!("written by its own part")
    }

    // --- reviews ---

    /// A review.
    pub async fn review(&self, _id: ReviewId) -> Result<Option<Review>, Error> {
        unreachable!("written by its own part")
    }

    /// The reviews that somebody may see.
    pub async fn reviews(&self, _viewer: &Principal, _query: &ReviewQuery) -> Result<Page<Review>, Error> {
        unreachable!("written by its own part")
    }

    /// The pending reviews that somebody may see, and the place in the log of the same moment.
    pub async fn pending(&self, _viewer: &Principal, _limit: u32) -> Result<Pending, Error> {
        unreachable!("written by its own part")
    }

    // --- log ---

    /// The end of the log.
    pub async fn head(&self) -> Result<Cursor, Error> {
        unreachable!("written by its own part")
    }

    /// Entries after a place, in commit order, none missing. `None` where the place is not of this log, is in its
    /// future, or is too old: a snapshot is needed then.
    pub async fn log(&self, _after: &Cursor, _run: Option<RunId>, _limit: u32) -> Result<Option<LogPage>, Error> {
        unreachable!("written by its own part")
    }

    /// The place before the first entry.
    pub async fn origin(&self) -> Result<Cursor, Error> {
        unreachable!("written by its own part")
    }

    /// Entries that fit, newest first.
    pub async fn audit(&self, _query: &AuditQuery) -> Result<Page<Entry>, Error> {
        unreachable!("written by its own part")
    }

    // --- tasks ---

    /// Takes due tasks under a lease on the database's clock.
    pub async fn claim(&self, _worker: &str, _limit: u32, _lease: Duration) -> Result<Vec<Claimed>, Error> {
        unreachable!("written by its own part")
    }

    /// Lengthens leases; answers with the tasks that are still held.
    pub async fn heartbeat(
        &self,
        _worker: &str,
        _held: &[(TaskId, u32)],
        _lease: Duration,
    ) -> Result<Vec<TaskId>, Error> {
        unreachable!("written by its own part")
    }

    /// When the next task is due or the next lease runs out.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        unreachable!("written by its own part")
    }

    // --- people ---

    /// A person.
    pub async fn user(&self, _username: &str) -> Result<Option<UserRecord>, Error> {
        unreachable!("written by its own part")
    }

    /// All people, by name.
    pub async fn users(&self) -> Result<Vec<User>, Error> {
        unreachable!("written by its own part")
    }

    /// A session, token or link by the SHA-256 of its secret, with its person; expired ones are none.
    pub async fn credential(&self, _digest: &[u8; 32]) -> Result<Option<(Credential, UserRecord)>, Error> {
        unreachable!("written by its own part")
    }

    /// Somebody's tokens, newest first.
    pub async fn tokens(&self, _owner: &str) -> Result<Vec<Token>, Error> {
        unreachable!("written by its own part")
    }

    /// How many rows each table has, for metrics.
    pub async fn counts(&self) -> Result<BTreeMap<&'static str, u64>, Error> {
        unreachable!("written by its own part")
    }
}
