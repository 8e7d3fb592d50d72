//! Reads when a server that refused a request allows a retry. Imports nothing.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// How long to wait, by `Retry-After` (seconds, or a time by the clock of the server that says it), or by the more exact
/// `retry-after-ms` of providers of models. None where nothing that can be read is said.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    if let Some(millis) = text("retry-after-ms").and_then(|millis| millis.parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let said = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = said.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(said).ok()?;
    let now = httpdate::parse_http_date(text(DATE.as_str())?).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_read_as_seconds_or_as_a_time_by_its_own_clock() {
        let read = |headers: &[(&'static str, &'static str)]| {
            let header = |(name, value): &(&'static str, &'static str)| {
                (reqwest::header::HeaderName::from_static(name), value.parse().unwrap())
            };
            retry_after(&headers.iter().map(header).collect()).map(|wait| wait.as_millis())
        };
        let (date, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(read(&[("retry-after", "7")]), Some(7_000));
        assert_eq!(read(&[("retry-after", "2"), ("retry-after-ms", "1500")]), Some(1_500));
        assert_eq!(read(&[("retry-after", later), ("date", date)]), Some(30_000));
        assert_eq!(read(&[("retry-after", date), ("date", later)]), Some(0));
        assert_eq!(read(&[("retry-after", later)]), None);
        assert_eq!(read(&[("retry-after", "soon"), ("retry-after-ms", "-1")]), None);
        assert_eq!(read(&[]), None);
    }
}
