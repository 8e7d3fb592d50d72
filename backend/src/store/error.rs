//! The errors of the database and of stored data, and what can be done about them.

use shared::error::Mistake;

use super::commit_error::CommitError;
use super::driver_error::{ACQUIRE, DriverError};
use crate::engine::Refusal;

/// An error of the database, or of the data in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The driver or the database reported an error.
    #[error("database: {0}")]
    Database(#[from] DriverError),
    /// Stored data cannot be read by this server.
    #[error("stored data: {0}")]
    Stored(String),
    /// The value to store is nested so deeply that it could not be read back.
    #[error("the value to store is nested too deeply")]
    TooDeep,
    /// The cursor is not a place in the list; it may come from another database.
    #[error("the cursor is not a place in the list")]
    Cursor,
    /// The settings of the database are wrong, or it cannot be opened with them.
    #[error("{0}")]
    Settings(String),
}

/// What can be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The database cannot be reached or written at present. Every change fails alike, and may succeed later. Has a
    /// reason for people.
    Unavailable(&'static str),
    /// The transaction conflicted with another one, and may succeed if retried.
    Contended,
    /// Stored data cannot be read by this server. A retry gives the same result.
    Unreadable,
    /// The database refuses this statement or value. A retry gives the same result.
    Refused,
}

const AWAY: ErrorKind = ErrorKind::Unavailable("the database does not answer; try again in a moment");
const FULL: ErrorKind =
    ErrorKind::Unavailable("the disk of the database is full; nothing was changed; free some space");
const READ_ONLY: ErrorKind = ErrorKind::Unavailable(
    "the database is read-only (a standby, a demoted primary, or a read-only file); nothing was changed",
);
const LOCKED: ErrorKind =
    ErrorKind::Unavailable("another program has locked the database; nothing was changed; try again in a moment");
const DISK: ErrorKind = ErrorKind::Unavailable("the disk of the database failed; nothing was changed");

impl Error {
    /// What can be done about the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Database(error) => of_driver(error),
            Self::Stored(_) => ErrorKind::Unreadable,
            Self::TooDeep | Self::Cursor | Self::Settings(_) => ErrorKind::Refused,
        }
    }

    /// The database cannot be opened. `what` names it without a password; `remedy` says what to check.
    pub(super) fn cannot_open(what: &str, error: &DriverError, remedy: &str) -> Self {
        let why = match error {
            DriverError::Exhausted | DriverError::Postgres(sqlx::Error::PoolTimedOut) => {
                format!("it did not answer within {} s", ACQUIRE.as_secs())
            }
            DriverError::Postgres(sqlx::Error::Database(error)) => error.message().to_owned(),
            DriverError::Postgres(error) => error.to_string(),
            DriverError::Sqlite(error) => error.to_string(),
            other => other.to_string(),
        };
        Self::Settings(format!("the database ({what}) cannot be opened: {why}; {remedy}"))
    }

    /// Whether a single change of a group can be to blame, so that the others may succeed without it.
    pub(super) fn can_be_due_to_one_change(&self) -> bool {
        !matches!(self.kind(), ErrorKind::Unavailable(_))
    }

    /// Converts the error into the result of a change.
    pub(super) fn of_commit(&self) -> CommitError {
        match self.kind() {
            ErrorKind::Unavailable(why) => CommitError::Unavailable(why.to_owned()),
            ErrorKind::Contended => {
                CommitError::Unavailable("too many changes to the same rows at once; try again in a moment".to_owned())
            }
            ErrorKind::Unreadable => CommitError::Unreadable(self.to_string()),
            ErrorKind::Refused if matches!(self, Self::TooDeep) => {
                Refusal::Invalid(vec![Mistake::new("", "invalid", self.to_string())]).into()
            }
            ErrorKind::Refused => CommitError::Failed(self.to_string()),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

fn of_driver(error: &DriverError) -> ErrorKind {
    match error {
        DriverError::Exhausted | DriverError::Closed | DriverError::Interrupted => AWAY,
        DriverError::Column { .. } | DriverError::Packed => ErrorKind::Unreadable,
        DriverError::Sqlite(said) => match said {
            rusqlite::Error::SqliteFailure(said, _) => of_sqlite(said.extended_code),
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::Utf8Error(..) => ErrorKind::Unreadable,
            _ => ErrorKind::Refused,
        },
        DriverError::Postgres(said) => match said {
            sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            // A server that is shutting down says this in the middle of a session.
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed => AWAY,
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => ErrorKind::Unreadable,
            sqlx::Error::Database(said) => of_sqlstate(&said.code().unwrap_or_default()),
            _ => ErrorKind::Refused,
        },
    }
}

/// SQLite's extended result codes: <https://sqlite.org/rescode.html>. The low byte is the primary code.
fn of_sqlite(code: i32) -> ErrorKind {
    match code & 0xff {
        // SQLITE_BUSY, SQLITE_LOCKED.
        5 | 6 => LOCKED,
        // SQLITE_READONLY.
        8 => READ_ONLY,
        // SQLITE_NOMEM, SQLITE_IOERR, SQLITE_CANTOPEN.
        7 | 10 | 14 => DISK,
        // SQLITE_FULL.
        13 => FULL,
        _ => ErrorKind::Refused,
    }
}

/// PostgreSQL's SQLSTATEs: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn of_sqlstate(code: &str) -> ErrorKind {
    match code {
        // read_only_sql_transaction.
        "25006" => READ_ONLY,
        // disk_full.
        "53100" => FULL,
        // idle_in_transaction_session_timeout, transaction_timeout, lock_not_available; invalid_catalog_name.
        "25P03" | "25P04" | "55P03" | "3D000" => AWAY,
        _ => match code.get(..2) {
            // Connections, logging in, resources, operators (among them statement_timeout), the system below.
            Some("08" | "28" | "53" | "57" | "58") => AWAY,
            // Serialization failures and deadlocks.
            Some("40") => ErrorKind::Contended,
            _ => ErrorKind::Refused,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_breaks_off_is_a_database_that_is_away() {
        let broken = sqlx::Error::Protocol("unexpected response from SSLRequest: 0x00".into());
        assert!(matches!(of_driver(&broken.into()), ErrorKind::Unavailable(_)));
    }

    #[test]
    fn what_every_change_would_meet_is_told_from_what_one_may_be_to_blame_for() {
        let all = ["25006", "53100", "53300", "57P01", "57014", "08006", "25P03", "58030"];
        assert!(all.iter().all(|code| matches!(of_sqlstate(code), ErrorKind::Unavailable(_))));
        // unique_violation, untranslatable_character, program_limit_exceeded.
        assert!(["23505", "22P05", "54000"].iter().all(|code| of_sqlstate(code) == ErrorKind::Refused));
        assert!(["40001", "40P01"].iter().all(|code| of_sqlstate(code) == ErrorKind::Contended));
        // SQLITE_BUSY_SNAPSHOT, SQLITE_READONLY, SQLITE_IOERR_FSYNC, SQLITE_FULL.
        assert!([517, 8, 1034, 13].iter().all(|code| matches!(of_sqlite(*code), ErrorKind::Unavailable(_))));
        // SQLITE_CONSTRAINT_UNIQUE, SQLITE_CORRUPT.
        assert!([2067, 11].iter().all(|code| of_sqlite(*code) == ErrorKind::Refused));
    }
}
