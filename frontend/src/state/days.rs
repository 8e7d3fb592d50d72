//! Days in filters: from the first to the last of them, in the person's time zone.

use shared::time::Timestamp;

/// Returns when the first day begins and the last one ends. `begin` returns the start of a day: year, month from 1, and
/// day, which may be after the end of the month. What is not a day such as `2026-11-20` sets no limit.
pub fn span(
    from: Option<&str>,
    to: Option<&str>,
    begin: fn(u32, u32, u32) -> Option<Timestamp>,
) -> (Option<Timestamp>, Option<Timestamp>) {
    let moment = |text: Option<&str>, later: u32| {
        let (year, month, day) = day(text?)?;
        begin(year, month, day.saturating_add(later))
    };
    (moment(from, 0), moment(to, 1))
}

/// Parses year, month and day from a text such as `2026-11-20`.
fn day(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split('-').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_day_is_included() {
        let begin = |year, month, day| Some(Timestamp(i64::from(year * 10_000 + month * 100 + day)));
        let (from, to) = span(Some("2026-11-20"), Some("2026-11-20"), begin);
        assert_eq!((from, to), (Some(Timestamp(20_261_120)), Some(Timestamp(20_261_121))));
        assert_eq!(span(Some("yesterday"), Some("2026-11"), begin), (None, None));
        assert_eq!(span(Some("999999-01-01"), None, |_, _, _| None).0, None, "no browser knows such a day");
    }
}
