//! Times and lengths of time in words.

use shared::time::Timestamp;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How long ago `at` was: `just now`, `12 min ago`, `3 h ago`, `5 d ago`.
pub fn ago(now: Timestamp, at: Timestamp) -> String {
    let passed = now.0.saturating_sub(at.0);
    if passed < 10 * SECOND { "just now".to_owned() } else { format!("{} ago", length(passed)) }
}

/// How long until `at`: `45 s`, `18 min`, `2 h`, `3 d`; none where it has come.
pub fn left(now: Timestamp, at: Timestamp) -> Option<String> {
    let left = at.0.saturating_sub(now.0);
    (left > 0).then(|| length(left + SECOND - 1))
}

/// A length of time, in microseconds, in its one largest unit, rounded down.
pub fn length(micros: i64) -> String {
    match micros {
        ..MINUTE => format!("{} s", micros / SECOND),
        MINUTE..HOUR => format!("{} min", micros / MINUTE),
        HOUR..DAY => format!("{} h", micros / HOUR),
        _ => format!("{} d", micros / DAY),
    }
}

/// A length of time in milliseconds, with the precision that matters: `340 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`.
pub fn duration_ms(ms: u64) -> String {
    match ms {
        ..1000 => format!("{ms} ms"),
        1000..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        10_000..60_000 => format!("{} s", ms / 1000),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
        3_600_000..86_400_000 => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
        _ => format!("{} d {} h", ms / 86_400_000, ms % 86_400_000 / 3_600_000),
    }
}

/// `1 call`, `2 calls`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let now = Timestamp(10 * DAY);
        assert_eq!(ago(now, now), "just now");
        assert_eq!(ago(now, Timestamp(now.0 - 12 * MINUTE)), "12 min ago");
        assert_eq!(left(now, Timestamp(now.0 + 18 * MINUTE)).as_deref(), Some("18 min"));
        assert_eq!(left(now, now), None);
        assert_eq!(duration_ms(4_250), "4.2 s");
        assert_eq!(count(1, "call", "calls"), "1 call");
    }
}
