//! Security headers for browsers. The console's page sets its own content security policy; all other responses get one
//! that allows nothing.

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
/// The content security policy of responses that set none, which are not pages.
const NO_PAGE: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Adds the headers to a response. `api` says whether the response is from the API, and `https` whether browsers reach
/// the server over https.
pub(super) fn secure(headers: &mut HeaderMap, api: bool, https: bool) {
    // Room for these and at most four others, so that the map does not grow several times.
    headers.reserve(ALWAYS.len() + 4);
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
