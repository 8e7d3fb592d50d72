//! Connections to PostgreSQL. Every transaction has a time limit, because a connection that the network lost (a
//! fail-over, a balancer that lost its table) does not answer for minutes or for ever. A connection that did not answer
//! in time is dropped and replaced; it never returns to the pool. Arguments of statements are encoded here, too.

use std::time::Duration;

use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection, PgPool, Postgres};
use sqlx::{Arguments as _, AssertSqlSafe, Connection as _, Executor as _};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout, timeout_at};

use super::sql::{Arg, Bound, Values};

/// The time limit for a whole write transaction, without the time that the program computes in it.
const LIMIT: Duration = Duration::from_secs(10);
/// The time limit for a statement outside a write transaction: longer than the database's own.
const STATEMENT: Duration = Duration::from_secs(20);
/// The time limit for rolling back and returning a connection to the pool.
const GIVE_BACK: Duration = Duration::from_secs(5);
/// The time limit for an idle connection to answer a ping.
pub(super) const PING: Duration = Duration::from_secs(2);

/// READ COMMITTED: statements after the run's lock see what the run's last commit wrote.
const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionUse {
    /// Single statements, without a transaction around them.
    Statements,
    Snapshot,
    Write,
}

/// A connection, or a transaction that is rolled back when dropped.
pub(super) struct PostgresSession {
    conn: Option<PoolConnection<Postgres>>,
    of: SessionUse,
    /// When the transaction must end. `None` if each statement has its own limit.
    until: Option<Instant>,
    /// Whether a transaction is open, or the result of a statement was not awaited.
    is_open: bool,
}

impl PostgresSession {
    pub async fn begin(pool: &PgPool, of: SessionUse) -> Result<Self, sqlx::Error> {
        let conn = pool.acquire().await?;
        let until = (of == SessionUse::Write).then(|| Instant::now() + LIMIT);
        Self { conn: Some(conn), of, until, is_open: false }.begun().await
    }

    /// Begins a write transaction with a time limit that includes the wait for a connection.
    pub async fn begin_within(pool: &PgPool, limit: Duration) -> Result<Self, sqlx::Error> {
        let until = Some(Instant::now() + limit);
        let conn = in_time(limit, pool.acquire()).await?;
        Self { conn: Some(conn), of: SessionUse::Write, until, is_open: false }.begun().await
    }

    /// Begins the transaction of a new session, if it has one.
    async fn begun(mut self) -> Result<Self, sqlx::Error> {
        let begin = match self.of {
            SessionUse::Statements => return Ok(self),
            SessionUse::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            SessionUse::Write => BEGIN_WRITE,
        };
        self.with(async |conn| conn.execute(begin).await).await?;
        self.is_open = true;
        Ok(self)
    }

    /// Acquires a connection for a write transaction that [`Self::begin_with`] begins.
    pub async fn acquire(pool: &PgPool) -> Result<Self, sqlx::Error> {
        let (conn, until) = (Some(pool.acquire().await?), Some(Instant::now() + LIMIT));
        Ok(Self { conn, of: SessionUse::Write, until, is_open: false })
    }

    /// Begins a write transaction with these statements, which have no arguments, in the same round trip.
    pub async fn begin_with(&mut self, statements: &str) -> Result<(), sqlx::Error> {
        // If one of the statements fails, the transaction has begun nevertheless.
        self.is_open = true;
        let sql = AssertSqlSafe(format!("{BEGIN_WRITE}; {statements}"));
        self.with(async |conn| conn.execute(sql).await).await?;
        Ok(())
    }

    /// Moves the end of the time limit by the time that the program computed meanwhile.
    pub fn extend(&mut self, by: Duration) {
        self.until = self.until.map(|until| until + by);
    }

    pub fn writes(&self) -> bool {
        self.of == SessionUse::Write
    }

    /// Makes a call within the time limit. If the limit passes, or has passed before, the connection is closed.
    pub async fn with<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let conn = self.conn.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        let until = self.until.unwrap_or_else(|| Instant::now() + STATEMENT);
        let was_open = std::mem::replace(&mut self.is_open, true);
        // A call that begins too late could still be in time for `timeout_at`, which looks at the result first.
        let result = if Instant::now() < until { timeout_at(until, call(conn)).await.ok() } else { None };
        if let Some(result) = result {
            self.is_open = was_open;
            result
        } else {
            self.discard();
            let why = "the database did not answer in time; the connection was closed";
            Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, why)))
        }
    }

    /// Ends the transaction with COMMIT or ROLLBACK, if one is open.
    pub async fn end(mut self, how: &'static str) -> Result<(), sqlx::Error> {
        if !self.is_open {
            return Ok(());
        }
        self.with(async |conn| conn.execute(how).await).await?;
        self.is_open = false;
        Ok(())
    }

    /// Closes the connection without waiting for the server. The pool opens another one.
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

/// Encodes what is bound to a statement.
pub(super) fn arguments(bound: Vec<Bound>) -> Result<PgArguments, sqlx::Error> {
    let mut args = PgArguments::default();
    for bound in bound {
        let added = match bound {
            Bound::One(Arg::Int(value)) => args.add(value),
            Bound::One(Arg::Text(value)) => args.add(value),
            Bound::One(Arg::Blob(value)) => args.add(value),
            Bound::One(Arg::Uuid(value)) => args.add(value),
            Bound::Many(values) => add_array(&mut args, values),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(args)
}

/// Adds values as one argument, an array.
pub(super) fn add_array(args: &mut PgArguments, values: Values) -> Result<(), BoxDynError> {
    match values {
        Values::Int(values) => args.add(values),
        Values::Text(values) => args.add(values),
        Values::Blob(values) => args.add(values),
        Values::Uuid(values) => args.add(values),
    }
}

pub(super) async fn is_alive(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    in_time(PING, conn.ping()).await.map(|()| true)
}

/// Awaits a call of the driver for at most this time.
pub(super) async fn in_time<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(limit, call).await.unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::db::Sql;
    use crate::store::tests::support::World;

    #[tokio::test]
    async fn a_computation_in_a_transaction_does_not_count_as_silence_of_the_database() {
        let Some(world) = World::postgres().await else { return };
        let (limit, computed) = (Duration::from_secs(1), Duration::from_millis(1_200));
        for (extended, is_open) in [(true, true), (false, false)] {
            let mut conn = world.store.inner.db.write_on_this_thread_within(limit).await.expect("begins");
            tokio::time::sleep(computed).await;
            if extended {
                conn.extend(computed);
            }
            assert_eq!(conn.fetch_one(Sql::new("SELECT 1")).await.is_ok(), is_open);
        }
    }
}
