//! Lengths of time in words: the same everywhere, for remaining and for past time.

use shared::time::Timestamp;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const TWELVE_HOURS: i64 = 12 * HOUR;
const WEEK: i64 = 7 * DAY;

/// How long ago `at` was: `just now`, `12 min ago`, `3 h 5 min ago`, `1 d 22 h ago`.
pub fn ago(now: Timestamp, at: Timestamp) -> String {
    let passed = now.0.saturating_sub(at.0);
    if passed < 10 * SECOND { "just now".to_owned() } else { format!("{} ago", length(passed)) }
}

/// The time until `at`, formatted by [`length`]; `None` if `at` has passed.
pub fn left(now: Timestamp, at: Timestamp) -> Option<String> {
    let left = at.0.saturating_sub(now.0);
    (left > 0).then(|| length(left + SECOND - 1))
}

/// How long something that began at `at` takes so far, formatted by [`length`]: after a minute, it changes only with
/// each minute, so that a long list of such times is seldom laid out again.
pub fn so_far(now: Timestamp, at: Timestamp) -> String {
    length(now.0.saturating_sub(at.0).max(0))
}

/// Formats a duration in microseconds, rounded down, with a second unit where the first is coarse: `45 s`, `18 min`, `2
/// h 5 min`, `14 h`, `1 d 22 h`, `12 d`.
pub fn length(micros: i64) -> String {
    let ((large, unit), smaller) = match micros {
        ..MINUTE => ((SECOND, "s"), None),
        MINUTE..HOUR => ((MINUTE, "min"), None),
        HOUR..TWELVE_HOURS => ((HOUR, "h"), Some((MINUTE, "min"))),
        TWELVE_HOURS..DAY => ((HOUR, "h"), None),
        DAY..WEEK => ((DAY, "d"), Some((HOUR, "h"))),
        _ => ((DAY, "d"), None),
    };
    let rest = smaller.map(|(small, unit)| (micros % large / small, unit)).filter(|(rest, _)| *rest > 0);
    let rest = rest.map(|(rest, unit)| format!(" {rest} {unit}")).unwrap_or_default();
    format!("{} {unit}{rest}", micros / large)
}

/// Formats a duration in milliseconds with sensible precision: `340 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_so_that_little_is_lost() {
        let two_days = 2 * DAY - HOUR;
        for (micros, text) in [
            (59 * SECOND, "59 s"),
            (HOUR - 1, "59 min"),
            (HOUR, "1 h"),
            (2 * HOUR + 5 * MINUTE, "2 h 5 min"),
            (14 * HOUR + 59 * MINUTE, "14 h"),
            (two_days, "1 d 23 h"),
            (2 * DAY, "2 d"),
            (12 * DAY + 23 * HOUR, "12 d"),
        ] {
            assert_eq!(length(micros), text);
        }
        let now = Timestamp(10 * DAY);
        assert_eq!(ago(now, now), "just now");
        assert_eq!(ago(now, Timestamp(now.0 - 12 * MINUTE)), "12 min ago");
        assert_eq!(left(now, Timestamp(now.0 + 18 * MINUTE)).as_deref(), Some("18 min"));
        assert_eq!(left(now, Timestamp(now.0 + two_days)).as_deref(), Some("1 d 23 h"));
        assert_eq!(ago(now, Timestamp(now.0 - two_days)), "1 d 23 h ago");
        assert_eq!(left(now, now), None);
        assert_eq!(so_far(now, Timestamp(now.0 - 45 * SECOND)), "45 s");
        assert_eq!(so_far(now, Timestamp(now.0 - 3 * MINUTE - 5 * SECOND)), "3 min");
        assert_eq!(so_far(now, Timestamp(now.0 + SECOND)), "0 s", "clocks may differ");
        assert_eq!(duration_ms(4_250), "4.2 s");
    }
}
