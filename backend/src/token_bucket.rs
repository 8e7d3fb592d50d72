//! A token bucket: limits how often something may happen, with a burst after a pause, and a steady rate afterwards.
//! Time comes in as an argument.

use std::time::Duration;

use tokio::time::Instant;

/// One bucket (the generic cell rate algorithm).
#[derive(Debug)]
pub struct TokenBucket {
    /// The time until a token comes back.
    interval: Duration,
    /// The number of tokens after a pause.
    burst: u32,
    /// The time at which all taken tokens are back. `None` until the first is taken.
    full_at: Option<Instant>,
}

impl TokenBucket {
    /// Creates a full bucket of `burst` tokens, each of which comes back after `interval`.
    pub fn new(burst: u32, interval: Duration) -> Self {
        Self { interval, burst, full_at: None }
    }

    /// Takes a token, even if none is left. Returns the time until that token is available, zero if it already is.
    pub fn take(&mut self, now: Instant) -> Duration {
        let full_at = self.full_at.map_or(now, |full_at| full_at.max(now)) + self.interval;
        self.full_at = Some(full_at);
        full_at.saturating_duration_since(now + self.interval * self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(20);

    #[test]
    fn many_are_there_after_a_pause_and_then_they_come_steadily() {
        let (mut bucket, start) = (TokenBucket::new(16, INTERVAL), Instant::now());
        let at_once = |bucket: &mut TokenBucket, now| (0..100).take_while(|_| bucket.take(now).is_zero()).count();
        for _ in 0..16 {
            assert_eq!(bucket.take(start), Duration::ZERO);
        }
        assert_eq!(bucket.take(start), INTERVAL);
        assert_eq!(bucket.take(start + INTERVAL), INTERVAL, "as long as nothing stops");
        assert_eq!(bucket.take(start + INTERVAL * 3), Duration::ZERO, "its time had come");
        assert_eq!(at_once(&mut bucket, start + INTERVAL * 100), 16, "after a pause, however long");
    }

    #[test]
    fn a_steady_rate_is_never_held_up() {
        let (mut bucket, start) = (TokenBucket::new(3, INTERVAL), Instant::now());
        assert!((0..200).all(|round| bucket.take(start + INTERVAL * round).is_zero()));
    }
}
