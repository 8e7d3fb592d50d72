//! Compresses large JSON responses, such as lists, for clients that accept it. The files of the console are compressed
//! when they are embedded (`assets`), and exports are streamed as they are.
//!
//! A response that holds a secret beside text of an attacker would give the secret away by its length (BREACH). None
//! does: sessions are in cookies only, a token's secret is in a response too small to be compressed, and browsers send
//! no cookie with what another site requests in the background (`SameSite=Lax`).

use axum::http::{HeaderMap, StatusCode, Version, header};
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

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use axum::routing::get;
    use axum::{Json, Router};
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn only_large_json_is_compressed_and_only_for_who_accepts_it() {
        let router: Router = Router::new()
            .route("/large", get(async || Json("a".repeat(100_000))))
            .route("/small", get(async || Json("a")))
            .route("/page", get(async || "a".repeat(100_000)))
            .layer(layer());
        let read = async |path: &str, accepted: &str| {
            let request = Request::get(path).header(header::ACCEPT_ENCODING, accepted).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            let encoding = response.headers().get(header::CONTENT_ENCODING).cloned();
            (encoding, to_bytes(response.into_body(), usize::MAX).await.unwrap().len())
        };
        let (encoding, size) = read("/large", "gzip, br").await;
        assert_eq!(encoding.unwrap(), "gzip");
        assert!(size < 2000, "{size} bytes");
        assert_eq!(read("/large", "identity").await, (None, 100_002));
        assert_eq!(read("/small", "gzip").await, (None, 3));
        assert_eq!(read("/page", "gzip").await, (None, 100_000));
    }
}
