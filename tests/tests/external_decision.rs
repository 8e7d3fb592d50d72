//! A program decides later: it is notified of a review by a signed webhook, and decides over REST, even after the
//! server was killed in between.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use shared::api::NewToken;
use shared::run::RunStatus;
use tests::reviewing::launch_as;
use tests::{Database, HttpTransport, Options, Server, eventually};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedSender};

/// A secret of 32 bytes in base64, as `openssl rand -base64 32` prints it.
const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwRi7Ht2zVf0s=";

const FLOW: &str = r"id: parcel
output: [note]
nodes:
  write:
    set: { note: Leave it at the door. }
    next: ask
  ask:
    human:
      prompt: Is that allowed?
      review_keys: [note]
      options: [{ id: yes-it-is, label: Yes }, { id: no-never, kind: stop, label: No }]
";

type Message = (HeaderMap, Bytes);

async fn hook(State(heard): State<UnboundedSender<Message>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let _ = heard.send((headers, body));
    StatusCode::NO_CONTENT
}

/// Whether a message has a valid signature of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`.
fn is_signed((headers, body): &Message) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let key = STANDARD.decode(SECRET).expect("base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length will do");
    mac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    mac.update(body);
    let mine = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    header("webhook-signature").split(' ').any(|theirs| theirs == mine)
}

async fn program_decides_after_a_kill(database: Database) {
    let (heard, mut messages) = mpsc::unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let receiver = Router::new().route("/hook", post(hook)).with_state(heard);
    let receiver = tokio::spawn(async move { axum::serve(listener, receiver).await });

    let settings = format!(
        "[notifications]\nallowed_hosts = [\"127.0.0.1\"]\n[notifications.webhooks.desk]\nurl = \"{url}\"\n\
         events = [\"review.requested\"]\n"
    );
    let secret = ("COUNTERSIGN_WEBHOOK_SECRET_DESK".to_owned(), format!("whsec_{SECRET}"));
    let mut server = Server::start(Options { settings, environment: vec![secret], ..Options::on(database) }).await;
    server.save(FLOW).await;
    let program = server.person("program", &["reviewer"]).await;
    let token = NewToken { name: "decider".into(), roles: vec!["reviewer".to_owned()], expires_at: None };
    let token = program.create_token(&token).await.expect("a token").secret.expect("its secret");

    let admin = server.admin().await;
    let run = launch_as(&admin, "parcel", Value::Null).await;

    let message = messages.recv().await.expect("the program hears of it");
    assert!(is_signed(&message));
    let message: Value = serde_json::from_slice(&message.1).expect("JSON");
    assert_eq!(message["type"], "review.requested");
    server.kill();

    // The program has nothing but the content of the message.
    let review = &message["data"]["review"];
    server.restart().await;
    let decision = json!({
        "revision": review["revision"],
        "digest": review["digest"],
        "verdict": { "type": "choose", "option": "yes-it-is" },
    });
    let path = format!("/api/v1/reviews/{}/decisions", review["id"].as_str().expect("an id"));
    let rest = HttpTransport::new(&server.base);
    let answer = rest.raw(Method::POST, &path).bearer_auth(&token).json(&decision).send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK, "{:?}", answer.text().await);

    let admin = server.admin().await;
    let run = eventually("the run goes on", async || {
        let run = admin.run(run).await.ok()?;
        run.summary.status.is_over().then_some(run)
    })
    .await;
    assert_eq!(run.summary.status, RunStatus::Completed);
    assert_eq!(run.output.expect("its output")["note"], "Leave it at the door.");
    receiver.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_heard_of_a_review_decides_it_though_the_server_was_killed_on_sqlite() {
    program_decides_after_a_kill(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_heard_of_a_review_decides_it_though_the_server_was_killed_on_postgres() {
    program_decides_after_a_kill(Database::Postgres).await;
}
