//! Following the log: whoever reads it page by page is called again as long as there is more, and once something was
//! committed.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Error;

/// How long a reader waits at most without having heard of a commit: covers a notice that was lost.
const IDLE: Duration = Duration::from_secs(1);

/// A reader of the log that knows where it stands.
pub trait LogReader: Send {
    /// What could not be done where reading fails, for the server's log.
    const TROUBLE: &'static str;

    /// Reads a page and moves on. True: there may be more right now.
    fn advance(&mut self) -> impl Future<Output = Result<bool, Error>> + Send;
}

/// Follows the log from where the reader stands, until the stop or until the store is closed. `commits` is
/// [`Store::commits`](super::Store::commits).
pub async fn follow<F: LogReader>(mut reader: F, mut commits: watch::Receiver<u64>, stop: CancellationToken) {
    loop {
        commits.mark_unchanged();
        match reader.advance().await {
            Ok(true) if !stop.is_cancelled() => continue,
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "{}; trying again", F::TROUBLE),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = timeout(IDLE, commits.changed()) => if let Ok(Err(_)) = changed { return },
        }
    }
}
