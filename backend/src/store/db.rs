//! SQLite and PostgreSQL behind one type of connection, argument and row, so that a query has one text. `sqlx::Any`
//! does not suffice: it knows no UUIDs.

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::types::Value;
use sqlx::postgres::{PgArguments, PgPool, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::runtime::Handle;
use tracing::Instrument as _;
use uuid::Uuid;

use super::driver_error::DriverError;
use super::postgres::{PostgresSession, SessionUse, arguments};
pub(super) use super::sql::{Arg, GroupKey, Sql};
use super::sqlite::{self, RunsOn};

/// A database, with its connections for reading and writing.
#[derive(Clone)]
pub(super) enum Db {
    /// An SQLite file, with several connections for reading and one for writing.
    Sqlite { readers: sqlite::Pool, writer: sqlite::Pool },
    /// A PostgreSQL server. Writers have connections of their own, so that long reads never delay a commit.
    Postgres { readers: PgPool, writers: PgPool },
}

/// The kind of database; parts of the SQL depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    Sqlite,
    Postgres,
}

impl DatabaseKind {
    pub fn either<T>(self, sqlite: T, postgres: T) -> T {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }
}

/// A connection, or a transaction that is rolled back when dropped.
pub(super) enum Conn {
    Sqlite(sqlite::SqliteSession),
    Postgres(PostgresSession),
}

impl Db {
    pub fn kind(&self) -> DatabaseKind {
        match self {
            Self::Sqlite { .. } => DatabaseKind::Sqlite,
            Self::Postgres { .. } => DatabaseKind::Postgres,
        }
    }

    pub fn is_postgres(&self) -> bool {
        self.kind() == DatabaseKind::Postgres
    }

    /// Returns a connection for one statement, and for the blobs that its rows refer to, which never change.
    pub async fn read(&self) -> Result<Conn, DriverError> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Conn::Sqlite(readers.acquire(RunsOn::BlockingThread).await?),
            Self::Postgres { readers, .. } => {
                Conn::Postgres(PostgresSession::begin(readers, SessionUse::Statements).await?)
            }
        })
    }

    /// Begins a read transaction in which all statements see the same snapshot.
    pub async fn snapshot(&self) -> Result<Conn, DriverError> {
        self.snapshot_on(RunsOn::BlockingThread).await
    }

    /// Like [`Self::snapshot`], with SQLite called on this thread.
    pub async fn snapshot_on(&self, place: RunsOn) -> Result<Conn, DriverError> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Conn::Sqlite(readers.begin(place).await?),
            Self::Postgres { readers, .. } => {
                Conn::Postgres(PostgresSession::begin(readers, SessionUse::Snapshot).await?)
            }
        })
    }

    /// Executes work that reads with several statements as one piece. With SQLite, all of it runs on one blocking thread,
    /// since a change of threads costs more than most statements; so it must wait for nothing but the database. If the
    /// caller stops waiting, its statement is interrupted, and the connection returns to the pool.
    pub async fn read_as_one<T, E, F>(&self, work: impl FnOnce(Conn) -> F + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DriverError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send,
    {
        self.as_one(SessionUse::Statements, work).await
    }

    /// Like [`Self::read_as_one`], in a read transaction in which all statements see the same snapshot.
    pub async fn snapshot_as_one<T, E, F>(&self, work: impl FnOnce(Conn) -> F + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DriverError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send,
    {
        self.as_one(SessionUse::Snapshot, work).await
    }

    async fn as_one<T, E, F>(&self, of: SessionUse, work: impl FnOnce(Conn) -> F + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DriverError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send,
    {
        match self {
            Self::Sqlite { readers, .. } => {
                // A place in the pool is awaited here, so no more threads are occupied than there are connections.
                let mut session = readers.acquire(RunsOn::ThisThread).await?;
                let _caller = session.caller();
                let piece = async move || {
                    if of == SessionUse::Snapshot {
                        session.begin().await?;
                    }
                    work(Conn::Sqlite(session)).await
                };
                on_blocking_thread(piece).await
            }
            Self::Postgres { readers, .. } => {
                let session = PostgresSession::begin(readers, of).await.map_err(DriverError::from)?;
                work(Conn::Postgres(session)).await
            }
        }
    }

    /// Executes a write transaction as one piece on a blocking thread: with SQLite nobody else can write meanwhile, so
    /// it must not wait for a thread between two statements. If the caller stops waiting, the transaction still
    /// completes.
    pub async fn write<T, E>(&self, work: impl AsyncFnOnce(Conn) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DriverError> + Send + 'static,
    {
        let db = self.clone();
        on_blocking_thread(async move || work(db.write_on_this_thread().await?).await).await
    }

    /// Like [`Self::write`], for work that mostly is one statement: in PostgreSQL, each of its statements is a
    /// transaction of its own, without round trips for its begin and end.
    pub async fn write_statements<T, E>(
        &self,
        work: impl AsyncFnOnce(Conn) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DriverError> + Send + 'static,
    {
        let db = self.clone();
        on_blocking_thread(async move || work(db.writer_on_this_thread().await?).await).await
    }

    /// Executes one writing statement in its own transaction. Returns how many rows it changed.
    pub async fn execute(&self, sql: Sql) -> Result<u64, DriverError> {
        let statement = async move |mut conn: Conn| {
            let changed = conn.execute(sql).await?;
            conn.commit().await?;
            Ok(changed)
        };
        self.write_statements(statement).await
    }

    /// Begins a write transaction. SQLite is called on the current thread, which may block.
    pub async fn write_on_this_thread(&self) -> Result<Conn, DriverError> {
        Ok(match self {
            Self::Sqlite { writer, .. } => Conn::Sqlite(writer.begin(RunsOn::ThisThread).await?),
            Self::Postgres { writers, .. } => Conn::Postgres(PostgresSession::begin(writers, SessionUse::Write).await?),
        })
    }

    /// Like [`Self::write_on_this_thread`], with a time limit for PostgreSQL that includes the wait for a connection.
    pub async fn write_on_this_thread_within(&self, limit: Duration) -> Result<Conn, DriverError> {
        match self {
            Self::Sqlite { .. } => self.write_on_this_thread().await,
            Self::Postgres { writers, .. } => Ok(Conn::Postgres(PostgresSession::begin_within(writers, limit).await?)),
        }
    }

    /// Like [`Self::write_on_this_thread`], but in PostgreSQL, each statement is a transaction of its own until
    /// [`Conn::begin_with`] begins one.
    pub async fn writer_on_this_thread(&self) -> Result<Conn, DriverError> {
        Ok(match self {
            Self::Sqlite { .. } => self.write_on_this_thread().await?,
            Self::Postgres { writers, .. } => Conn::Postgres(PostgresSession::acquire(writers).await?),
        })
    }

    pub async fn close(&self) {
        match self {
            Self::Sqlite { readers, writer } => {
                readers.close().await;
                writer.close().await;
            }
            Self::Postgres { readers, writers } => {
                readers.close().await;
                writers.close().await;
            }
        }
    }
}

/// Executes work on a blocking thread. If the caller stops waiting, the work still completes.
pub(super) async fn on_blocking_thread<T, E>(work: impl AsyncFnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<DriverError> + Send + 'static,
{
    let runtime = Handle::current();
    // The other thread has no span of its own, and what it logs belongs to the caller's request.
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || runtime.block_on(work().instrument(span))).await {
        Ok(result) => result,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(DriverError::Interrupted.into()),
        },
    }
}

impl Conn {
    pub fn kind(&self) -> DatabaseKind {
        match self {
            Self::Sqlite(_) => DatabaseKind::Sqlite,
            Self::Postgres(_) => DatabaseKind::Postgres,
        }
    }

    pub fn is_postgres(&self) -> bool {
        self.kind() == DatabaseKind::Postgres
    }

    /// Whether a query can lock its rows until the end of the transaction: only in write transactions of PostgreSQL.
    /// The writer of SQLite locks the whole database.
    pub fn locks_rows(&self) -> bool {
        matches!(self, Self::Postgres(session) if session.writes())
    }

    /// Lets PostgreSQL end this transaction after 2 s without a statement, so that what a frozen server holds is free
    /// sooner. For transactions that compute nothing in between. No effect on SQLite.
    pub async fn shorten_idle_timeout(&mut self) -> Result<(), DriverError> {
        if self.is_postgres() {
            self.fetch(Sql::new("SELECT set_config('idle_in_transaction_session_timeout', '2000', true)")).await?;
        }
        Ok(())
    }

    /// Begins the transaction of [`Db::writer_on_this_thread`] with these statements. SQLite has begun it.
    pub async fn begin_with(&mut self, statements: &str) -> Result<(), DriverError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(conn) => Ok(conn.begin_with(statements).await?),
        }
    }

    /// Lets a transaction of PostgreSQL take longer by the time that the program computed in it.
    pub fn extend(&mut self, by: Duration) {
        if let Self::Postgres(session) = self {
            session.extend(by);
        }
    }

    /// Runs a query and returns all its rows.
    pub async fn fetch(&mut self, sql: Sql) -> Result<Vec<Row>, DriverError> {
        Ok(match self {
            _ if sql.is_void => Vec::new(),
            Self::Sqlite(conn) => conn.fetch(sql).await?.into_iter().map(Row::Sqlite).collect(),
            Self::Postgres(conn) => {
                let query = postgres(sql)?;
                let rows = conn.with(async |conn| query.fetch_all(conn).await).await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    /// Counts the rows of a query by their four columns. SQLite's GROUP BY would sort all rows first.
    pub async fn count_groups(&mut self, sql: Sql) -> Result<HashMap<GroupKey, u64>, DriverError> {
        if let Self::Sqlite(conn) = self {
            return conn.count_groups(sql).await;
        }
        let sql = sql.around("SELECT a, b, c, d, COUNT(*) FROM (").push(") AS k(a, b, c, d) GROUP BY a, b, c, d");
        let rows = self.fetch(sql).await?;
        rows.iter().map(|row| Ok((GroupKey::of(row)?, u64::try_from(row.int(4)?).unwrap_or(0)))).collect()
    }

    /// Runs a query and returns its first row, if any.
    pub async fn fetch_one(&mut self, sql: Sql) -> Result<Option<Row>, DriverError> {
        Ok(self.fetch(sql).await?.into_iter().next())
    }

    /// Runs a query and returns the first column of its first row, if any.
    pub async fn first<T>(&mut self, sql: Sql, column: Column<T>) -> Result<Option<T>, DriverError> {
        self.fetch_one(sql).await?.map(|row| column(&row, 0)).transpose()
    }

    /// Runs a query and returns the first column of all its rows.
    pub async fn all<T>(&mut self, sql: Sql, column: Column<T>) -> Result<Vec<T>, DriverError> {
        self.fetch(sql).await?.iter().map(|row| column(row, 0)).collect()
    }

    /// Runs a query that ends with `IN (` for these ids, a few hundred at a time. Returns the ids that it selects.
    pub async fn ids_among(&mut self, query: &str, ids: &[Uuid]) -> Result<Vec<Uuid>, DriverError> {
        /// The number of ids per statement.
        const AT_ONCE: usize = 500;
        let mut found = Vec::new();
        for some in ids.chunks(AT_ONCE) {
            found.extend(self.all(Sql::new(query).list(some.iter().copied()).push(")"), Row::uuid).await?);
        }
        Ok(found)
    }

    /// Runs a statement. Returns how many rows it changed.
    pub async fn execute(&mut self, sql: Sql) -> Result<u64, DriverError> {
        Ok(match self {
            _ if sql.is_void => 0,
            Self::Sqlite(conn) => conn.execute(sql).await?,
            Self::Postgres(conn) => {
                let query = postgres(sql)?;
                conn.with(async |conn| query.execute(conn).await).await?.rows_affected()
            }
        })
    }

    pub async fn commit(self) -> Result<(), DriverError> {
        match self {
            Self::Sqlite(tx) => tx.end("COMMIT").await,
            Self::Postgres(tx) => Ok(tx.end("COMMIT").await?),
        }
    }

    pub async fn rollback(self) -> Result<(), DriverError> {
        match self {
            Self::Sqlite(tx) => tx.end("ROLLBACK").await,
            Self::Postgres(tx) => Ok(tx.end("ROLLBACK").await?),
        }
    }
}

fn postgres(sql: Sql) -> Result<Query<'static, Postgres, PgArguments>, DriverError> {
    let args = arguments(sql.args)?;
    Ok(sqlx::query_with(AssertSqlSafe(sql.text), args))
}

impl GroupKey {
    /// Reads the key from the first four columns of a row.
    pub fn of(row: &Row) -> Result<Self, DriverError> {
        Ok(Self { id: row.uuid(0)?, numbers: [row.int(1)?, row.int(2)?, row.int(3)?] })
    }
}

/// A row of either database. Columns are read by position.
pub(super) enum Row {
    Sqlite(Vec<Value>),
    Postgres(PgRow),
}

/// A method of [`Row`] that reads a column of a type.
pub(super) type Column<T> = fn(&Row, usize) -> Result<T, DriverError>;

macro_rules! column {
    ($($name:ident -> $type:ty),+ $(,)?) => {$(
        pub fn $name(&self, index: usize) -> Result<$type, DriverError> {
            match self {
                Self::Sqlite(row) => sqlite::column(row, index),
                Self::Postgres(row) => Ok(row.try_get(index)?),
            }
        }
    )+};
}

impl Row {
    column! {
        int -> i64,
        int_opt -> Option<i64>,
        text -> String,
        text_opt -> Option<String>,
        blob -> Vec<u8>,
        blob_opt -> Option<Vec<u8>>,
        uuid -> Uuid,
        uuid_opt -> Option<Uuid>,
    }
}
