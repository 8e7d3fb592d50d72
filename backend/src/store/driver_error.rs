//! The errors of a database driver, or between the pool of SQLite's connections and its file.
//!
//! Imports nothing of the store: `error` has the remedies.

use std::borrow::Cow;
use std::time::Duration;

use rusqlite::types::FromSqlError;

/// How long a connection to either database is waited for.
pub(super) const ACQUIRE: Duration = Duration::from_secs(10);

/// An error of rusqlite, of sqlx (PostgreSQL), or of a connection that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// SQLite refused a statement, or could not carry it out.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL, or the connection to it.
    #[error("PostgreSQL: {0}")]
    Postgres(#[from] sqlx::Error),
    /// No connection to SQLite became free in time.
    #[error("all connections to the database are in use")]
    Exhausted,
    /// The database was closed while somebody still used it.
    #[error("the database is closed")]
    Closed,
    /// The thread that ran a statement ended without a result.
    #[error("a statement ended without a result")]
    Interrupted,
    /// A column holds something else than what was compressed for it.
    #[error("a compressed column was changed")]
    Packed,
    /// A column of a row of SQLite holds something else than what belongs there.
    #[error("column {index}: {source}")]
    Column {
        /// Its position in the row, from 0.
        index: usize,
        /// What it holds instead.
        source: FromSqlError,
    },
}

impl DriverError {
    /// The extended result code of SQLite: <https://sqlite.org/rescode.html>.
    pub(super) fn sqlite_code(&self) -> Option<i32> {
        match self {
            Self::Sqlite(error) => error.sqlite_error().map(|error| error.extended_code),
            _ => None,
        }
    }

    /// What PostgreSQL answered: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
    pub(super) fn sqlstate(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Postgres(error) => error.as_database_error()?.code(),
            _ => None,
        }
    }
}
