//! Following the log: the work that happens after commits, in the background. Followers create frames for sockets,
//! deliveries, the index, seals and erasures. This module owns when a follower works (at once while there is more,
//! after a rest, after commits), how it stops, and how a place that servers share is moved.
//!
//! Intended differences stay with each follower. They read different forms of the rows: decoded entries, whole blocks
//! of numbers, or the bytes to seal. They also keep their places differently: sockets in memory, deliveries and the
//! index in the transaction that stores their results ([`Conn::move_place`]), and the sealer in its newest seal, whose
//! number only one server gets.

use std::fmt::Display;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::change_signal::{AT_ONCE, Commits};
use super::db::{Arg, Conn, Sql};
use super::driver_error::DriverError;
use crate::token_bucket::TokenBucket;

/// How far apart steps are while this process and others keep committing. With the interval of notices, it is how long a
/// commit may take to be seen on another server.
const READ_INTERVAL: Duration = Duration::from_millis(15);

/// When a follower goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// At once: there may be more.
    Now,
    /// After this time.
    After(Duration),
    /// After a commit: everything was read.
    OnCommit,
}

impl Resume {
    /// At once if there may be more, otherwise after a commit.
    pub fn if_more(more: bool) -> Self {
        if more { Self::Now } else { Self::OnCommit }
    }
}

/// What follows the log.
pub trait LogFollower: Send {
    /// Why a step fails.
    type Error: Display;
    /// What could not be done when a step fails, for the server's log.
    const TROUBLE: &'static str;
    /// How long it waits for a commit at most: covers a notice that was lost.
    const POLL: Duration = Duration::from_secs(1);
    /// How long it lets commits gather after the first one.
    const GATHER: Duration = Duration::ZERO;
    /// With so many commits it waits no longer.
    const ENOUGH: u64 = u64::MAX;
    /// How long it waits after a failure.
    const AFTER_FAILURE: Duration = Duration::from_secs(1);

    /// Does the next step; says when it goes on.
    fn advance(&mut self) -> impl Future<Output = Result<Resume, Self::Error>> + Send;
}

/// Follows the log until the stop, or until the store is closed. A stop breaks off the step that is under way. `commits`
/// is [`Store::commits`](super::Store::commits).
pub async fn follow<F: LogFollower>(mut follower: F, mut commits: watch::Receiver<Commits>, stop: CancellationToken) {
    let mut pace = TokenBucket::new(AT_ONCE, READ_INTERVAL);
    let work = async {
        loop {
            // Seen before reading, so that what is committed meanwhile is not missed.
            let seen = commits.borrow_and_update().count;
            match follower.advance().await {
                Ok(Resume::Now) => {}
                Ok(Resume::After(rest)) => sleep(rest).await,
                Ok(Resume::OnCommit) => {
                    if let Ok(Err(_closed)) = timeout(F::POLL, commits.changed()).await {
                        return;
                    }
                    // What this process commits itself is in memory; the rest is asked of the database.
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
    /// Moves a place that servers share, by compare and swap, at the start of the transaction that stores what was made up
    /// to it. `false`: another server has moved it, and nothing was changed.
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
