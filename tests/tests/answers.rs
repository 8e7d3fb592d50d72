//! The answer to a question that no flow asks is posted, signed, to the callback of the program that asked. A server
//! that stops does not keep programs waiting that wait for an answer.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use shared::api::AuditQuery;
use tests::caller::{self, caller, path_of};
use tests::{Database, Options, Server, eventually, on_both};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;

/// A secret of 32 bytes in base64, as `openssl rand -base64 32` prints it.
const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwRi7Ht2zVf0s=";

on_both! {
    an_answer_is_posted_and_signed_though_the_server_was_killed,
}

/// A program that receives answers at its callback URL. It stops when this is dropped.
struct Receiver {
    url: String,
    heard: UnboundedReceiver<(HeaderMap, Bytes)>,
    server: AbortHandle,
}

impl Receiver {
    async fn start() -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}/answer?key=s3cret", listener.local_addr().expect("an address"));
        let router = Router::new().route("/answer", post(hear)).with_state(tell);
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { url, heard, server }
    }

    /// Waits for the next message, checks its signature, and returns its id and body.
    async fn next(&mut self) -> (String, Value) {
        let (headers, body) = self.heard.recv().await.expect("a message");
        let header =
            |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let key = STANDARD.decode(SECRET).expect("base64");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length will do");
        mac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
        mac.update(&body);
        let mine = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        assert!(header("webhook-signature").split(' ').any(|theirs| theirs == mine), "it is signed");
        (header("webhook-id"), serde_json::from_slice(&body).expect("JSON"))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn hear(State(tell): State<UnboundedSender<(HeaderMap, Bytes)>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let _ = tell.send((headers, body));
    StatusCode::NO_CONTENT
}

async fn an_answer_is_posted_and_signed_though_the_server_was_killed(database: Database) {
    let mut receiver = Receiver::start().await;
    let settings = "[notifications]\nallowed_hosts = [\"127.0.0.1\"]\n".to_owned();
    let secret = ("COUNTERSIGN_CALLBACK_SECRET".to_owned(), format!("whsec_{SECRET}"));
    let mut server = Server::start(Options { settings, environment: vec![secret], ..Options::on(database) }).await;
    let program = caller(&server, "program", &["developer"]).await;
    let ana = caller(&server, "ana", &["reviewer"]).await;
    let mut question = json!({ "kind": "clarification", "question": "Which size?", "callback_url": receiver.url });
    let review = program.ask(&question).await;
    assert!(!review.to_string().contains("s3cret"), "the URL is nobody's but the asker's: {review}");
    let (status, decided) = ana.decide(&review, &json!({ "verdict": { "type": "text", "text": "Medium." } })).await;
    assert_eq!(status, StatusCode::OK, "{decided}");
    server.kill();
    server.restart().await;
    let (id, message) = receiver.next().await;
    assert_eq!((&message["type"], &message["data"]["review"]["id"]), (&json!("review.resolved"), &review["id"]));
    assert_eq!(message["data"]["review"]["resolution"]["answer"]["text"], "Medium.");

    // An expiry is posted too. A question without a callback is not.
    program.ask(&json!({ "kind": "clarification", "question": "Who?", "timeout": "1s" })).await;
    question["timeout"] = "1s".into();
    let late = program.ask(&question).await;
    // If the kill came after the message was sent and before that was recorded, it comes twice, with the same id.
    let (mut other, mut message) = receiver.next().await;
    if other == id {
        (other, message) = receiver.next().await;
    }
    assert_ne!(other, id);
    let told = &message["data"]["review"];
    assert_eq!((&told["id"], &told["resolution"]["status"]), (&late["id"], &json!("expired")));
    let deliveries = caller::admin(&server).await.get("/api/v1/notifications/deliveries?status=sent").await;
    assert_eq!(
        (&deliveries["items"][0]["channel"], &deliveries["items"][0]["target"]),
        (&json!("callback"), &json!("program"))
    );
    assert!(!server.log_text().contains("s3cret") && !server.log_text().contains(SECRET));

    for (wrong, words) in [
        ("http://10.0.0.1/answer", "public internet"),
        ("ftp://example.com/answer", "https://"),
        ("somewhere", "not a URL"),
    ] {
        question["callback_url"] = wrong.into();
        let (status, problem) = program.post("/api/v1/reviews", &question).await;
        let mistake = &problem["errors"][0];
        assert_eq!(
            (status, &mistake["path"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("/callback_url")),
            "{problem}"
        );
        assert!(mistake["message"].as_str().is_some_and(|message| message.contains(words)), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_is_answered_when_the_server_stops() {
    let mut server = Server::start(Options::on(Database::Sqlite)).await;
    let program = caller(&server, "program", &["developer"]).await;
    let ana = caller(&server, "ana", &["reviewer"]).await;
    let admin = server.admin().await;
    let review = program.ask(&json!({ "kind": "clarification", "question": "Who?" })).await;
    let path = format!("{}?wait=60s", path_of(&review));
    let stop = async {
        // The view is recorded once the wait has begun.
        let viewed = AuditQuery { kind: Some("review.viewed".to_owned()), ..AuditQuery::default() };
        let viewed = async || admin.audit(&viewed).await.ok().filter(|page| !page.items.is_empty());
        eventually("the review is viewed", viewed).await;
        server.signal("TERM");
        server.ended(Duration::from_secs(10)).await
    };
    let (waited, status) = tokio::join!(ana.get(&path), stop);
    assert_eq!(waited["status"], "pending");
    assert!(status.success(), "{status}");
}
