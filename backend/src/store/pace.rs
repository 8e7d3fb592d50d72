//! Limits how often something is done that each commit is a reason for and that covers all commits so far: some times at
//! once, and at a steady rate while commits keep coming. So nothing waits while little happens, and what it costs does not
//! grow with the load.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How many times in a row need not wait, once there was a pause.
const AT_ONCE: u32 = 16;

/// The times of one thing.
#[derive(Debug)]
pub(super) struct Pace {
    /// How far apart they are while commits keep coming.
    interval: Duration,
    /// When the last time was due at a steady rate.
    due: Option<Instant>,
}

impl Pace {
    pub fn new(interval: Duration) -> Self {
        Self { interval, due: None }
    }

    /// Waits until it may be done again.
    pub async fn wait(&mut self) {
        let wait = self.next(Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    /// How long it has to wait now.
    fn next(&mut self, now: Instant) -> Duration {
        // What was not used in a pause is saved up to this.
        let saved = now.checked_sub(self.interval * AT_ONCE);
        let due = self.due.max(saved).unwrap_or(now) + self.interval;
        self.due = Some(due);
        due.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(20);

    #[test]
    fn a_few_need_not_wait_and_more_are_spread_evenly() {
        let (mut pace, start) = (Pace::new(INTERVAL), Instant::now() + Duration::from_mins(1));
        for _ in 0..AT_ONCE {
            assert_eq!(pace.next(start), Duration::ZERO);
        }
        assert_eq!(pace.next(start), INTERVAL);
        assert_eq!(pace.next(start + INTERVAL), INTERVAL, "as long as nothing stops");
        assert_eq!(pace.next(start + INTERVAL * 3), Duration::ZERO, "its time had come");
        let later = start + INTERVAL * (4 + AT_ONCE);
        let at_once = (0..100).take_while(|_| pace.next(later).is_zero()).count();
        assert_eq!(at_once, usize::try_from(AT_ONCE).unwrap(), "after a pause, however long");
    }
}
