//! Refuses writes that a page of another site makes a browser send: the browser adds the session cookie to them, too.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, header, uri::Authority};
use shared::error::{Code, Problem};

use super::problem::Result;

/// Whether a write or an upgrade has an allowed `Origin`: none (no browser page sent it), the host of the request, or
/// one of `public`.
pub fn origin_allowed(headers: &HeaderMap, public: &[String]) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => return true,
        (Some(origin), None) => origin.to_str().unwrap_or("null"),
        (Some(_), Some(_)) => return false,
    };
    if public.iter().any(|public| public.trim_end_matches('/').eq_ignore_ascii_case(origin)) {
        return true;
    }
    let Some((scheme @ ("http" | "https"), authority)) = origin.split_once("://") else { return false };
    let default = if scheme == "https" { 443 } else { 80 };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match (parts(authority, default), host.and_then(|host| parts(host, default))) {
        (Some(origin), Some(host)) => origin == host,
        _ => false,
    }
}

/// Splits an authority into the host in lower case and the port, which is `default` if it is missing.
fn parts(authority: &str, default: u16) -> Option<(String, u16)> {
    let authority: Authority = authority.parse().ok()?;
    Some((authority.host().to_ascii_lowercase(), authority.port_u16().unwrap_or(default)))
}

/// Whether a request names the host of a public origin with https, so that it came over https.
pub(super) fn came_over_https(headers: &HeaderMap, public: &[String]) -> bool {
    let host = || parts(headers.get(header::HOST)?.to_str().ok()?, 443);
    let mut secure = public.iter().filter_map(|public| public.trim_end_matches('/').strip_prefix("https://"));
    secure.any(|authority| parts(authority, 443).is_some_and(|origin| host() == Some(origin)))
}

/// Refuses writes of pages from other origins.
pub(super) fn check(request: &Request, public: &[String]) -> Result<()> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if reads || origin_allowed(request.headers(), public) {
        return Ok(());
    }
    let remedy = "use the console at this server's address, or add its public address to `origins` in the settings";
    Err(Problem::new(Code::ForeignOrigin).detail(remedy).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_server_may_write() {
        let public = ["https://countersign.example".to_owned()];
        for (origin, host, allowed) in [
            (None, "127.0.0.1:8080", true),
            (Some("http://127.0.0.1:8080"), "127.0.0.1:8080", true),
            (Some("http://LOCALHOST:8080"), "localhost:8080", true),
            (Some("https://reviews.local"), "reviews.local", true),
            (Some("https://reviews.local"), "reviews.local:443", true),
            (Some("https://countersign.example"), "10.0.0.1:8080", true),
            (Some("http://countersign.example"), "10.0.0.1:8080", false),
            (Some("http://localhost:8081"), "localhost:8080", false),
            (Some("https://evil.example"), "localhost:8080", false),
            (Some("http://localhost:8080.evil.example"), "localhost:8080", false),
            (Some("null"), "localhost:8080", false),
            (Some(""), "localhost:8080", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(origin_allowed(&headers, &public), allowed, "{origin:?} at {host}");
        }
    }
}
