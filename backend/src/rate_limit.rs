//! Rate limits: a limit by key, whose limits a request counts against, and the write budgets (requests per second and
//! bytes per minute, because what is written is kept for ever).
//!
//! Time comes in as an argument: the server's uptime, since a clock that is set back would lock out everybody.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::Deserialize;
use shared::access::{ADMIN, DEVELOPER, Principal};
use shared::error::{Code, Problem};
use shared::id::Username;

/// The number of slots that keys are hashed into. It bounds the memory, at the price that two keys may share a slot.
const SLOTS: usize = 16_384;

/// A limit by key (the generic cell rate algorithm): used units are given back at a steady rate.
pub struct RateLimit {
    hasher: RandomState,
    /// The time until one unit is given back, in nanoseconds.
    interval: i64,
    /// The time until a fully used burst is given back, in nanoseconds.
    burst: i64,
    /// The longest time until everything that a key has used is given back, in nanoseconds. Use beyond it is not counted.
    longest: i64,
    /// For each slot, the uptime at which everything it has used is given back, in nanoseconds.
    full_at: Box<[AtomicI64]>,
    /// For each slot, the time of the units that are reserved, in nanoseconds. Time gives back none of them.
    reserved: Box<[AtomicI64]>,
}

impl RateLimit {
    /// Allows a burst of `units`, each of which is given back after `interval`.
    pub fn new(units: u32, interval: Duration) -> Self {
        let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX).max(1);
        Self::of(interval, interval.saturating_mul(i64::from(units)), i64::MAX)
    }

    /// Allows `units` a minute, all of them at once if need be. Whatever was used beyond that, the next unit is left about
    /// a minute later. `None` if `units` is 0.
    fn per_minute(units: u64) -> Option<Self> {
        const MINUTE: i64 = 60_000_000_000;
        let units = i64::try_from(units).ok().filter(|units| *units > 0)?;
        Some(Self::of((MINUTE / units).max(1), MINUTE, 2 * MINUTE))
    }

    fn of(interval: i64, burst: i64, longest: i64) -> Self {
        let unused = || (0..SLOTS).map(|_| AtomicI64::new(0)).collect();
        Self { hasher: RandomState::new(), interval, burst, longest, full_at: unused(), reserved: unused() }
    }

    /// Uses a unit. If none is left, returns the seconds until one is.
    pub fn take(&self, key: &impl Hash, uptime: Duration) -> Result<(), u64> {
        let now = nanoseconds(uptime);
        let used = |full_at: i64| full_at.max(now).saturating_add(self.interval);
        let fits = |full_at: i64| Some(used(full_at)).filter(|used| used - now <= self.burst);
        let taken = self.full_at[self.slot(key)].fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(|_| ()).or_else(|_| self.check(key, uptime))
    }

    /// Checks whether a unit is left without using it. If not, returns the seconds until one is, as if what is reserved
    /// were used.
    pub fn check(&self, key: &impl Hash, uptime: Duration) -> Result<(), u64> {
        let slot = self.slot(key);
        let used = self.full_at[slot].load(Ordering::Relaxed).saturating_sub(nanoseconds(uptime)).max(0);
        let used = used.saturating_add(self.reserved[slot].load(Ordering::Relaxed)).saturating_add(self.interval);
        let missing = u64::try_from(used - self.burst).unwrap_or(0);
        if missing == 0 { Ok(()) } else { Err(missing.div_ceil(1_000_000_000)) }
    }

    /// Uses so many units, even if fewer are left.
    pub fn charge(&self, key: &impl Hash, units: u64, uptime: Duration) {
        let used = self.time_of(units);
        let now = nanoseconds(uptime);
        let latest = now.saturating_add(self.longest);
        let charged = |full_at: i64| Some(full_at.max(now).saturating_add(used).min(latest));
        let _ = self.full_at[self.slot(key)].fetch_update(Ordering::Relaxed, Ordering::Relaxed, charged);
    }

    /// Reserves so many units, or those of a whole burst if that is fewer, until [`Self::release`].
    fn reserve(&self, key: &impl Hash, units: u64) {
        self.reserved[self.slot(key)].fetch_add(self.time_of(units).min(self.burst), Ordering::Relaxed);
    }

    /// Ends the reservation of so many units.
    fn release(&self, key: &impl Hash, units: u64) {
        self.reserved[self.slot(key)].fetch_sub(self.time_of(units).min(self.burst), Ordering::Relaxed);
    }

    /// Returns the time after which so many units are given back, in nanoseconds.
    fn time_of(&self, units: u64) -> i64 {
        i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(self.interval)
    }

    fn slot(&self, key: &impl Hash) -> usize {
        let slot = self.hasher.hash_one(key) % SLOTS as u64;
        usize::try_from(slot).unwrap_or(0)
    }
}

fn nanoseconds(uptime: Duration) -> i64 {
    i64::try_from(uptime.as_nanos()).unwrap_or(i64::MAX)
}

/// Whose limits a request counts against. All tokens of a person share limits of their own. If they shared those of the
/// person, whoever has a token could use up what its creator needs to revoke it; if each had its own, a person could
/// multiply their limits by creating tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LimitHolder {
    /// A person, in all their sessions and in Slack.
    Person(Username),
    /// The tokens of a person.
    TokensOf(Username),
}

impl LimitHolder {
    /// Returns whose limits a request of this principal counts against.
    pub fn of(principal: &Principal) -> Self {
        let username = principal.username.clone();
        if principal.token { Self::TokensOf(username) } else { Self::Person(username) }
    }
}

/// Ends one of the uses that are counted under a key, and forgets the key with the last of them.
pub(crate) fn give_back<K: Eq + Hash>(taken: &mut HashMap<K, usize>, key: &K) {
    if let Some(own) = taken.get_mut(key) {
        *own -= 1;
        if *own == 0 {
            taken.remove(key);
        }
    }
}

/// The write limits per person: the table `[limits]` of the settings file. 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WriteLimits {
    /// Writes per second of a person who is neither developer nor admin.
    pub writes_per_second: u64,
    /// Bytes written per minute by such a person.
    pub bytes_per_minute: u64,
    /// Writes per second of a developer or an admin, and of their tokens with such a role.
    pub developer_writes_per_second: u64,
    /// Bytes written per minute by a developer or an admin.
    pub developer_bytes_per_minute: u64,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self {
            writes_per_second: 100,
            bytes_per_minute: 32 * 1024 * 1024,
            developer_writes_per_second: 1000,
            developer_bytes_per_minute: 256 * 1024 * 1024,
        }
    }
}

/// The write budgets of all persons and their tokens.
pub struct Budgets {
    developers: WriteBudget,
    others: WriteBudget,
}

impl Default for Budgets {
    fn default() -> Self {
        Self::new(WriteLimits::default())
    }
}

struct WriteBudget {
    writes: Option<RateLimit>,
    bytes: Option<RateLimit>,
}

impl Budgets {
    /// Creates unused budgets with these limits.
    pub fn new(limits: WriteLimits) -> Self {
        let budget = |writes: u64, bytes| WriteBudget {
            writes: RateLimit::per_minute(writes.saturating_mul(60)),
            bytes: RateLimit::per_minute(bytes),
        };
        Self {
            developers: budget(limits.developer_writes_per_second, limits.developer_bytes_per_minute),
            others: budget(limits.writes_per_second, limits.bytes_per_minute),
        }
    }

    /// Counts a write. Until [`Self::settle`] knows how many bytes it has, the most that it may have are reserved:
    /// without them, requests that are carried out together would be admitted by what none of them has used yet. Fails
    /// with `429` if the budget is used up.
    pub fn admit(&self, principal: &Principal, most_bytes: u64, uptime: Duration) -> Result<(), Problem> {
        let WriteBudget { writes, bytes } = self.of(principal);
        let holder = LimitHolder::of(principal);
        for (limit, what) in [(writes, "requests that write"), (bytes, "bytes")] {
            if let Some(Err(seconds)) = limit.as_ref().map(|limit| limit.check(&holder, uptime)) {
                let who = match &holder {
                    LimitHolder::Person(name) => format!("{name} has"),
                    LimitHolder::TokensOf(name) => format!("the tokens of {name} have"),
                };
                let detail = format!("{who} reached the limit of {what} per person; try again in {seconds} s");
                let problem = Problem::new(Code::TooManyRequests).detail(detail);
                return Err(Problem { retry_after: Some(seconds), ..problem });
            }
        }
        self.count(principal, uptime);
        if let Some(limit) = bytes {
            limit.reserve(&holder, most_bytes);
        }
        Ok(())
    }

    /// Counts a write that is not refused even if the budget is used up.
    pub fn count(&self, principal: &Principal, uptime: Duration) {
        if let Some(writes) = &self.of(principal).writes {
            writes.charge(&LimitHolder::of(principal), 1, uptime);
        }
    }

    /// Charges the bytes that a write has written, and ends the reservation of the most for which it was admitted.
    pub fn settle(&self, principal: &Principal, most_bytes: u64, bytes: u64, uptime: Duration) {
        if let Some(limit) = &self.of(principal).bytes {
            let holder = LimitHolder::of(principal);
            limit.charge(&holder, bytes, uptime);
            limit.release(&holder, most_bytes);
        }
    }

    fn of(&self, principal: &Principal) -> &WriteBudget {
        if principal.has(DEVELOPER) || principal.has(ADMIN) { &self.developers } else { &self.others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);

    fn person(name: &str, roles: &[&str]) -> Principal {
        Principal::new(name.parse().unwrap(), roles.iter().map(|role| (*role).to_owned()).collect())
    }

    #[test]
    fn writes_are_given_back_steadily_and_each_person_has_their_own() {
        let budgets = Budgets::new(WriteLimits { writes_per_second: 2, ..WriteLimits::default() });
        let (ana, tom, dev) = (person("ana", &["reviewer"]), person("tom", &[]), person("eve", &["developer"]));
        let admitted = |who: &Principal, now| (0..500).take_while(|_| budgets.admit(who, 0, now).is_ok()).count();
        assert_eq!(admitted(&ana, NOW), 120);
        let problem = budgets.admit(&ana, 0, NOW).unwrap_err();
        assert_eq!((problem.code, problem.retry_after), (Code::TooManyRequests, Some(1)));
        assert!(budgets.admit(&tom, 0, NOW).is_ok());
        assert_eq!(admitted(&ana, NOW + Duration::from_secs(10)), 20);
        // A token without roles has the limits of those who are no developers, and its creator has none.
        assert_eq!(admitted(&Principal { token: true, ..person("eve", &[]) }, NOW), 120);
        assert_eq!(admitted(&dev, NOW), 500, "developers have a limit of their own");
    }

    #[test]
    fn the_tokens_of_a_developer_cannot_write_without_end() {
        let budgets = Budgets::default();
        let program = Principal { token: true, ..person("eve", &["developer"]) };
        let admitted = |most: usize, now| (0..most).take_while(|_| budgets.admit(&program, 0, now).is_ok()).count();
        assert_eq!(admitted(100_000, NOW), 60_000);
        let problem = budgets.admit(&program, 0, NOW).unwrap_err();
        assert_eq!((problem.code, problem.retry_after), (Code::TooManyRequests, Some(1)));
        assert_eq!(admitted(100_000, NOW + Duration::from_secs(1)), 1_000);
        assert!(budgets.admit(&person("eve", &["developer"]), 0, NOW).is_ok(), "she can still revoke the token");
    }

    #[test]
    fn whoever_has_written_too_much_waits_until_it_is_given_back() {
        let budgets = Budgets::new(WriteLimits { bytes_per_minute: 60_000, ..WriteLimits::default() });
        let ana = person("ana", &["reviewer"]);
        let wait = || budgets.admit(&ana, 0, NOW).unwrap_err().retry_after.unwrap();
        budgets.settle(&ana, 0, 90_000, NOW);
        let half = wait();
        assert!((30..=31).contains(&half), "{half}");
        assert!(budgets.admit(&ana, 0, NOW + Duration::from_secs(half)).is_ok());
        for _ in 0..500 {
            budgets.settle(&ana, 0, 60_000, NOW);
        }
        assert!((60..=61).contains(&wait()), "what is answered at the same time does not add up without bound");
    }

    #[test]
    fn a_write_counts_as_the_most_that_it_may_have_until_its_size_is_known() {
        let budgets = Budgets::new(WriteLimits { bytes_per_minute: 60_000, ..WriteLimits::default() });
        let ana = person("ana", &["reviewer"]);
        let admitted = || (0..500).take_while(|_| budgets.admit(&ana, 20_000, NOW).is_ok()).count();
        assert_eq!(admitted(), 3);
        (0..3).for_each(|_| budgets.settle(&ana, 20_000, 60, NOW));
        assert_eq!(admitted(), 3, "only 180 bytes were written");
    }

    #[test]
    fn slow_writes_cost_what_they_have_written_and_give_back_nothing_else() {
        let budgets = Budgets::new(WriteLimits { bytes_per_minute: 60_000, ..WriteLimits::default() });
        let ana = person("ana", &["reviewer"]);
        let admitted = |now| (0..500).take_while(|_| budgets.admit(&ana, 20_000, now).is_ok()).count();
        assert_eq!(admitted(NOW), 3);
        let later = NOW + Duration::from_secs(30);
        assert_eq!(admitted(later), 0, "time gives back nothing of writes that are not over");
        (0..3).for_each(|_| budgets.settle(&ana, 20_000, 0, later));
        assert_eq!(admitted(later), 3, "they failed together");
        budgets.settle(&ana, 20_000, 60_000, later);
        (0..2).for_each(|_| budgets.settle(&ana, 20_000, 0, later));
        let problem = budgets.admit(&ana, 0, later).unwrap_err();
        assert_eq!(problem.retry_after, Some(1), "60,000 bytes were written just now");
    }
}
