//! Whether the database can be written: a small transaction on the usual path, not more often than needed.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::db::Sql;
use super::{Error, Store};

/// How long an answer holds.
const PROBE_LIFETIME: Duration = Duration::from_secs(5);

/// When a transaction last wrote.
#[derive(Default)]
pub(super) struct LastProbe(Mutex<Option<Instant>>);

impl Store {
    /// Makes sure that the database can be written: it is there, it has room, nobody else holds its lock, and it is no
    /// standby. Of those who ask at once, one looks.
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
