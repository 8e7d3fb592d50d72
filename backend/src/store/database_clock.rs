//! The one clock of all servers on a PostgreSQL: each server's clock is moved onto that of the database. What one server
//! makes due (tasks, deadlines, sessions), another one judges, so a difference between their machines would delay calls,
//! or make decisions late that arrived in time. This module measures the difference; whoever asks the clock gets the
//! database's time. Like a clock that an administrator sets, the corrected one may go back when the database's does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::db::{Conn, Db, Sql};
use super::driver_error::DriverError;
use super::leases::{POSTGRES_NOW, micros};
use super::{Error, Inner};
use crate::clock::Clock;

/// The interval between measurements: for so long, a clock that was set is wrong.
const INTERVAL: Duration = Duration::from_secs(10);
/// The number of questions in a measurement. The fastest answer counts.
const QUESTIONS: u32 = 5;
/// The difference from which on the administrator is told: certificates and other servers go by the machine's clock.
const NOTABLE: Duration = Duration::from_secs(1);

/// How far the clock is behind the database's.
struct Measured {
    /// The difference, in microseconds; negative if the clock is ahead.
    behind: i64,
    /// How much the difference may be wrong.
    uncertainty: i64,
}

/// Moves a clock onto that of the database, if it can be moved.
pub(super) async fn correct(db: &Db, clock: &dyn Clock) -> Result<(), Error> {
    let Some(offset) = clock.offset().filter(|_| db.is_postgres()) else { return Ok(()) };
    let before = offset.load(Ordering::Acquire);
    let after = before + correction(&measure(&mut db.read().await?, clock).await?);
    offset.store(after, Ordering::Release);
    if is_notable(after) && !is_notable(before) {
        let seconds = Duration::from_micros(after.unsigned_abs()).as_secs_f64();
        let side = if after < 0 { "ahead of" } else { "behind" };
        tracing::warn!(
            "this machine's clock is {seconds:.1} s {side} the database's, which is used instead; \
             let NTP set the clocks of both machines"
        );
    }
    Ok(())
}

/// Corrects the clock of a store at intervals, until the store is closed. If the database does not answer, the clock
/// keeps its last correction.
pub(super) async fn run(inner: Arc<Inner>) {
    let work = async {
        loop {
            sleep(INTERVAL).await;
            if let Err(error) = correct(&inner.db, &*inner.clock).await {
                tracing::debug!(%error, "the clock of the database could not be read");
            }
        }
    };
    inner.stop.run_until_cancelled(work).await;
}

/// Asks the database for its time. An answer was right in the middle of its round trip, give or take a half of it.
async fn measure(conn: &mut Conn, clock: &dyn Clock) -> Result<Measured, Error> {
    let mut best: Option<Measured> = None;
    for _ in 0..QUESTIONS {
        let (asked, begun) = (clock.now().0, clock.uptime());
        let row = conn.fetch_one(Sql::new("SELECT ").push(POSTGRES_NOW)).await?;
        let half = micros(clock.uptime().saturating_sub(begun)) / 2;
        let theirs = row.ok_or(DriverError::Interrupted)?.int(0)?;
        if best.as_ref().is_none_or(|best| half < best.uncertainty) {
            best = Some(Measured { behind: theirs - asked - half, uncertainty: half });
        }
    }
    best.ok_or_else(|| Error::Stored("the database did not tell the time".to_owned()))
}

/// By how much to move the clock. A difference that may be none is left, so that the clock stays even.
fn correction(measured: &Measured) -> i64 {
    if measured.behind.abs() > measured.uncertainty { measured.behind } else { 0 }
}

fn is_notable(offset: i64) -> bool {
    Duration::from_micros(offset.unsigned_abs()) >= NOTABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_corrected_whole_unless_it_may_be_none() {
        for (behind, uncertainty, by) in [(300, 200, 300), (-300, 200, -300), (200, 200, 0), (-100, 200, 0)] {
            assert_eq!(correction(&Measured { behind, uncertainty }), by, "{behind} ± {uncertainty}");
        }
    }
}
