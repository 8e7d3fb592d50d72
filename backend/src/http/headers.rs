//! Security headers for browsers. A page has its own content security policy; everything else is not a page.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// The headers of every response.
const ALWAYS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];
/// The policy of responses that are not pages.
const NO_PAGE: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Adds the headers to a response; `api`: it is from the API; `https`: browsers reach the server over https.
pub(super) fn secure(headers: &mut HeaderMap, api: bool, https: bool) {
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if https {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, ONE_YEAR);
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(NO_PAGE);
    if api {
        headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    }
}
