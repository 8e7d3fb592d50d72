//! What became of a transaction whose COMMIT failed.

use std::time::Duration;

use shared::id::CommitId;

use super::super::Inner;
use super::super::db::Sql;
use super::locks::{self, Lock};

/// What is known of a transaction after it was written.
pub(super) struct Written {
    /// Stands in the log.
    pub commit: CommitId,
    /// The transaction; 0 in SQLite.
    pub xid: i64,
    /// The first row of the log that it wrote.
    pub seq: i64,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Committed,
    NotCommitted,
    Unknown,
}

/// How often, and how long apart, a database that went away during COMMIT is asked what became of it.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Finds out. In SQLite an I/O error at COMMIT ends the process: what the disk holds now is only known by opening it
/// again.
pub(super) async fn after(inner: &Inner, locks: &[Lock], written: &Written, error: &sqlx::Error) -> Fate {
    if !inner.db.is_postgres() {
        if is_io(error) {
            tracing::error!(%error, "the disk failed during COMMIT: the process ends, and recovers when it is started");
            std::process::abort();
        }
        return Fate::NotCommitted;
    }
    if is_refusal(error) {
        return Fate::NotCommitted;
    }
    for _ in 0..TRIES {
        match look_up(inner, locks, written).await {
            Ok(true) => return Fate::Committed,
            Ok(false) => return Fate::NotCommitted,
            Err(error) => tracing::warn!(%error, "looking for a transaction whose COMMIT was not answered"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Fate::Unknown
}

/// Whether the transaction is in the log. Its locks are taken first: they are free only when it has ended.
async fn look_up(inner: &Inner, locks: &[Lock], written: &Written) -> Result<bool, sqlx::Error> {
    let mut conn = inner.db.write().await?;
    locks::acquire(&mut conn, locks).await?;
    let sql = Sql::new("SELECT 1 FROM log WHERE xid = ")
        .bind(written.xid.to_string())
        .push("::text::xid8 AND seq = ")
        .bind(written.seq)
        .push(" AND commit_id = ")
        .bind(written.commit.0);
    let found = conn.fetch_one(sql).await?.is_some();
    conn.rollback().await?;
    Ok(found)
}

/// Whether the server itself says that it did not commit (and not that it is going away).
fn is_refusal(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| !code.starts_with("57") && !code.starts_with("08") && !code.starts_with("XX"))
}

/// Whether an SQLite error is of the disk: SQLITE_IOERR with all that it is extended to, or SQLITE_CORRUPT.
fn is_io(error: &sqlx::Error) -> bool {
    let Some(database) = error.as_database_error() else {
        // The connection itself is gone.
        return true;
    };
    let code: i32 = database.code().and_then(|code| code.parse().ok()).unwrap_or(0);
    matches!(code & 0xff, 10 | 11)
}
