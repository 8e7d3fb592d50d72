//! Gauges of the rows in the database, for `/metrics`. They are counted in the background, for at most a hundredth of
//! the time, so that the cost of `/metrics` does not depend on the number of rows.

use std::collections::BTreeMap;
use std::time::Duration;

use shared::definition::Severity;
use shared::review::ReviewKind;
use tokio::time::{Instant, sleep};

use crate::background::BackgroundTask;
use crate::store::{CommitFollower, Error, Resume, Store, follow};

/// The minimum interval between counts of rows.
const ROWS: Duration = Duration::from_mins(1);
/// The minimum interval between counts of pending reviews.
const PENDING: Duration = Duration::from_secs(1);
/// The rest after a count, as a multiple of the time that it took.
const REST: u32 = 100;

/// Counts the rows of every table repeatedly.
pub fn count_rows(store: Store) -> BackgroundTask {
    let background = store.background().clone();
    let work = async move {
        loop {
            let begun = Instant::now();
            match store.counts().await {
                Ok(counts) => {
                    for (table, rows) in counts {
                        metrics::gauge!("countersign_rows", "table" => table).set(number(rows));
                    }
                }
                Err(error) => tracing::warn!(%error, "the rows of a table could not be counted"),
            }
            sleep(ROWS.max(begun.elapsed() * REST)).await;
        }
    };
    background.run("row count", work)
}

/// Counts pending reviews after commits.
pub fn count_pending(store: Store) -> BackgroundTask {
    let (background, commits) = (store.background().clone(), store.commits());
    background.start("count of pending reviews", |stop| follow(PendingCount(store), commits, stop))
}

struct PendingCount(Store);

impl CommitFollower for PendingCount {
    type Error = Error;
    const TROUBLE: &'static str = "the pending reviews could not be counted";
    const POLL: Duration = Duration::MAX;

    async fn advance(&mut self) -> Result<Resume, Error> {
        let begun = Instant::now();
        set_pending(&self.0.pending_by_kind().await?);
        sleep(PENDING.max(begun.elapsed() * REST)).await;
        Ok(Resume::OnCommit)
    }
}

/// Sets the gauge of every kind and severity, to 0 if none is pending.
fn set_pending(pending: &BTreeMap<(&'static str, &'static str), u64>) {
    for kind in ReviewKind::ALL.iter().copied().map(ReviewKind::as_str) {
        for severity in Severity::ALL.iter().copied().map(Severity::as_str) {
            let count = pending.get(&(kind, severity)).copied().unwrap_or(0);
            metrics::gauge!("countersign_reviews_pending", "kind" => kind, "severity" => severity).set(number(count));
        }
    }
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
