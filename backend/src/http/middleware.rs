//! The layer around every request: an id, a span, metrics, the checks of host and origin, a time limit, security
//! headers, and a response if a handler panics. Bodies, queries and credentials are never logged.

use std::any::Any;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use shared::error::{Code, Problem};
use tracing::Instrument as _;

use super::budget::Bill;
use super::problem::Refused;
use super::reads::ReadTurn;
use super::reviews::REVIEW;
use super::runs::RUN;
use super::{AppState, HttpOptions, cookies, headers, host, mcp, origin, wait};
use crate::client_address::ClientAddress;
use crate::problem::unavailable;

/// How long a handler may take before its response begins.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Adds the client's address to the request, checks, times and counts it, and adds an id and security headers to the
/// response.
pub(super) async fn observe(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let client = ClientAddress::of_request(&request, &state.options.trusted_proxies);
    request.extensions_mut().insert(client);
    let bill = Bill::of(&mut request, &state);
    let id = hex::encode(&state.clock.random()[..8]);
    let method = known(request.method());
    let path = request.extensions().get::<MatchedPath>().cloned();
    let route = path.as_ref().map_or("console", MatchedPath::as_str);
    let span = tracing::info_span!("request", %id, method, route);
    let begun = state.clock.now();
    let waits = waits(&request, route);
    let limit = if waits { TIME_LIMIT + wait::MAX_WAIT } else { TIME_LIMIT };
    let read_turn = ReadTurn::of(&mut request, waits);
    let api = route == mcp::PATH || request.uri().path().starts_with("/api/");
    let HttpOptions { public_origins, hosts, .. } = &state.options;
    if origin::came_over_https(request.headers(), public_origins) {
        cookies::remove_unbound(request.headers_mut());
    }
    let checked = host::check(&request, hosts, public_origins).and_then(|()| origin::check(&request, public_origins));
    let mut response = match checked {
        Ok(()) => limit_time(limit, next.run(request)).instrument(span.clone()).await,
        Err(refused) => refused.into_response(),
    };
    if let Some(bill) = bill {
        bill.settle(&response);
    }
    if let Some(read_turn) = read_turn {
        response = read_turn.end_with(response);
    }
    let took = state.clock.now().since(begun);
    let status = response.status().as_u16();
    span.in_scope(|| tracing::debug!(status, took_ms = took.as_millis(), "answered"));
    state.request_metrics.record(method, route, status, took);
    headers::secure(response.headers_mut(), api, state.options.is_https());
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-request-id", id);
    }
    response
}

/// Returns the label of a method; unknown methods share one, so that clients cannot make metrics grow.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        _ => "other",
    }
}

/// Whether a request may wait for a review or a run, and so take longer than [`TIME_LIMIT`].
fn waits(request: &Request, route: &str) -> bool {
    route == mcp::PATH || [REVIEW, RUN].contains(&route) && wait::is_asked(request.uri())
}

/// Aborts a handler that takes too long, with `503`. Its commit may still take effect.
async fn limit_time(limit: Duration, answer: impl Future<Output = Response>) -> Response {
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
        tracing::warn!("a request took too long");
        let remedy = "the request took too long, but may still have taken effect; try again with the same \
            Idempotency-Key";
        Refused(unavailable(remedy)).into_response()
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that the layer asks for")]
pub(super) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let why = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(why = why.unwrap_or("unknown"), "a handler panicked");
    Refused(Problem::new(Code::Internal)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::header;
    use axum::routing::get;
    use tower::ServiceExt as _;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    #[test]
    fn only_what_is_to_wait_may_take_as_long_as_it_is_to_wait() {
        let waits = |path: &str, route: &str| waits(&Request::get(path).body(Body::empty()).unwrap(), route);
        let review = "/api/v1/reviews/01900000-0000-7000-8000-000000000001";
        assert!(waits(&format!("{review}?wait=60s"), REVIEW));
        assert!(waits("/api/v1/runs/01900000-0000-7000-8000-000000000002?wait=60s", RUN));
        assert!(!waits(review, REVIEW));
        assert!(!waits("/api/v1/runs?wait=60s", "/api/v1/runs"));
    }

    #[tokio::test]
    async fn a_handler_that_panics_answers_with_a_problem() {
        let handler = get(async || -> () { panic!("with a secret in it") });
        let router: Router = Router::new().route("/", handler).layer(CatchPanicLayer::custom(panicked));
        let response = router.oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 500);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        assert!(!String::from_utf8_lossy(&body).contains("secret"));
    }
}
