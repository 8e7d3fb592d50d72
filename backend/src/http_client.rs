//! What all requests of this server to others have in common: how clients are built, how much of a response is read,
//! and when a server that refused allows a retry.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, Response, StatusCode, redirect};

/// The `User-Agent` of all requests.
pub const USER_AGENT: &str = concat!("countersign/", env!("CARGO_PKG_VERSION"));

/// Builds a client that follows no redirects: a redirect would send the body and the keys of the request to a place
/// that nobody approved.
pub fn builder() -> ClientBuilder {
    choose_tls_provider();
    Client::builder().redirect(redirect::Policy::none())
}

/// Installs the TLS provider, which clients need because dependencies compile in two of them. Does nothing if one is
/// installed already.
pub fn choose_tls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Reads a whole body. Returns `None` if it is larger than `limit` bytes.
pub async fn whole(mut response: Response, limit: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Reads at most `limit` bytes from the beginning of a body, such as the explanation of a refusal. Stops at the first
/// error.
pub async fn beginning(mut response: Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < limit
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(limit);
    body
}

/// Describes a refusal: its status, and at most `limit` characters of the body.
pub fn refusal(status: StatusCode, body: &[u8], limit: usize) -> String {
    let detail: String = String::from_utf8_lossy(body).trim().chars().take(limit).collect();
    let colon = if detail.is_empty() { "" } else { ": " };
    format!("HTTP {status}{colon}{detail}")
}

/// Returns how long to wait according to `Retry-After` (seconds, or a date by the server's own clock) or to the more
/// exact `retry-after-ms` of model providers. `None` if neither is present and readable.
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
