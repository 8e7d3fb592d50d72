//! The work that happens after commits, in the background. Most followers read the log: they make frames for sockets,
//! deliveries, the index, seals and erasures. Others look at what is there now, such as the gauge of pending reviews.
//! This module owns when a follower works (at once while there is more, after a rest, after commits), how it stops, and
//! how a cursor that servers share is moved.
//!
//! Intended differences stay with each follower of the log. They read different forms of the rows: decoded entries,
//! whole blocks of numbers, or the bytes to seal. They also store their places differently: sockets in memory,
//! deliveries and the index in the transaction that stores their results ([`Conn::move_place`]), and the sealer in its
//! newest seal, whose number only one server gets.

use std::fmt::Display;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::change_signal::{AT_ONCE, Commits};
use super::db::{Arg, Conn, Sql};
use super::driver_error::DriverError;
use crate::token_bucket::TokenBucket;

/// The interval between steps while this process and others keep committing. Together with the interval of notices, it
/// limits the time until another server sees a commit.
const READ_INTERVAL: Duration = Duration::from_millis(15);

/// When a follower continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// At once, since there may be more.
    Now,
    /// After this time.
    After(Duration),
    /// After the next commit, since nothing is left to do.
    OnCommit,
}

impl Resume {
    /// [`Self::Now`] if there may be more, otherwise [`Self::OnCommit`].
    pub fn if_more(more: bool) -> Self {
        if more { Self::Now } else { Self::OnCommit }
    }
}

/// A piece of work that continues after commits.
pub trait CommitFollower: Send {
    /// The error of a step.
    type Error: Display;
    /// The message for the server's log when a step fails.
    const TROUBLE: &'static str;
    /// The longest wait for a commit, in case a notice was lost.
    const POLL: Duration = Duration::from_secs(1);
    /// How long commits may gather after the first one.
    const GATHER: Duration = Duration::ZERO;
    /// The number of commits at which the wait ends early.
    const ENOUGH: u64 = u64::MAX;
    /// The wait after a failed step.
    const AFTER_FAILURE: Duration = Duration::from_secs(1);

    /// Takes the next step. Returns when to continue.
    fn advance(&mut self) -> impl Future<Output = Result<Resume, Self::Error>> + Send;
}

/// Runs a follower until the stop, or until the store is closed. A stop cancels the running step. `commits` comes from
/// [`Store::commits`](super::Store::commits).
pub async fn follow<F: CommitFollower>(
    mut follower: F,
    mut commits: watch::Receiver<Commits>,
    stop: CancellationToken,
) {
    let mut pace = TokenBucket::new(AT_ONCE, READ_INTERVAL);
    let work = async {
        loop {
            // Marked as seen before the step reads, so that commits made meanwhile are not missed.
            let seen = commits.borrow_and_update().count;
            match follower.advance().await {
                Ok(Resume::Now) => {}
                Ok(Resume::After(rest)) => sleep(rest).await,
                Ok(Resume::OnCommit) => {
                    if let Ok(Err(_closed)) = timeout(F::POLL, commits.changed()).await {
                        return;
                    }
                    // Commits of this process are in memory; if others commit too, each step is a query.
                    if commits.borrow().are_shared() {
                        sleep(pace.take(Instant::now())).await;
                    }
                    let enough = commits.wait_for(|commits| commits.count.wrapping_sub(seen) >= F::ENOUGH);
                    let _ = timeout(F::GATHER, enough).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "{}; trying again", F::TROUBLE);
                    sleep(F::AFTER_FAILURE).await;
                }
            }
        }
    };
    stop.run_until_cancelled(work).await;
}

impl Conn {
    /// Moves a place that servers share, by compare and swap, at the start of the transaction that stores the results
    /// up to it. Returns `false`, and changes nothing, if another server has moved it.
    pub(super) async fn move_place(
        &mut self,
        (table, column): (&str, &str),
        from: impl Into<Arg>,
        to: impl Into<Arg>,
    ) -> Result<bool, DriverError> {
        self.shorten_idle_timeout().await?;
        let sql = Sql::new("UPDATE ").push(table).push(" SET ").push(column).push(" = ").bind(to);
        let sql = sql.push(" WHERE ").push(column).push(" = ").bind(from);
        Ok(self.execute(sql).await? > 0)
    }
}
