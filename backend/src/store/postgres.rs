//! PostgreSQL's connections. Every transaction has a time limit, because a connection that the network lost (a
//! fail-over, a balancer that lost its table) does not answer for minutes or for ever. A connection that did not answer
//! in time is dropped and replaced, and never returns to the pool.
//!
//! Imports nothing of the store.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool, Postgres};
use sqlx::{Connection as _, Executor as _};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a transaction that writes may take in all.
const LIMIT: Duration = Duration::from_secs(10);
/// How long a statement of others may take: longer than the database itself lets it.
const STATEMENT: Duration = Duration::from_secs(20);
/// How long a connection may take to become free when it is given back.
const GIVE_BACK: Duration = Duration::from_secs(5);
/// How long a connection that was idle may take to say that it is alive.
const PING: Duration = Duration::from_secs(2);

/// What a transaction may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionUse {
    /// Run single statements, without a transaction around them.
    Statements,
    /// Read one moment.
    Snapshot,
    /// Write. READ COMMITTED: what is read after the run's lock is what the run's last commit left.
    Write,
}

/// A connection, or a transaction that is rolled back when it is dropped.
pub(super) struct PostgresSession {
    conn: Option<PoolConnection<Postgres>>,
    of: SessionUse,
    /// When the transaction must have ended.
    until: Option<Instant>,
    /// A transaction is open, or a statement was not waited for.
    is_open: bool,
}

impl PostgresSession {
    pub async fn begin(pool: &PgPool, of: SessionUse) -> Result<Self, sqlx::Error> {
        let conn = pool.acquire().await?;
        let mut session = Self { conn: Some(conn), of, until: None, is_open: false };
        let begin = match of {
            SessionUse::Statements => return Ok(session),
            SessionUse::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            SessionUse::Write => "BEGIN ISOLATION LEVEL READ COMMITTED",
        };
        session.until = (of == SessionUse::Write).then(|| Instant::now() + LIMIT);
        session.with(async |conn| conn.execute(begin).await).await?;
        session.is_open = true;
        Ok(session)
    }

    pub fn writes(&self) -> bool {
        self.of == SessionUse::Write
    }

    /// Makes a call within the limit.
    pub async fn with<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let conn = self.conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        let until = self.until.unwrap_or_else(|| Instant::now() + STATEMENT);
        let was_open = std::mem::replace(&mut self.is_open, true);
        if let Ok(result) = timeout_at(until, call(conn)).await {
            self.is_open = was_open;
            result
        } else {
            self.discard();
            let why = "the database did not answer in time; the connection was closed";
            Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, why)))
        }
    }

    /// Ends its transaction with COMMIT or ROLLBACK.
    pub async fn end(mut self, how: &'static str) -> Result<(), sqlx::Error> {
        if !self.is_open {
            return Ok(());
        }
        self.with(async |conn| conn.execute(how).await).await?;
        self.is_open = false;
        Ok(())
    }

    /// Closes the connection without a word, and lets the pool open another one.
    fn discard(&mut self) {
        if let Some(conn) = self.conn.take() {
            drop(conn.detach());
        }
    }
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        let Some(mut conn) = self.conn.take() else { return };
        let Ok(runtime) = Handle::try_current() else {
            drop(conn.detach());
            return;
        };
        let is_open = self.is_open;
        runtime.spawn(async move {
            let rolled_back = !is_open || matches!(timeout(GIVE_BACK, conn.execute("ROLLBACK")).await, Ok(Ok(_)));
            if rolled_back {
                // The pool itself would wait without a limit.
                let _ = timeout(GIVE_BACK, conn.return_to_pool()).await;
            } else {
                drop(conn.detach());
            }
        });
    }
}

/// Whether a connection that was idle still answers.
pub(super) async fn is_alive(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match timeout(PING, conn.ping()).await {
        Ok(alive) => alive.map(|()| true),
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}
