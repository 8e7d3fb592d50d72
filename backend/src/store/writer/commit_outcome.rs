//! The outcome of a transaction whose COMMIT failed.

use std::time::Duration;

use shared::id::CommitId;

use super::super::Inner;
use super::super::db::Sql;
use super::super::driver_error::DriverError;
use super::locks::{self, Lock};

/// What is known about a transaction that was written.
pub(super) struct Written {
    /// The id of the transaction, which its log rows have.
    pub commit: CommitId,
    /// The number of the first log row that it wrote.
    pub seq: i64,
    /// Whether a log row is large.
    pub large: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitOutcome {
    Committed,
    NotCommitted,
    Unknown,
}

/// The number of attempts to look up the outcome of a COMMIT whose connection was lost, and the pause between them.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Determines the outcome of a COMMIT that failed. In SQLite, an I/O error at COMMIT ends the process: only opening the
/// file again shows what is on disk.
pub(super) async fn after(inner: &Inner, locks: &[Lock], written: &Written, error: &DriverError) -> CommitOutcome {
    if !inner.db.is_postgres() {
        if is_io(error) {
            tracing::error!(%error, "the disk failed during COMMIT; the process ends, and recovers when restarted");
            std::process::abort();
        }
        return CommitOutcome::NotCommitted;
    }
    if is_refusal(error) {
        return CommitOutcome::NotCommitted;
    }
    for _ in 0..TRIES {
        match look_up(inner, locks, written).await {
            Ok(true) => return CommitOutcome::Committed,
            Ok(false) => return CommitOutcome::NotCommitted,
            Err(error) => tracing::warn!(%error, "could not find out whether a transaction was committed"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    CommitOutcome::Unknown
}

/// Whether the transaction is in the log. Takes its locks first, since they are only free once it has ended.
async fn look_up(inner: &Inner, locks: &[Lock], written: &Written) -> Result<bool, DriverError> {
    let mut conn = inner.db.writer_on_this_thread().await?;
    conn.begin_with(&locks::statements(locks)).await?;
    let sql =
        Sql::new("SELECT 1 FROM log WHERE seq = ").bind(written.seq).push(" AND commit_id = ").bind(written.commit.0);
    let found = conn.fetch_one(sql).await?.is_some();
    conn.rollback().await?;
    Ok(found)
}

/// Whether the server reported that it did not commit (and not that it is shutting down).
fn is_refusal(error: &DriverError) -> bool {
    error.sqlstate().is_some_and(|code| refuses(&code))
}

fn refuses(sqlstate: &str) -> bool {
    !["57", "08", "XX"].iter().any(|class| sqlstate.starts_with(class))
}

/// Whether an SQLite error comes from the disk: SQLITE_IOERR with its extended codes, or SQLITE_CORRUPT; or the
/// connection itself is gone.
fn is_io(error: &DriverError) -> bool {
    error.sqlite_code().is_none_or(|code| matches!(code & 0xff, 10 | 11))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::support::World;

    #[test]
    fn a_failing_disk_ends_the_process_and_a_full_or_busy_one_does_not() {
        let failure = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None).into();
        // SQLITE_IOERR, SQLITE_IOERR_FSYNC, SQLITE_CORRUPT.
        assert!([10, 1034, 11].into_iter().all(|code| is_io(&failure(code))));
        // SQLITE_FULL, SQLITE_BUSY, SQLITE_CONSTRAINT.
        assert!(![13, 5, 19].into_iter().any(|code| is_io(&failure(code))));
    }

    #[test]
    fn a_lost_connection_leaves_the_commit_in_doubt_and_a_refusal_does_not() {
        // serialization_failure, unique_violation; admin_shutdown, connection_failure.
        assert!(["40001", "23505"].into_iter().all(refuses));
        assert!(!["57P01", "08006"].into_iter().any(refuses));
        assert!(!is_refusal(&sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into()).into()));
    }

    #[tokio::test]
    async fn a_commit_in_doubt_is_looked_up_in_the_log() {
        let Some(world) = World::postgres().await else { return };
        world.launch("hello").await;
        let inner = &world.store.inner;
        let sql = Sql::new("SELECT commit_id, seq FROM log ORDER BY seq DESC LIMIT 1");
        let row = inner.db.read().await.expect("reads").fetch_one(sql).await.expect("reads").expect("a row");
        let commit = CommitId(row.uuid(0).expect("an id"));
        let mut written = Written { commit, seq: row.int(1).expect("a number"), large: false };
        let lost = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into()).into();
        assert_eq!(after(inner, &[(1, true)], &written, &lost).await, CommitOutcome::Committed);
        written.commit = CommitId(uuid::Uuid::nil());
        assert_eq!(after(inner, &[(1, true)], &written, &lost).await, CommitOutcome::NotCommitted);
    }
}
