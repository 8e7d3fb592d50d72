//! SQLite: moves the write-ahead log into the database file, beside the writer. A commit that had to do this itself
//! would make everyone wait for the pages of many earlier commits.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use super::db::Sql;
use super::driver_error::DriverError;
use super::follow::{CommitFollower, Resume, follow};

/// Moves the write-ahead log after commits, until the store is closed.
pub(super) async fn run(inner: Arc<Inner>) {
    let (commits, stop) = (inner.signal.commits(), inner.stop.clone());
    follow(WalCheckpoint(inner), commits, stop).await;
}

struct WalCheckpoint(Arc<Inner>);

impl CommitFollower for WalCheckpoint {
    type Error = DriverError;
    const TROUBLE: &'static str = "the write-ahead log could not be moved into the database";
    /// Not every write of this process is signalled, for example those of the archiver and of the index of the log.
    const POLL: Duration = Duration::from_secs(5);
    const GATHER: Duration = Duration::from_secs(1);

    /// PASSIVE does not block: pages that readers or the writer still need are left for the next time.
    async fn advance(&mut self) -> Result<Resume, DriverError> {
        self.0.db.read().await?.fetch(Sql::new("PRAGMA wal_checkpoint(PASSIVE)")).await?;
        Ok(Resume::OnCommit)
    }
}
