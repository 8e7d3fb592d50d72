//! SQLite's writing connection.
//!
//! SQLite is a library, and a statement takes microseconds: the writer has a thread of its own and calls it there. A
//! driver that hands each statement to another thread would spend a third of a commit on being woken. Who else writes
//! now and then must not hold up the tasks of its thread, and lets the same calls be made on another.
//!
//! Imports nothing of the store but [`Arg`] and [`Sql`].

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::{FromSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Statement, ToSql};
use sqlx::error::{BoxDynError, DatabaseError, ErrorKind};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::db::{Arg, Sql};

/// How long a statement waits for another process that writes to the file.
const BUSY: Duration = Duration::from_secs(10);
/// How long the writing connection is waited for.
const ACQUIRE: Duration = Duration::from_secs(10);
/// How many statements stay prepared on a connection.
const STATEMENTS: usize = 512;

/// The one connection that writes to a file.
#[derive(Clone)]
pub(super) struct Writer(Arc<Mutex<Option<Connection>>>);

/// Where the statements of a transaction run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// On the caller's thread, which has nothing else to do.
    Here,
    /// On a thread for what blocks.
    Aside,
}

/// A transaction that writes; rolled back when it is dropped.
pub(super) struct Writing {
    /// None while a statement runs aside.
    open: Option<Open>,
    place: Where,
}

/// The connection while a transaction has it; none: it is closed.
struct Open(OwnedMutexGuard<Option<Connection>>);

impl Writer {
    /// Connects to a file that is there.
    pub fn open(path: &Path) -> Result<Self, sqlx::Error> {
        Ok(Self(Arc::new(Mutex::new(Some(connect(path).map_err(failure)?)))))
    }

    /// Begins a transaction. IMMEDIATE: what is read in it cannot change before it is written.
    pub async fn begin(&self, place: Where) -> Result<Writing, sqlx::Error> {
        let guard = tokio::time::timeout(ACQUIRE, Arc::clone(&self.0).lock_owned());
        let guard = guard.await.map_err(|_| sqlx::Error::PoolTimedOut)?;
        let mut writing = Writing { open: Some(Open(guard)), place };
        writing.with(|conn| conn.execute_batch("BEGIN IMMEDIATE").map_err(failure)).await?;
        Ok(writing)
    }

    /// Closes it, once nobody has it.
    pub async fn close(&self) {
        self.0.lock().await.take();
    }
}

impl Writing {
    /// Runs a query, and gives all its rows.
    pub async fn fetch(&mut self, sql: Sql) -> Result<Vec<Vec<Value>>, sqlx::Error> {
        self.with(move |conn| fetch(conn, &sql)).await
    }

    /// Runs a statement; answers with how many rows it changed.
    pub async fn execute(&mut self, sql: Sql) -> Result<u64, sqlx::Error> {
        self.with(move |conn| execute(conn, &sql)).await
    }

    /// Ends it with COMMIT or ROLLBACK.
    pub async fn end(mut self, how: &'static str) -> Result<(), sqlx::Error> {
        self.with(move |conn| conn.execute_batch(how).map_err(failure)).await
    }

    async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, sqlx::Error> + Send + 'static,
    ) -> Result<T, sqlx::Error> {
        let open = self.open.take().ok_or(sqlx::Error::PoolClosed)?;
        let run = move || {
            let result = open.0.as_ref().map_or(Err(sqlx::Error::PoolClosed), work);
            (open, result)
        };
        let (open, result) = match self.place {
            Where::Here => run(),
            // Whoever stops waiting leaves the connection to the other thread, which rolls back when it is done.
            Where::Aside => tokio::task::spawn_blocking(run).await.map_err(|_| sqlx::Error::WorkerCrashed)?,
        };
        self.open = Some(open);
        result
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SQLite ends some transactions by itself, such as where the disk is full.
        if let Some(conn) = self.0.as_ref()
            && !conn.is_autocommit()
            && let Err(error) = conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // The checkpoint is only where `checkpoint` does not keep up.
    conn.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4096; \
         PRAGMA cache_size = -16384",
    )?;
    Ok(conn)
}

fn fetch(conn: &Connection, sql: &Sql) -> Result<Vec<Vec<Value>>, sqlx::Error> {
    let read = || {
        let mut statement = conn.prepare_cached(&sql.positional())?;
        bind(&mut statement, sql.args())?;
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((0..columns).map(|column| row.get(column)).collect::<Result<_, _>>()?);
        }
        Ok(found)
    };
    read().map_err(failure)
}

fn execute(conn: &Connection, sql: &Sql) -> Result<u64, sqlx::Error> {
    let write = || {
        let mut statement = conn.prepare_cached(&sql.positional())?;
        bind(&mut statement, sql.args())?;
        statement.raw_execute()
    };
    write().map(|rows| u64::try_from(rows).unwrap_or(0)).map_err(failure)
}

fn bind(statement: &mut Statement<'_>, args: &[Arg]) -> rusqlite::Result<()> {
    for (index, arg) in args.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, arg)?;
    }
    Ok(())
}

impl ToSql for Arg {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Int(value) => value.map(ValueRef::Integer),
            Self::Text(value) => value.as_ref().map(|text| ValueRef::Text(text.as_bytes())),
            Self::Blob(value) => value.as_deref().map(ValueRef::Blob),
            Self::Uuid(value) => value.as_ref().map(|id| ValueRef::Blob(id.as_bytes())),
        };
        Ok(ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null)))
    }
}

/// A column of a row.
pub(super) fn column<T: FromSql>(row: &[Value], index: usize) -> Result<T, sqlx::Error> {
    let value = row.get(index).ok_or(sqlx::Error::ColumnIndexOutOfBounds { index, len: row.len() })?;
    T::column_result(value.into())
        .map_err(|error| sqlx::Error::ColumnDecode { index: index.to_string(), source: BoxDynError::from(error) })
}

/// What SQLite answered, as the other driver says it.
#[derive(Debug, thiserror::Error)]
#[error("(code: {code}) {message}")]
struct Failure {
    code: i32,
    message: String,
}

fn failure(error: rusqlite::Error) -> sqlx::Error {
    match error {
        rusqlite::Error::SqliteFailure(said, message) => {
            let message = message.unwrap_or_else(|| said.to_string());
            sqlx::Error::Database(Box::new(Failure { code: said.extended_code, message }))
        }
        other => sqlx::Error::Protocol(other.to_string()),
    }
}

impl DatabaseError for Failure {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}
