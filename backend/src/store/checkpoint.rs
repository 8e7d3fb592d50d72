//! SQLite: moves what the write-ahead log holds into the database file, beside the writer. A commit that had to do this
//! itself would keep everybody waiting for many pages that are not its own.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use super::db::Sql;
use super::driver_error::DriverError;

/// How often, while there are commits.
const EVERY: Duration = Duration::from_secs(1);

/// Runs until the store is closed.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut commits = inner.signal.commits();
    let work = async {
        while commits.changed().await.is_ok() {
            tokio::time::sleep(EVERY).await;
            commits.borrow_and_update();
            if let Err(error) = passive(&inner).await {
                tracing::warn!(%error, "the write-ahead log was not moved into the database; it is tried again");
            }
        }
    };
    inner.stop.run_until_cancelled(work).await;
}

/// PASSIVE: waits for nobody. What readers or the writer still need stays for the next time.
async fn passive(inner: &Inner) -> Result<(), DriverError> {
    inner.db.read().await?.fetch(Sql::new("PRAGMA wal_checkpoint(PASSIVE)")).await?;
    Ok(())
}
