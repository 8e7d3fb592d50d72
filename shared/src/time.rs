//! Points in time and lengths of time, in the forms of the API: RFC 3339 in UTC, and `24h` in flow files.

use std::{fmt, str::FromStr, time::Duration, time::SystemTime};

use crate::json_text::{json_text, text_schema};

/// A point in time: whole microseconds since 1970 in UTC. Stored as that number, since text times sort wrongly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The latest time that RFC 3339 can write (the end of the year 9999).
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// Returns this time moved forward by `by`, at most to [`Timestamp::MAX`].
    pub fn after(self, by: Duration) -> Self {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros)).min(Self::MAX)
    }

    /// Returns this time moved back by `by`.
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the time since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns whole milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self(
            time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX)),
        )
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clamped = u64::try_from(self.0.clamp(0, Self::MAX.0)).unwrap_or(0);
        humantime::format_rfc3339_micros(SystemTime::UNIX_EPOCH + Duration::from_micros(clamped)).fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = humantime::TimestampError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_rfc3339(text).map(Self::from)
    }
}

json_text!(Timestamp, "an RFC 3339 time in UTC");

/// A length of time as flow files write it: `30s`, `5m`, `24h`, `7d`, `1h 30m`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl Span {
    /// Creates a span of this many seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// The longest timeout for an answer: ten years. A longer one is a mistake, and as good as no limit.
    pub const LONGEST_WAIT: Self = Self::secs(10 * 31_557_600);

    /// Returns why this is not a valid timeout for an answer, or `None` if it is.
    pub fn why_no_wait(self) -> Option<String> {
        if self.0.is_zero() {
            Some("a timeout must be longer than zero".to_owned())
        } else if self > Self::LONGEST_WAIT {
            Some(format!("a timeout is at most {}", Self::LONGEST_WAIT))
        } else {
            None
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Span {
    type Err = humantime::DurationError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_duration(text).map(Self)
    }
}

json_text!(Span, "a length of time such as 30s or 24h");

text_schema!(Timestamp, {
    "type": "string",
    "format": "date-time",
    "description": "A point in time: RFC 3339 in UTC, to the microsecond"
});

text_schema!(Span, {
    "type": "string",
    "description": "A length of time: 30s, 5m, 24h, 7d, 1h 30m",
    "pattern": "^\\s*(\\d+\\s*[a-z]+\\s*)+$"
});
