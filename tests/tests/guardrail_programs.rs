//! Guardrails that ask a program: an approval only counts once the program has answered, even if the server is killed
//! meanwhile, and so does a person's decision.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use shared::id::RunId;
use shared::review::{Outcome, Review};
use shared::run::RunStatus;
use tests::reviewing::launch;
use tests::{Database, Options, Server, eventually};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwRi7Ht2zVf0s=";

const FLOW: &str = "id: parcel
guardrails:
  - { name: house-rules, on: [actions], webhook: { url: 'URL', timeout: 20s } }
tools:
  publish: { builtin: demo_publish }
gates: { before_tool: { publish: GATE } }
nodes:
  send: { tool: publish, arguments: { title: Parcel, text: TEXT } }
";

/// A program that blocks texts about dogs. It only answers once `answers` is set, and stops when this is dropped.
struct HouseRules {
    url: String,
    asked: UnboundedReceiver<Value>,
    answers: Arc<AtomicBool>,
    server: AbortHandle,
}

impl HouseRules {
    async fn start() -> Self {
        let (tell, asked) = mpsc::unbounded_channel();
        let answers = Arc::new(AtomicBool::new(false));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}/look?key=s3cret", listener.local_addr().expect("an address"));
        let router = Router::new().route("/look", post(look)).with_state((tell, Arc::clone(&answers)));
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { url, asked, answers, server }
    }

    async fn asked(&mut self) -> Value {
        self.asked.recv().await.expect("it is asked")
    }
}

impl Drop for HouseRules {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn look(
    State((tell, answers)): State<(UnboundedSender<Value>, Arc<AtomicBool>)>,
    body: Bytes,
) -> axum::Json<Value> {
    let asked: Value = serde_json::from_slice(&body).expect("JSON");
    let objects = asked["data"]["arguments"]["text"] == "Beware of the dog";
    let _ = tell.send(asked);
    if !answers.load(Ordering::SeqCst) {
        // Longer than the guardrail's timeout.
        tokio::time::sleep(Duration::from_mins(10)).await;
    }
    axum::Json(if objects { json!({ "allowed": false, "reason": "No dogs." }) } else { json!({ "allowed": true }) })
}

async fn start(database: Database, url: &str, gate: &str, text: &str) -> (Server, RunId) {
    let settings = "[notifications]\nallowed_hosts = [\"127.0.0.1\"]\n".to_owned();
    let secret = ("COUNTERSIGN_HANDLER_SECRET".to_owned(), SECRET.to_owned());
    let server = Server::start(Options { settings, environment: vec![secret], ..Options::on(database) }).await;
    server.save(&FLOW.replace("URL", url).replace("GATE", gate).replace("TEXT", text)).await;
    let run = launch(&server, "parcel", Value::Null).await;
    (server, run)
}

async fn leave_waits_through_a_kill(database: Database) {
    let mut rules = HouseRules::start().await;
    let (mut server, run) = start(database, &rules.url, "{ handlers: [{ auto: approve }] }", "Beware of the dog").await;
    let asked = rules.asked().await;
    assert_eq!((&asked["type"], &asked["data"]["guardrail"]), (&json!("guardrail.look"), &json!("house-rules")));
    let admin = server.admin().await;
    assert!(admin.run_reviews(run).await.expect("reviews").items.is_empty(), "nothing counts yet");
    server.kill();
    rules.answers.store(true, Ordering::SeqCst);
    server.restart().await;
    assert_eq!(rules.asked().await["data"]["arguments"], asked["data"]["arguments"], "the same is asked again");
    let admin = server.admin().await;
    let over =
        eventually("the run is over", async || admin.run(run).await.ok().filter(|run| run.summary.status.is_over()));
    let over = over.await;
    let error = over.summary.error.expect("it is blocked");
    assert_eq!((over.summary.status, &*error.message), (RunStatus::Failed, "house-rules: No dogs."));
    let review = admin.run_reviews(run).await.expect("reviews").items.remove(0);
    let vetoes = review.resolution.expect("it was decided").vetoes;
    assert_eq!(vetoes.iter().map(|veto| &*veto.reason).collect::<Vec<_>>(), ["No dogs."]);
    let log = server.log_text();
    assert!(!log.contains("s3cret") && !log.contains("MfKQ9r8G") && !log.contains("Beware"));
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_waits_for_a_program_though_the_server_is_killed_on_sqlite() {
    leave_waits_through_a_kill(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_waits_for_a_program_though_the_server_is_killed_on_postgres() {
    leave_waits_through_a_kill(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_checked_and_made_with_what_the_program_says() {
    let rules = HouseRules::start().await;
    rules.answers.store(true, Ordering::SeqCst);
    let (server, run) = start(Database::Sqlite, &rules.url, "true", "Ring first").await;
    let ana = server.person("ana", &["reviewer"]).await;
    let pending = async || ana.run_reviews(run).await.ok()?.items.into_iter().find(Review::is_pending);
    let review = eventually("it waits", pending).await;
    let body = |arguments: Value| {
        let edit = json!({ "type": "edit", "arguments": arguments });
        let verdict = json!({ "type": "actions", "decisions": { &review.actions[0].id: edit } });
        json!({ "revision": review.revision, "digest": review.digest, "verdict": verdict })
    };
    let dogs = body(json!({ "title": "Parcel", "text": "Beware of the dog" }));
    let dogs: shared::decision::DecisionRequest = serde_json::from_value(dogs).expect("a decision");
    let checked = ana.check(review.id, &dogs).await.expect("checked");
    assert_eq!(checked.vetoes.iter().map(|veto| &*veto.guardrail).collect::<Vec<_>>(), ["house-rules"]);
    let decided = ana.decide(review.id, &dogs, None).await.expect("decided");
    let resolution = decided.review.resolution.expect("it is over");
    assert_eq!((resolution.outcome, &*resolution.vetoes[0].reason), (Outcome::Decided, "No dogs."));
}
