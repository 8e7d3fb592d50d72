//! Retries while the database is unavailable. Refusals and unreadable data are final.

use std::time::Duration;

use super::{Error, ErrorKind};

/// The shortest and the longest wait between two attempts.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Waits that double, up to a limit.
#[derive(Debug, Default)]
pub struct ExponentialBackoff(Option<Duration>);

impl ExponentialBackoff {
    /// The next wait.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.0.map_or(FIRST_WAIT, |last| (last * 2).min(MAX_WAIT));
        self.0 = Some(wait);
        wait
    }
}

/// Makes attempts until the database is available.
///
/// # Errors
///
/// Errors that a retry does not help: stored data cannot be read, or the database refuses the statement.
pub async fn with_retries<T, F: Future<Output = Result<T, Error>>>(attempt: impl Fn() -> F) -> Result<T, Error> {
    let mut backoff = ExponentialBackoff::default();
    loop {
        match attempt().await {
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable(_) | ErrorKind::Contended) => {
                tracing::warn!(%error, "the database could not be reached; trying again");
                tokio::time::sleep(backoff.next_wait()).await;
            }
            done => return done,
        }
    }
}
