//! The errors of the database drivers, and of the pool of connections to SQLite.
//!
//! `error` says what can be done about them.

use std::borrow::Cow;
use std::time::Duration;

use rusqlite::types::FromSqlError;

/// The longest wait for a connection to either database.
pub(super) const ACQUIRE: Duration = Duration::from_secs(10);

/// An error of rusqlite, of sqlx (PostgreSQL), or of a connection that was not available.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// SQLite refused a statement, or could not execute it.
    #[error("SQLite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL, or the connection to it, reported an error.
    #[error("PostgreSQL: {0}")]
    Postgres(#[from] sqlx::Error),
    /// No connection to SQLite became free in time.
    #[error("all connections to the database are in use")]
    Exhausted,
    /// The database was closed while it was still in use.
    #[error("the database is closed")]
    Closed,
    /// The thread that ran a statement ended without a result.
    #[error("a statement ended without a result")]
    Interrupted,
    /// The content of a compressed column is not what was compressed.
    #[error("a compressed column was changed")]
    Packed,
    /// A column of a row in SQLite has an unexpected type or value.
    #[error("column {index}: {source}")]
    Column {
        /// The position of the column in the row, from 0.
        index: usize,
        /// What is wrong with its value.
        source: FromSqlError,
    },
}

impl DriverError {
    /// The extended result code, if the error comes from SQLite: <https://sqlite.org/rescode.html>.
    pub(super) fn sqlite_code(&self) -> Option<i32> {
        match self {
            Self::Sqlite(error) => error.sqlite_error().map(|error| error.extended_code),
            _ => None,
        }
    }

    /// The SQLSTATE, if PostgreSQL returned one: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
    pub(super) fn sqlstate(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Postgres(error) => error.as_database_error()?.code(),
            _ => None,
        }
    }
}
