//! Checks the `Host` of requests, and refuses foreign names: otherwise a page could point its own name here (DNS
//! rebinding) and would then have the same origin as this server.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{header, uri::Authority};
use shared::error::{Code, Problem};

use super::problem::Result;

/// The paths for monitoring, which are served under any host name because they reveal no data of users.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Refuses requests that do not name exactly one host, or one that is not allowed.
pub(super) fn check(request: &Request, hosts: &[String], origins: &[String]) -> Result<()> {
    if OPEN.contains(&request.uri().path()) {
        return Ok(());
    }
    let mut named = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else {
        return Err(Problem::new(Code::BadRequest).detail("a request must have exactly one `Host` header").into());
    };
    let host: Option<Authority> =
        host.to_str().ok().filter(|host| !host.contains('@')).and_then(|host| host.parse().ok());
    if host.as_ref().is_some_and(|host| is_known(host.host(), hosts, origins)) {
        return Ok(());
    }
    let detail = "this server does not serve the host that the request names; add its public address to \
        `origins`, or the name to `hosts` in `[network]` of the settings";
    Err(Problem::new(Code::BadRequest).detail(detail).into())
}

/// Whether a host is allowed. IP addresses always are, because DNS cannot point them elsewhere, and so is `localhost`,
/// which is the caller's own machine.
fn is_known(host: &str, hosts: &[String], origins: &[String]) -> bool {
    let host = host.trim_end_matches('.');
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_local = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    let of_origin = |origin: &String| {
        let authority = origin.trim_end_matches('/').split_once("://").and_then(|(_, rest)| rest.parse().ok());
        authority.is_some_and(|authority: Authority| authority.host().eq_ignore_ascii_case(host))
    };
    bare.parse::<IpAddr>().is_ok()
        || is_local
        || hosts.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(host))
        || origins.iter().any(of_origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_this_server_are_answered() {
        let origins = ["https://reviews.example.org/".to_owned(), "http://nas:8080".to_owned()];
        let check = |path: &str, named: &[&str], hosts: &[String]| {
            let request = named.iter().fold(Request::get(path), |request, host| request.header(header::HOST, *host));
            check(&request.body(axum::body::Body::empty()).unwrap(), hosts, &origins).is_ok()
        };
        for host in [
            "127.0.0.1:8080",
            "[::1]:8080",
            "10.0.0.7",
            "localhost:8080",
            "LocalHost",
            "app.localhost:80",
            "reviews.example.org",
            "Reviews.Example.org:443",
            "nas:8080",
        ] {
            assert!(check("/api/v1/me", &[host], &[]), "{host}");
        }
        for host in ["evil.example", "reviews.example.org.evil.example", "localhost.evil.example", "", "a b", "x@nas"] {
            assert!(!check("/api/v1/me", &[host], &[]), "{host}");
        }
        assert!(!check("/", &[], &[]) && !check("/", &["localhost", "localhost"], &[]));
        assert!(check("/", &["console.internal"], &["console.internal".to_owned()]));
        assert!(check("/", &["anything"], &["*".to_owned()]));
        assert!(check("/healthz", &[], &[]) && check("/metrics", &["countersign"], &[]));
    }
}
