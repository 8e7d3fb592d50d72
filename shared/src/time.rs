//! Points in time and lengths of time, in the forms of the API: RFC 3339 in UTC, and `24h` in flow files.

use std::{fmt, str::FromStr, time::Duration, time::SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::read::read_text;

/// A point in time: whole microseconds since 1970 in UTC. Stored as that number, since text times sort wrongly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The latest time that RFC 3339 can write (the end of the year 9999).
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// This time moved forward by `by`, at most to [`Timestamp::MAX`].
    pub fn after(self, by: Duration) -> Self {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros)).min(Self::MAX)
    }

    /// How long ago `earlier` was; zero where it was not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Whole milliseconds since 1970.
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

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

read_text!(Timestamp);

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| de::Error::custom(format!("`{text}` is not an RFC 3339 time in UTC: {error}")))
    }
}

/// A length of time as flow files write it: `30s`, `5m`, `24h`, `7d`, `1h 30m`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl Span {
    /// This many seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }
}

#[cfg(not(target_family = "wasm"))]
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

// The console only sends lengths of time back; to people it says them in words of its own.
#[cfg(target_family = "wasm")]
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0.as_secs() * 1000 + u64::from(self.0.subsec_millis()))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(not(target_family = "wasm"))]
impl FromStr for Span {
    type Err = humantime::DurationError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_duration(text).map(Self)
    }
}

#[cfg(target_family = "wasm")]
impl FromStr for Span {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        written(text).map(Self)
    }
}

/// A length of time as the server writes it, to the millisecond. The console reads nothing else, and what reads
/// everything that people may write would be a two-hundredth of it.
#[cfg(any(test, target_family = "wasm"))]
fn written(text: &str) -> Result<Duration, std::num::ParseIntError> {
    let mut all = 0_u64;
    for part in text.split(' ') {
        let (number, unit) = part.split_at(part.bytes().take_while(u8::is_ascii_digit).count());
        let unit = match unit.trim_end_matches('s') {
            "year" => 31_557_600_000,
            "month" => 2_630_016_000,
            "day" => 86_400_000,
            "h" => 3_600_000,
            "m" if unit == "m" => 60_000,
            "m" => 1,
            "" => 1000,
            _ => 0,
        };
        all = all.saturating_add(number.parse::<u64>()?.saturating_mul(unit));
    }
    Ok(Duration::from_millis(all))
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

read_text!(Span);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|error| de::Error::custom(format!("`{text}` is not a length of time such as 30s or 24h: {error}")))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A point in time: RFC 3339 in UTC, to the microsecond"
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A length of time: 30s, 5m, 24h, 7d, 1h 30m",
            "pattern": "^\\s*(\\d+\\s*[a-z]+\\s*)+$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_reads_every_length_that_the_server_writes() {
        for millis in [0, 1, 1500, 36_000, 90_000, 5_400_000, 86_400_000, 90_061_001, 2_630_016_000, 40_000_000_000] {
            let span = Span(Duration::from_millis(millis));
            assert_eq!(written(&span.to_string()), Ok(span.0), "{span}");
            assert_eq!(format!("{millis}ms").parse(), Ok(span), "the server reads what the console writes");
        }
        assert!(written("soon").is_err());
    }
}
