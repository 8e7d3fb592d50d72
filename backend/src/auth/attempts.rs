//! The limit of failed logins, by name and by address: ten at once, then one every six seconds.
//!
//! Only failures count, so that many people behind one address can log in at the same time. Names and addresses are
//! hashed into a fixed number of places: memory is bounded however many are tried, at the price that two may share a
//! place.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use shared::time::Timestamp;

use super::Error;
use crate::client_address::{ClientAddress, Network};

const PLACES: usize = 16_384;
/// Microseconds after which one failure is forgotten.
const INTERVAL: i64 = 6_000_000;
/// How many failures are heard at once.
const BURST: i64 = 10;

/// Failed attempts, by place: when all of its failures will be forgotten (the generic cell rate algorithm).
pub(super) struct Attempts {
    hasher: RandomState,
    forgotten_at: Mutex<Vec<i64>>,
}

impl Attempts {
    pub(super) fn new() -> Self {
        Self { hasher: RandomState::new(), forgotten_at: Mutex::new(vec![0; PLACES]) }
    }

    /// Whether another attempt is heard.
    pub(super) fn check(&self, keys: &[Key], now: Timestamp) -> Result<(), Error> {
        let forgotten_at = self.lock();
        let wait = keys.iter().map(|key| forgotten_at[self.place(key)] - now.0 - (BURST - 1) * INTERVAL).max();
        match wait {
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
            *place = (*place).max(now.0) + INTERVAL;
        }
    }

    fn place(&self, key: &Key) -> usize {
        usize::try_from(self.hasher.hash_one(key) % PLACES as u64).unwrap_or(0)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<i64>> {
        self.forgotten_at.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What failures are counted by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The name that was tried, whether or not there is such a person.
    Name(String),
    /// Where it came from.
    Client(Network),
}

impl From<ClientAddress> for Key {
    fn from(address: ClientAddress) -> Self {
        Self::Client(address.network())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_eleventh_failure_has_to_wait_and_is_then_heard() {
        let attempts = Attempts::new();
        let key = [Key::Name("ana".to_owned())];
        let now = Timestamp(1_000_000_000);
        for _ in 0..10 {
            attempts.check(&key, now).unwrap();
            attempts.failed(&key, now);
        }
        let Err(Error::TooManyAttempts { retry_after }) = attempts.check(&key, now) else { panic!("was heard") };
        assert_eq!(retry_after, 6);
        attempts.check(&key, now.after(Duration::from_secs(6))).unwrap();
    }
}
