//! Limits of failed logins. Only failures count, each against a budget of whoever made it, so that nobody can use up the
//! attempts of somebody else: an account is limited for each network from which it is tried, and never as a whole.
//!
//! Keys are hashed into a fixed number of places: memory is bounded however many are tried, at the price that two may
//! share a place.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use shared::time::Timestamp;

use super::Error;
use crate::client_address::Network;

const PLACES: usize = 16_384;
const TABLES: usize = 6;
const SECOND: i64 = 1_000_000;

/// What failures are counted by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The name that was tried, whether or not there is such a person, and the network from which it was tried.
    Account(String, Network),
    /// A browser that has logged in to the account before: whatever others in its network do, it has a budget of its own.
    Browser([u8; 32]),
    /// A network, whatever names it tries.
    Network(Network),
    /// The codes of an account's second factor, wherever they are tried: whoever tries them knows the password.
    Codes(String),
    /// A network that comes back from the identity provider: each time the provider is asked.
    Returns(Network),
    /// The entries of the log about an account: failures beyond are not recorded.
    Record(String),
}

impl Key {
    /// How many failures there may be at once, and the microseconds after which one is forgotten.
    fn budget(&self) -> (i64, i64) {
        match self {
            Self::Account(..) | Self::Browser(_) => (10, 6 * SECOND),
            Self::Network(_) | Self::Returns(_) => (50, 2 * SECOND),
            Self::Codes(_) => (10, 60 * SECOND),
            Self::Record(_) => (30, 60 * SECOND),
        }
    }

    /// Its table: keys share places only with those of the same budget.
    fn table(&self) -> usize {
        match self {
            Self::Account(..) => 0,
            Self::Browser(_) => 1,
            Self::Network(_) => 2,
            Self::Codes(_) => 3,
            Self::Record(_) => 4,
            Self::Returns(_) => 5,
        }
    }
}

/// Failures by key: when all of them will be forgotten (the generic cell rate algorithm).
pub(super) struct RateLimit {
    hasher: RandomState,
    forgotten_at: Mutex<Vec<i64>>,
}

impl RateLimit {
    pub(super) fn new() -> Self {
        Self { hasher: RandomState::new(), forgotten_at: Mutex::new(vec![0; TABLES * PLACES]) }
    }

    /// Whether another attempt is heard.
    pub(super) fn check(&self, keys: &[Key], now: Timestamp) -> Result<(), Error> {
        let forgotten_at = self.lock();
        let wait = keys.iter().map(|key| {
            let (burst, interval) = key.budget();
            forgotten_at[self.place(key)] - now.0 - (burst - 1) * interval
        });
        match wait.max() {
            Some(wait) if wait > 0 => {
                Err(Error::TooManyAttempts { retry_after: u64::try_from(wait).unwrap_or(0).div_ceil(1_000_000) })
            }
            _ => Ok(()),
        }
    }

    /// Counts a failure.
    pub(super) fn failed(&self, keys: &[Key], now: Timestamp) {
        let mut forgotten_at = self.lock();
        for key in keys {
            let place = &mut forgotten_at[self.place(key)];
            *place = (*place).max(now.0) + key.budget().1;
        }
    }

    fn place(&self, key: &Key) -> usize {
        key.table() * PLACES + usize::try_from(self.hasher.hash_one(key) % PLACES as u64).unwrap_or(0)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<i64>> {
        self.forgotten_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_eleventh_failure_has_to_wait_and_is_then_heard() {
        let limit = RateLimit::new();
        let key = [Key::Codes("ana".to_owned())];
        let now = Timestamp(1_000_000_000);
        for _ in 0..10 {
            limit.check(&key, now).unwrap();
            limit.failed(&key, now);
        }
        let Err(Error::TooManyAttempts { retry_after }) = limit.check(&key, now) else { panic!("was heard") };
        assert_eq!(retry_after, 60);
        limit.check(&key, now.after(Duration::from_mins(1))).unwrap();
    }
}
