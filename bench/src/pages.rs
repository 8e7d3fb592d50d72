//! How many pages of the database a commit changes that is alone in its transaction. SQLite writes each of them whole,
//! and waits for the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use backend::clock::SystemClock;
use backend::store::{Store, StoreOptions};
use rusqlite::Connection;
use shared::JsonMap;
use shared::id::ReviewId;

use crate::below;
use crate::client::CLIENTS;
use crate::report::Row;
use crate::server::FLOW;
use crate::store::{decide, launch, save_flow};

/// The number of runs before the measurement, most of them finished, so that new rows are spread over many pages.
const RUNS: usize = 40_000;
/// The number of these runs that wait.
const WAITING: usize = 2_000;
/// The number of measured launches, and of measured decisions.
const TIMES: usize = 200;
/// The bytes of a page in the write-ahead log with its frame header; `HEADER` are those of the file's header.
const FRAME: u64 = 4096 + 24;
const HEADER: u64 = 32;

/// Measures the average number of pages that a launch writes, and a decision that ends its run.
#[expect(clippy::cast_precision_loss, reason = "numbers of pages are far below the precision of a double")]
pub async fn of_one_commit() -> Result<[Row; 2]> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pages.db");
    let url = format!("sqlite:{}", path.display());
    // Without the index of the log, which is written apart from the commits, many rows at a time.
    let options = StoreOptions { index_log: false, ..StoreOptions::new(url, Arc::new(SystemClock)) };
    let store = Store::open(options).await?;
    save_flow(&store, FLOW).await?;
    let mut waiting = fill(&store).await?;
    let reader = Connection::open(&path)?;
    let log = PathBuf::from(format!("{}-wal", path.display()));
    hold(&reader, &log)?;
    let (mut launched, mut decided) = (0, 0);
    for _ in 0..TIMES {
        let before = pages(&log)?;
        let (_, review) = launch(&store, "ask", JsonMap::new()).await?;
        let between = pages(&log)?;
        launched += between - before;
        waiting.push(review);
        // People decide anywhere in the queue, not at its ends.
        let review = waiting.swap_remove(waiting.len() * 7 / 11);
        decide(&store, review).await?;
        decided += pages(&log)? - between;
    }
    reader.execute_batch("ROLLBACK")?;
    store.close().await;
    let average = |pages: u64| pages as f64 / TIMES as f64;
    Ok([
        below("pages_of_launch", average(launched), "pages", 20.0),
        below("pages_of_decision", average(decided), "pages", 8.0),
    ])
}

async fn fill(store: &Store) -> Result<Vec<ReviewId>> {
    let clients = (0..CLIENTS).map(|_| async move {
        let mut reviews = Vec::new();
        for number in 0..RUNS / CLIENTS {
            let (_, review) = launch(store, "ask", JsonMap::new()).await?;
            // The last runs of each client stay waiting.
            if number < (RUNS - WAITING) / CLIENTS {
                decide(store, review).await?;
            } else {
                reviews.push(review);
            }
        }
        anyhow::Ok(reviews)
    });
    Ok(futures::future::try_join_all(clients).await?.concat())
}

/// Empties the write-ahead log, and begins a read transaction. While that is open, the log only grows.
fn hold(reader: &Connection, log: &Path) -> Result<()> {
    reader.busy_timeout(std::time::Duration::from_secs(10))?;
    let busy: i64 = reader.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    ensure!(busy == 0 && log.metadata()?.len() == 0, "the write-ahead log is not empty");
    reader.execute_batch("BEGIN; SELECT COUNT(*) FROM meta")?;
    Ok(())
}

/// The number of pages in the write-ahead log.
fn pages(log: &Path) -> Result<u64> {
    Ok(log.metadata()?.len().saturating_sub(HEADER) / FRAME)
}
