//! Compresses large JSON responses to reads, such as lists, for clients that accept it. The files of the console are
//! compressed when they are embedded (`assets`), and exports are streamed as they are. Responses to writes are small, and
//! must say what was done whatever the client accepts.
//!
//! A response that holds a secret beside text of an attacker would give the secret away by its length (BREACH). None
//! does: sessions are in cookies only, a token's secret is in a response too small to be compressed, and browsers send
//! no cookie with what another site requests in the background (`SameSite=Lax`).

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, Version, header};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

/// The smallest response that is compressed, in bytes: smaller ones take about three packets.
const SMALLEST: u64 = 4096;

/// Returns the layer, which compresses quickly rather than well.
pub(super) fn layer() -> CompressionLayer<impl Predicate> {
    let is_json = |_: StatusCode, _: Version, headers: &HeaderMap, _: &_| {
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json")
    };
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(SizeAbove::new(SMALLEST).and(is_json))
}

/// Removes `Accept-Encoding` from a request whose response is not to be compressed. The layer answers a client that
/// accepts neither gzip nor the response as it is with `406`, though the request has been handled by then.
pub(super) fn limit_to_reads(mut request: Request) -> Request {
    let accepts_gzip = |accepted: &str| accepted.split(',').any(|one| one.trim().eq_ignore_ascii_case("gzip"));
    let values = request.headers().get_all(header::ACCEPT_ENCODING);
    let is_compressible =
        request.method() == Method::GET && values.iter().any(|value| value.to_str().is_ok_and(accepts_gzip));
    if !is_compressible {
        request.headers_mut().remove(header::ACCEPT_ENCODING);
    }
    request
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::middleware::map_request;
    use axum::routing::get;
    use axum::{Json, Router};
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn only_large_json_is_compressed_and_only_for_who_accepts_it() {
        let router: Router = Router::new()
            .route("/large", get(async || Json("a".repeat(100_000))).post(async || Json("a".repeat(100_000))))
            .route("/small", get(async || Json("a")))
            .route("/page", get(async || "a".repeat(100_000)))
            .layer(layer())
            .layer(map_request(async |request| limit_to_reads(request)));
        let send = async |method: Method, path: &str, accepted: &str| {
            let request = Request::builder().method(method).uri(path).header(header::ACCEPT_ENCODING, accepted);
            let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status(), 200, "{accepted}");
            let encoding = response.headers().get(header::CONTENT_ENCODING).cloned();
            (encoding, to_bytes(response.into_body(), usize::MAX).await.unwrap().len())
        };
        let read = async |path: &str, accepted: &str| send(Method::GET, path, accepted).await;
        let (encoding, size) = read("/large", "br, gzip").await;
        assert_eq!(encoding.unwrap(), "gzip");
        assert!(size < 2000, "{size} bytes");
        for others in ["identity", "br, *;q=0", "gzip;q=0", "*;q=0"] {
            assert_eq!(read("/large", others).await, (None, 100_002));
        }
        assert_eq!(send(Method::POST, "/large", "gzip").await, (None, 100_002));
        assert_eq!(read("/small", "gzip").await, (None, 3));
        assert_eq!(read("/page", "gzip").await, (None, 100_000));
    }
}
