//! SQLite and PostgreSQL behind one connection, one kind of argument and one kind of row, so that a query has one text.
//!
//! `sqlx::Any` is too poor for this (it knows no UUIDs).

use std::collections::HashMap;

use rusqlite::types::Value;
use sqlx::postgres::{PgArguments, PgPool, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::driver_error::DriverError;
use super::postgres::{PostgresSession, SessionUse};
pub(super) use super::sql::{Arg, GroupKey, Sql};
use super::sqlite::{self, RunsOn};

/// A database: where it is read, and where it is written.
#[derive(Clone)]
pub(super) enum Db {
    /// An SQLite file, which several connections read and one writes.
    Sqlite { readers: sqlite::Pool, writer: sqlite::Pool },
    /// A server. The writers have connections of their own, so that long reads never keep a commit waiting.
    Postgres { readers: PgPool, writers: PgPool },
}

/// Which of them it is: they differ in parts of their SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    Sqlite,
    Postgres,
}

impl DatabaseKind {
    /// What is different in the two.
    pub fn either<T>(self, sqlite: T, postgres: T) -> T {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }
}

/// A connection, or a transaction that is rolled back when it is dropped.
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

    /// A connection for one statement, and for the blobs that its rows refer to: these never change.
    pub async fn read(&self) -> Result<Conn, DriverError> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Conn::Sqlite(readers.acquire(RunsOn::BlockingThread).await?),
            Self::Postgres { readers, .. } => {
                Conn::Postgres(PostgresSession::begin(readers, SessionUse::Statements).await?)
            }
        })
    }

    /// A transaction that sees one moment, however many statements it has.
    pub async fn snapshot(&self) -> Result<Conn, DriverError> {
        self.begin_snapshot(RunsOn::BlockingThread).await
    }

    /// The same for whoever has a thread to do this in.
    pub async fn snapshot_on_this_thread(&self) -> Result<Conn, DriverError> {
        self.begin_snapshot(RunsOn::ThisThread).await
    }

    async fn begin_snapshot(&self, place: RunsOn) -> Result<Conn, DriverError> {
        Ok(match self {
            Self::Sqlite { readers, .. } => Conn::Sqlite(readers.begin(place).await?),
            Self::Postgres { readers, .. } => {
                Conn::Postgres(PostgresSession::begin(readers, SessionUse::Snapshot).await?)
            }
        })
    }

    /// Carries out a transaction that writes, as a whole on a thread for what blocks: in SQLite nobody else can write
    /// meanwhile, so it must not wait for a thread between two statements. Whoever stops waiting leaves it to that thread.
    pub async fn write<T, E>(&self, work: impl AsyncFnOnce(Conn) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DriverError> + Send + 'static,
    {
        let db = self.clone();
        on_blocking_thread(async move || work(db.write_on_this_thread().await?).await).await
    }

    /// Carries out one statement that writes; answers with how many rows it changed.
    pub async fn execute(&self, sql: Sql) -> Result<u64, DriverError> {
        let statement = async move |mut conn: Conn| {
            let changed = conn.execute(sql).await?;
            conn.commit().await?;
            Ok(changed)
        };
        self.write(statement).await
    }

    /// A transaction that writes, for whoever has a thread to do this in.
    pub async fn write_on_this_thread(&self) -> Result<Conn, DriverError> {
        Ok(match self {
            Self::Sqlite { writer, .. } => Conn::Sqlite(writer.begin(RunsOn::ThisThread).await?),
            Self::Postgres { writers, .. } => Conn::Postgres(PostgresSession::begin(writers, SessionUse::Write).await?),
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

/// Carries out work on a thread for what blocks. Whoever stops waiting leaves it to that thread.
pub(super) async fn on_blocking_thread<T, E>(work: impl AsyncFnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<DriverError> + Send + 'static,
{
    let runtime = Handle::current();
    match tokio::task::spawn_blocking(move || runtime.block_on(work())).await {
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

    /// Whether rows can be held until the end of the transaction. SQLite's writer holds all of them.
    pub fn locks_rows(&self) -> bool {
        matches!(self, Self::Postgres(session) if session.writes())
    }

    /// Lets PostgreSQL end this transaction after 2 s without a statement, for one that computes nothing in between: what
    /// a frozen server holds is free again then, and not only after the time that writers have for thinking. SQLite has
    /// one server.
    pub async fn shorten_idle_timeout(&mut self) -> Result<(), DriverError> {
        if self.is_postgres() {
            self.fetch(Sql::new("SELECT set_config('idle_in_transaction_session_timeout', '2000', true)")).await?;
        }
        Ok(())
    }

    /// Runs a query, and gives all its rows.
    pub async fn fetch(&mut self, sql: Sql) -> Result<Vec<Row>, DriverError> {
        Ok(match self {
            Self::Sqlite(conn) => wrap(conn.fetch(sql).await?, Row::Sqlite),
            Self::Postgres(conn) => {
                let query = postgres(sql)?;
                wrap(conn.with(async |conn| query.fetch_all(conn).await).await?, Row::Postgres)
            }
        })
    }

    /// Counts the rows of a query by what they are. SQLite's GROUP BY would sort them all.
    pub async fn count_groups(&mut self, sql: Sql) -> Result<HashMap<GroupKey, u64>, DriverError> {
        if let Self::Sqlite(conn) = self {
            return conn.count_groups(sql).await;
        }
        let sql = sql.around("SELECT a, b, c, d, COUNT(*) FROM (").push(") AS k(a, b, c, d) GROUP BY a, b, c, d");
        let rows = self.fetch(sql).await?;
        let count = |row: &Row| {
            let count = u64::try_from(row.int(4)?).unwrap_or(0);
            Ok((GroupKey::of(row)?, count))
        };
        rows.iter().map(count).collect()
    }

    /// Runs a query that has at most one row.
    pub async fn fetch_one(&mut self, sql: Sql) -> Result<Option<Row>, DriverError> {
        Ok(self.fetch(sql).await?.into_iter().next())
    }

    /// Runs a statement; answers with how many rows it changed.
    pub async fn execute(&mut self, sql: Sql) -> Result<u64, DriverError> {
        Ok(match self {
            Self::Sqlite(conn) => conn.execute(sql).await?,
            Self::Postgres(conn) => {
                let query = postgres(sql)?;
                conn.with(async |conn| query.execute(conn).await).await?.rows_affected()
            }
        })
    }

    /// Commits a transaction.
    pub async fn commit(self) -> Result<(), DriverError> {
        match self {
            Self::Sqlite(tx) => tx.end("COMMIT").await,
            Self::Postgres(tx) => Ok(tx.end("COMMIT").await?),
        }
    }

    /// Ends a transaction without effect.
    pub async fn rollback(self) -> Result<(), DriverError> {
        match self {
            Self::Sqlite(tx) => tx.end("ROLLBACK").await,
            Self::Postgres(tx) => Ok(tx.end("ROLLBACK").await?),
        }
    }
}

fn wrap<T>(rows: Vec<T>, make: fn(T) -> Row) -> Vec<Row> {
    rows.into_iter().map(make).collect()
}

fn postgres(sql: Sql) -> Result<Query<'static, Postgres, PgArguments>, DriverError> {
    let mut args = PgArguments::default();
    for arg in sql.args {
        match arg {
            Arg::Int(value) => args.add(value),
            Arg::Text(value) => args.add(value),
            Arg::Blob(value) => args.add(value),
            Arg::Uuid(value) => args.add(value),
        }
        .map_err(|error| DriverError::Postgres(sqlx::Error::Encode(error)))?;
    }
    Ok(sqlx::query_with(AssertSqlSafe(sql.text), args))
}

impl GroupKey {
    /// The key in the first columns of a row.
    pub fn of(row: &Row) -> Result<Self, DriverError> {
        Ok(Self { id: row.uuid(0)?, numbers: [row.int(1)?, row.int(2)?, row.int(3)?] })
    }
}

/// A row of either database. Columns are read by position.
pub(super) enum Row {
    Sqlite(Vec<Value>),
    Postgres(PgRow),
}

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
