//! Tests of the limits for the writes of one person.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use futures::{future, stream};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Client, HttpOptions, Site, http_options};
use crate::rate_limit::{Budgets, WriteLimits};
use crate::store::testing::{Database, ManualClock};

const FLOW: &str = r#"{"id": "ask", "nodes": {"ask": {"human": {"prompt": "Go on?",
    "options": [{"id": "yes", "label": "Yes"}]}}}}"#;

async fn site(limits: WriteLimits) -> Site {
    let options = HttpOptions { budgets: Arc::new(Budgets::new(limits)), ..http_options() };
    Site::with(Database::sqlite().unwrap(), ManualClock::now(), options).await
}

/// Launches a run, and returns its review.
async fn asked(admin: &Client<'_>) -> Value {
    admin.put_flow("/api/v1/flows/ask", FLOW).await.expect(200);
    admin.post("/api/v1/runs", &json!({ "flow": "ask" })).await.expect(201);
    admin.get("/api/v1/reviews?status=pending").await.expect(200)["items"][0].clone()
}

#[tokio::test]
async fn one_reviewer_cannot_fill_the_disk_and_holds_up_nobody_else() {
    let site = site(WriteLimits { bytes_per_minute: 100_000, ..WriteLimits::default() }).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let tom = site.join("tom", &["reviewer"]).await;
    let review = asked(&site.login("admin").await).await;
    let comments = format!("/api/v1/reviews/{}/comments", review["id"].as_str().unwrap());
    let remark = json!({ "text": "x".repeat(5_000) });
    let mut written = 0;
    let refused = loop {
        let answer = ana.post(&comments, &remark).await;
        if answer.status != 200 {
            break answer;
        }
        written += answer.body.to_string().len();
        assert!(written < 200_000, "what was written is not counted");
    };
    let wait: u64 = refused.headers[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(refused.code(429), "too_many_requests");
    ana.get("/api/v1/reviews").await.expect(200);
    tom.post(&comments, &remark).await.expect(200);
}

#[tokio::test]
async fn a_clock_that_is_set_back_locks_out_nobody() {
    let clock = ManualClock::now();
    let site = Site::with(Database::sqlite().unwrap(), clock.clone(), http_options()).await;
    let ana = site.join("ana", &["reviewer"]).await;
    ana.put("/api/v1/notifications", &json!({})).await.expect(200);
    let wrong = json!({ "username": "ana", "password": "not hers" });
    let nobody = Client { site: &site, cookie: None };
    assert_eq!(nobody.post("/api/v1/session", &wrong).await.code(401), "unauthenticated");
    clock.set_back(Duration::from_hours(2));
    let login = json!({ "username": "ana", "password": super::PASSWORD });
    nobody.post("/api/v1/session", &login).await.expect(200);
}

#[tokio::test]
async fn writes_of_every_kind_are_counted() {
    let site = site(WriteLimits { bytes_per_minute: 60, ..WriteLimits::default() }).await;
    for name in ["ana", "tom"] {
        let person = site.join(name, &["reviewer"]).await;
        let token = json!({ "name": "x", "roles": [] });
        person.post("/api/v1/tokens", &token).await.expect(201);
        assert_eq!(person.post("/api/v1/tokens", &token).await.code(429), "too_many_requests");
        assert_eq!(person.put("/api/v1/notifications", &json!({})).await.code(429), "too_many_requests");
    }
}

#[tokio::test]
async fn whoever_has_written_too_much_can_still_log_in_and_end_what_has_access() {
    let site = site(WriteLimits { writes_per_second: 1, ..WriteLimits::default() }).await;
    let ana = site.join("ana", &["reviewer"]).await;
    let token = ana.post("/api/v1/tokens", &json!({ "name": "x", "roles": [] })).await.expect(201);
    // The login and the token were the first of the sixty allowed writes.
    for _ in 0..58 {
        ana.put("/api/v1/notifications", &json!({})).await.expect(200);
    }
    assert_eq!(ana.put("/api/v1/notifications", &json!({})).await.code(429), "too_many_requests");
    let ana = site.login("ana").await;
    assert_eq!(ana.put("/api/v1/notifications", &json!({})).await.code(429), "too_many_requests");
    ana.delete(&format!("/api/v1/tokens/{}", token["id"].as_str().unwrap())).await.expect(204);
    ana.delete("/api/v1/me/sessions").await.expect(204);
    site.join("tom", &["reviewer"]).await;
}

#[tokio::test]
async fn a_token_without_roles_uses_up_nothing_that_its_creator_needs() {
    let site = site(WriteLimits { writes_per_second: 1, ..WriteLimits::default() }).await;
    for (name, person) in [("ana", site.join("ana", &["reviewer"]).await), ("admin", site.login("admin").await)] {
        let token = person.post("/api/v1/tokens", &json!({ "name": "x", "roles": [] })).await.expect(201);
        let secret = format!("Bearer {}", token["secret"].as_str().unwrap());
        let program = Client { site: &site, cookie: None };
        let write = async || program.post_with("/api/v1/runs", &json!({}), &[("authorization", secret.as_str())]).await;
        for _ in 0..60 {
            assert_ne!(write().await.status, 429, "{name}");
        }
        assert_eq!(write().await.code(429), "too_many_requests", "{name}");
        person.put("/api/v1/notifications", &json!({})).await.expect(200);
        person.delete(&format!("/api/v1/tokens/{}", token["id"].as_str().unwrap())).await.expect(204);
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_counts_as_what_it_has() {
    let site = site(WriteLimits { bytes_per_minute: 3 * 1024 * 1024, ..WriteLimits::default() }).await;
    let ana = site.join("ana", &["reviewer"]).await;
    for _ in 0..20 {
        let chunks = Body::from_stream(stream::iter([Ok::<_, io::Error>("{"), Ok("}")]));
        let request = ana.request("PUT", "/api/v1/notifications").header(header::CONTENT_TYPE, "application/json");
        site.send(request.body(chunks).unwrap()).await.expect(200);
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_counts_as_what_was_read_of_it() {
    let site = site(WriteLimits { bytes_per_minute: 3 * 1024 * 1024, ..WriteLimits::default() }).await;
    let ana = site.join("ana", &["reviewer"]).await;
    for _ in 0..20 {
        let (reached, is_read) = oneshot::channel();
        let stalled = async move {
            let _ = reached.send(());
            future::pending::<io::Result<&'static str>>().await
        };
        let request = ana.request("PUT", "/api/v1/notifications").header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from_stream(stream::once(stalled))).unwrap();
        tokio::select! {
            answer = site.send(request) => panic!("{answer:?}"),
            _ = is_read => {}
        }
    }
    ana.put("/api/v1/notifications", &json!({})).await.expect(200);
}

#[tokio::test]
async fn claiming_again_writes_nothing_and_metadata_is_bounded() {
    let site = Site::new().await;
    let ana = site.join("ana", &["reviewer"]).await;
    let admin = site.login("admin").await;
    let review = asked(&admin).await;
    let path = format!("/api/v1/reviews/{}", review["id"].as_str().unwrap());
    let entries = async || admin.get("/api/v1/log?limit=200").await.expect(200)["items"].as_array().unwrap().len();
    ana.post(&format!("{path}/claim"), &json!({})).await.expect(200);
    let before = entries().await;
    for _ in 0..5 {
        ana.post(&format!("{path}/claim"), &json!({})).await.expect(200);
    }
    assert_eq!(entries().await, before);
    let verdict = json!({ "type": "choose", "option": "yes" });
    let mut decision = json!({ "revision": review["revision"], "digest": review["digest"], "verdict": verdict });
    decision["metadata"] = json!({ "note": "x".repeat(17_000) });
    let refused = ana.post(&format!("{path}/decisions"), &decision).await.expect(422);
    assert_eq!(
        (&refused["errors"][0]["path"], &refused["errors"][0]["code"]),
        (&json!("/metadata"), &json!("too_long"))
    );
    decision["metadata"] = json!({ "note": "x".repeat(15_000) });
    ana.post(&format!("{path}/decisions"), &decision).await.expect(200);
}
