//! How fast one person may write: requests a second and bytes a minute, since what is written is kept for ever.
//!
//! Imports nothing of the server. Time comes in as an argument.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};

use serde::Deserialize;
use shared::access::{ADMIN, DEVELOPER, Principal};
use shared::error::{Code, Problem};
use shared::time::Timestamp;

/// Keys are hashed into this many places: memory is bounded however many there are, at the price that two may share one.
const PLACES: usize = 16_384;
/// How much may be used at once: what a minute allows, in nanoseconds.
const BURST: i64 = 60_000_000_000;

/// A limit by key (the generic cell rate algorithm): what was used is given back steadily.
struct RateLimit {
    hasher: RandomState,
    /// How long one unit takes to be given back, in nanoseconds.
    interval: i64,
    /// When everything that a place has used is given back, in nanoseconds.
    full_at: Box<[AtomicI64]>,
}

impl RateLimit {
    /// So many units a minute; none where that is 0.
    fn per_minute(units: u64) -> Option<Self> {
        let units = i64::try_from(units).ok().filter(|units| *units > 0)?;
        let full_at = (0..PLACES).map(|_| AtomicI64::new(0)).collect();
        Some(Self { hasher: RandomState::new(), interval: (BURST / units).max(1), full_at })
    }

    /// Whether something is left; else the seconds until there is.
    fn check(&self, key: &impl Hash, now: Timestamp) -> Result<(), u64> {
        let missing = self.place(key).load(Ordering::Relaxed) - nanoseconds(now) - BURST;
        if missing < 0 { Ok(()) } else { Err((missing.unsigned_abs() / 1_000_000_000) + 1) }
    }

    /// Uses so many units, also where fewer are left.
    fn charge(&self, key: &impl Hash, units: u64, now: Timestamp) {
        let used = i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(self.interval);
        let now = nanoseconds(now);
        let _ = self
            .place(key)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| Some(full_at.max(now).saturating_add(used)));
    }

    fn place(&self, key: &impl Hash) -> &AtomicI64 {
        let place = self.hasher.hash_one(key) % PLACES as u64;
        &self.full_at[usize::try_from(place).unwrap_or(0)]
    }
}

fn nanoseconds(now: Timestamp) -> i64 {
    now.0.saturating_mul(1000)
}

/// What everybody may write: the table `[limits]` of the settings file. 0: without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WriteLimits {
    /// Writes a second of a person who is neither developer nor admin.
    pub writes_per_second: u64,
    /// Bytes a minute that such a person writes.
    pub bytes_per_minute: u64,
    /// Writes a second of a developer or an admin, and of their tokens with such a role.
    pub developer_writes_per_second: u64,
    /// Bytes a minute that they write.
    pub developer_bytes_per_minute: u64,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self {
            writes_per_second: 100,
            bytes_per_minute: 32 * 1024 * 1024,
            developer_writes_per_second: 0,
            developer_bytes_per_minute: 0,
        }
    }
}

/// What each person has left to write.
pub struct Budgets {
    developers: Budget,
    others: Budget,
}

impl Default for Budgets {
    fn default() -> Self {
        Self::new(WriteLimits::default())
    }
}

struct Budget {
    writes: Option<RateLimit>,
    bytes: Option<RateLimit>,
}

impl Budgets {
    /// Full ones.
    pub fn new(limits: WriteLimits) -> Self {
        let budget = |writes: u64, bytes| Budget {
            writes: RateLimit::per_minute(writes.saturating_mul(60)),
            bytes: RateLimit::per_minute(bytes),
        };
        Self {
            developers: budget(limits.developer_writes_per_second, limits.developer_bytes_per_minute),
            others: budget(limits.writes_per_second, limits.bytes_per_minute),
        }
    }

    /// Counts a write of somebody; `429` where they have nothing left.
    pub fn admit(&self, principal: &Principal, now: Timestamp) -> Result<(), Problem> {
        let Budget { writes, bytes } = self.of(principal);
        let person = &principal.username;
        for (limit, what) in [(writes, "requests that write"), (bytes, "bytes")] {
            if let Some(Err(seconds)) = limit.as_ref().map(|limit| limit.check(person, now)) {
                let detail = format!("{person} has written more {what} than one person may; try again in {seconds} s");
                let problem = Problem::new(Code::TooManyRequests).detail(detail);
                return Err(Problem { retry_after: Some(seconds), ..problem });
            }
        }
        if let Some(writes) = writes {
            writes.charge(person, 1, now);
        }
        Ok(())
    }

    /// Counts what a write of theirs has written.
    pub fn charge(&self, principal: &Principal, bytes: u64, now: Timestamp) {
        if let Some(limit) = &self.of(principal).bytes {
            limit.charge(&principal.username, bytes, now);
        }
    }

    fn of(&self, principal: &Principal) -> &Budget {
        if principal.has(DEVELOPER) || principal.has(ADMIN) { &self.developers } else { &self.others }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000);

    fn person(name: &str, roles: &[&str]) -> Principal {
        Principal::new(name.parse().unwrap(), roles.iter().map(|role| (*role).to_owned()).collect())
    }

    #[test]
    fn writes_are_given_back_steadily_and_each_person_has_their_own() {
        let budgets = Budgets::new(WriteLimits { writes_per_second: 2, ..WriteLimits::default() });
        let (ana, tom, dev) = (person("ana", &["reviewer"]), person("tom", &[]), person("eve", &["developer"]));
        let admitted = |now| (0..500).take_while(|_| budgets.admit(&ana, now).is_ok()).count();
        assert_eq!(admitted(NOW), 120);
        let problem = budgets.admit(&ana, NOW).unwrap_err();
        assert_eq!((problem.code, problem.retry_after), (Code::TooManyRequests, Some(1)));
        assert!(budgets.admit(&tom, NOW).is_ok());
        assert_eq!(admitted(NOW.after(Duration::from_secs(10))), 20);
        assert!((0..500).all(|_| budgets.admit(&dev, NOW).is_ok()), "developers have no limit unless it is set");
    }

    #[test]
    fn whoever_has_written_too_much_waits_until_it_is_given_back() {
        let budgets = Budgets::new(WriteLimits { bytes_per_minute: 60_000, ..WriteLimits::default() });
        let ana = person("ana", &["reviewer"]);
        budgets.charge(&ana, 90_000, NOW);
        let wait = budgets.admit(&ana, NOW).unwrap_err().retry_after.unwrap();
        assert!((30..=31).contains(&wait), "{wait}");
        assert!(budgets.admit(&ana, NOW.after(Duration::from_secs(wait))).is_ok());
    }
}
