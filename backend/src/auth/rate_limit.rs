//! Limits of failed logins. Only failures count, each against the budget of its origin, so that no one can use up the
//! attempts of others: an account is limited per network, and never as a whole. In a session, every attempt at its
//! person's password counts.

use std::time::Duration;

use super::Error;
use crate::client_address::Network;
use crate::rate_limit::RateLimit;

/// The key by which failures are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum AttemptKey {
    /// A username, whether or not it exists, and the network of the attempt.
    Account(String, Network),
    /// A browser that has logged in to the account before. It has its own budget, whatever others in its network do.
    Browser([u8; 32]),
    /// A session, for the password of its person.
    Session([u8; 32]),
    /// A network, for any usernames.
    Network(Network),
    /// The codes of an account's second factor, from any origin: whoever tries them knows the password.
    Codes(String),
    /// A network whose browsers return from the identity provider. Each return costs a request to the provider.
    Returns(Network),
    /// The log entries about failures of an account; those beyond the limit are not recorded.
    Record(String),
}

/// Counts failures by key. Each kind of key has its own budget: the number of failures at once, and the time after
/// which one is given back.
pub(super) struct Failures {
    accounts: RateLimit,
    browsers: RateLimit,
    sessions: RateLimit,
    networks: RateLimit,
    codes: RateLimit,
    records: RateLimit,
    returns: RateLimit,
}

impl Failures {
    pub(super) fn new() -> Self {
        Self {
            accounts: RateLimit::new(10, Duration::from_secs(6)),
            browsers: RateLimit::new(10, Duration::from_secs(6)),
            sessions: RateLimit::new(10, Duration::from_secs(6)),
            networks: RateLimit::new(50, Duration::from_secs(2)),
            codes: RateLimit::new(10, Duration::from_mins(1)),
            records: RateLimit::new(30, Duration::from_mins(1)),
            returns: RateLimit::new(50, Duration::from_secs(2)),
        }
    }

    /// Checks that another attempt is allowed. Fails with the longest wait of the keys.
    pub(super) fn check(&self, keys: &[AttemptKey], uptime: Duration) -> Result<(), Error> {
        match keys.iter().filter_map(|key| self.of(key).check(key, uptime).err()).max() {
            Some(retry_after) => Err(Error::TooManyAttempts { retry_after }),
            None => Ok(()),
        }
    }

    /// Counts an attempt, whether or not it fails, if another one is allowed.
    pub(super) fn take(&self, key: &AttemptKey, uptime: Duration) -> Result<(), Error> {
        self.of(key).take(key, uptime).map_err(|retry_after| Error::TooManyAttempts { retry_after })
    }

    /// Counts a failure for each key.
    pub(super) fn failed(&self, keys: &[AttemptKey], uptime: Duration) {
        for key in keys {
            self.of(key).charge(key, 1, uptime);
        }
    }

    fn of(&self, key: &AttemptKey) -> &RateLimit {
        match key {
            AttemptKey::Account(..) => &self.accounts,
            AttemptKey::Browser(_) => &self.browsers,
            AttemptKey::Session(_) => &self.sessions,
            AttemptKey::Network(_) => &self.networks,
            AttemptKey::Codes(_) => &self.codes,
            AttemptKey::Record(_) => &self.records,
            AttemptKey::Returns(_) => &self.returns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eleventh_failure_has_to_wait_and_is_then_heard() {
        let limit = Failures::new();
        let key = [AttemptKey::Codes("ana".to_owned())];
        let now = Duration::from_secs(1000);
        for _ in 0..10 {
            limit.check(&key, now).unwrap();
            limit.failed(&key, now);
        }
        let Err(Error::TooManyAttempts { retry_after }) = limit.check(&key, now) else { panic!("was heard") };
        assert_eq!(retry_after, 60);
        limit.check(&key, now + Duration::from_mins(1)).unwrap();
    }
}
