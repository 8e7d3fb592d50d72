//! Limits of logins. Failures count against the budget of their origin, so that no one can use up the attempts of
//! others: an account is limited per network, and never as a whole. In a session, every attempt at its person's password
//! counts. Successful logins, each of which is kept in the log for ever, count against the account.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use shared::id::Username;
use strum::VariantArray as _;

use super::Error;
use crate::client_address::Network;
use crate::rate_limit::RateLimit;

/// The key by which failures are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, strum::EnumDiscriminants)]
#[strum_discriminants(name(AttemptKind), derive(Hash, strum::VariantArray))]
pub(super) enum AttemptKey {
    /// A username, whether or not it exists, and the network of the attempt.
    Account(String, Network),
    /// A browser that has logged in to the account before. It has its own budget, whatever others in its network do.
    Browser([u8; 32]),
    /// A session, for the password of its person.
    Session([u8; 32]),
    /// A network, for any usernames.
    Network(Network),
    /// The networks of a site, for any usernames: whoever has a /48 has 65,536 networks.
    Site(Network),
    /// The codes of an account's second factor at logins, from any origin: whoever tries them knows the password.
    Codes(String),
    /// Those in sessions of the account: whoever has only a session must not use up the attempts of its owner's logins.
    SessionCodes(String),
    /// A network whose browsers return from the identity provider. Each return costs a request to the provider.
    Returns(Network),
    /// An account whose password, or account at the provider, was right.
    Login(String, LoginWay),
    /// The log entries about failures of an account; those beyond the limit are not recorded.
    Record(String),
    /// The log entries about accounts at the identity provider that belong to no person here, all together: anybody may
    /// have many of them.
    Strangers,
}

/// The way of a successful login. Each has a budget of its own, so that a program that knows the password does not keep
/// the person out of the browser that they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LoginWay {
    /// In a browser that has logged in to the account before.
    KnownBrowser,
    /// In another browser or program.
    Other,
    /// Through the identity provider.
    Provider,
}

impl AttemptKind {
    /// Returns the budget of this kind of key: the number of attempts at once, and the time after which one is given
    /// back.
    fn budget(self) -> RateLimit {
        match self {
            Self::Account | Self::Browser | Self::Session => RateLimit::new(10, Duration::from_secs(6)),
            Self::Network | Self::Returns => RateLimit::new(50, Duration::from_secs(2)),
            Self::Site => RateLimit::new(500, Duration::from_millis(200)),
            Self::Codes | Self::SessionCodes => RateLimit::new(10, Duration::from_mins(1)),
            Self::Login => RateLimit::new(30, Duration::from_secs(6)),
            // The log keeps them: whoever guesses for a year adds 50,000 entries to an account, and hides nothing.
            Self::Record => RateLimit::new(30, Duration::from_mins(10)),
            Self::Strangers => RateLimit::new(300, Duration::from_secs(6)),
        }
    }
}

/// Counts attempts by key.
pub(super) struct LoginLimits {
    budgets: HashMap<AttemptKind, RateLimit>,
    /// The failures of people that were not recorded since the last one that was.
    unrecorded: Mutex<HashMap<Username, u64>>,
}

impl LoginLimits {
    pub(super) fn new() -> Self {
        let budgets = AttemptKind::VARIANTS.iter().map(|kind| (*kind, kind.budget())).collect();
        Self { budgets, unrecorded: Mutex::default() }
    }

    /// Counts a failure of a person. If it may be recorded, returns how many before it were not.
    pub(super) fn record(&self, person: &Username, uptime: Duration) -> Option<u64> {
        let mut unrecorded = self.unrecorded.lock();
        if self.take(&AttemptKey::Record(person.to_string()), uptime).is_ok() {
            return Some(unrecorded.remove(person).unwrap_or(0));
        }
        *unrecorded.entry(person.clone()).or_insert(0) += 1;
        None
    }

    /// Checks that another attempt is allowed. Fails with the longest wait of the keys.
    pub(super) fn check(&self, keys: &[AttemptKey], uptime: Duration) -> Result<(), Error> {
        match keys.iter().filter_map(|key| self.of(key).check(key, uptime).err()).max() {
            Some(seconds) => Err(Error::TooManyAttempts(seconds)),
            None => Ok(()),
        }
    }

    /// Counts an attempt, whether or not it fails, if another one is allowed.
    pub(super) fn take(&self, key: &AttemptKey, uptime: Duration) -> Result<(), Error> {
        self.of(key).take(key, uptime).map_err(Error::TooManyAttempts)
    }

    pub(super) fn count(&self, keys: &[AttemptKey], uptime: Duration) {
        for key in keys {
            self.of(key).charge(key, 1, uptime);
        }
    }

    fn of(&self, key: &AttemptKey) -> &RateLimit {
        &self.budgets[&AttemptKind::from(key)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_failure_says_how_many_before_it_are_not_in_the_log() {
        let limit = LoginLimits::new();
        let now = Duration::from_secs(1000);
        let record = |name: &str, now| limit.record(&name.parse().unwrap(), now);
        let recorded: Vec<_> = (0..40).filter_map(|_| record("ana", now)).collect();
        assert_eq!(recorded, [0; 30]);
        assert_eq!(record("tom", now), Some(0));
        assert_eq!(record("ana", now + Duration::from_mins(10)), Some(10));
        assert_eq!(record("ana", now + Duration::from_mins(20)), Some(0));
    }

    #[test]
    fn the_eleventh_failure_has_to_wait_and_is_then_heard() {
        let limit = LoginLimits::new();
        let key = [AttemptKey::Codes("ana".to_owned())];
        let now = Duration::from_secs(1000);
        for _ in 0..10 {
            limit.check(&key, now).unwrap();
            limit.count(&key, now);
        }
        let Err(Error::TooManyAttempts(seconds)) = limit.check(&key, now) else { panic!("was heard") };
        assert_eq!(seconds, 60);
        limit.check(&key, now + Duration::from_mins(1)).unwrap();
    }
}
