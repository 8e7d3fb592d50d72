//! Checks whether the database can be written, by a small write transaction, no more often than needed.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::db::Sql;
use super::{Error, Store};

/// How long a successful check is valid.
const PROBE_LIFETIME: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct LastProbe(Mutex<Option<Instant>>);

impl Store {
    /// Checks that the database can be written: it is reachable, has room, is not locked, and is no standby. Of
    /// concurrent callers, only one writes.
    pub async fn ready(&self) -> Result<(), Error> {
        let mut written = self.inner.written.0.lock().await;
        if written.is_some_and(|at| at.elapsed() < PROBE_LIFETIME) {
            return Ok(());
        }
        *written = None;
        self.inner.db.execute(Sql::new("UPDATE meta SET generation = generation")).await?;
        *written = Some(Instant::now());
        Ok(())
    }
}
