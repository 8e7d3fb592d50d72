//! Tests that limits count by the address of the client, also behind a trusted proxy.

use std::net::{IpAddr, SocketAddr};

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, header};
use serde_json::json;

use super::{PASSWORD, Site};

/// Tries to log in over a connection from `peer` that claims to forward for `client`, and returns the status.
async fn attempt(site: &Site, peer: &str, client: &str, username: &str, password: &str) -> u16 {
    let peer = SocketAddr::new(peer.parse::<IpAddr>().unwrap(), 40_000);
    let body = json!({ "username": username, "password": password });
    let request = Request::post("/api/v1/session")
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::CONTENT_TYPE, "application/json")
        .header("x-forwarded-for", client)
        .extension(ConnectInfo(peer));
    site.send(request.body(Body::from(body.to_string())).unwrap()).await.status.as_u16()
}

#[tokio::test]
async fn failures_of_one_client_of_a_proxy_keep_no_other_client_out() {
    let (site, _) = Site::at_rest().await;
    for name in 0..50 {
        assert_eq!(attempt(&site, "127.0.0.1", "203.0.113.7", &format!("nobody-{name}"), "wrong").await, 401);
    }
    assert_eq!(attempt(&site, "127.0.0.1", "203.0.113.7", "somebody", "wrong").await, 429);
    assert_eq!(attempt(&site, "127.0.0.1", "198.51.100.1", "admin", PASSWORD).await, 200);
}

#[tokio::test]
async fn who_is_no_trusted_proxy_cannot_choose_an_address() {
    let (site, _) = Site::at_rest().await;
    for name in 0..50 {
        let claimed = format!("198.51.100.{name}");
        assert_eq!(attempt(&site, "203.0.113.7", &claimed, &format!("nobody-{name}"), "wrong").await, 401);
    }
    assert_eq!(attempt(&site, "203.0.113.7", "198.51.100.99", "somebody", "wrong").await, 429);
}
