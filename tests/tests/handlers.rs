//! A webhook that decides: it announces a later answer, and gives it even after the server was killed. The first answer
//! counts; later ones are told who decided, and how.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use reqwest::Method;
use serde_json::{Value, json};
use shared::id::RunId;
use shared::review::Review;
use shared::run::{Run, RunStatus};
use tests::{Api, Database, HttpTransport, Options, Server, eventually, reviewing};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwRi7Ht2zVf0s=";

const FLOW: &str = r"id: parcel
output: [note]
nodes:
  write:
    set: { note: Leave it at the door. }
    next: ask
  ask:
    human:
      prompt: Is that allowed?
      edit_keys: [note]
      options: [{ id: allowed, label: Yes }, { id: never, kind: stop, label: No }]
      handlers: [{ webhook: { url: 'URL', timeout: TIMEOUT } }]
";

/// A program that answers every question with 202 and passes it to the test. It stops when this is dropped.
struct Approver {
    url: String,
    asked: UnboundedReceiver<Value>,
    server: AbortHandle,
}

impl Approver {
    async fn start() -> Self {
        let (tell, asked) = mpsc::unbounded_channel();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}/decide?key=s3cret", listener.local_addr().expect("an address"));
        let router = Router::new().route("/decide", post(ask)).with_state(tell);
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { url, asked, server }
    }

    async fn asked(&mut self) -> Value {
        self.asked.recv().await.expect("it is asked")
    }
}

impl Drop for Approver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn ask(State(tell): State<UnboundedSender<Value>>, body: Bytes) -> StatusCode {
    let _ = tell.send(serde_json::from_slice(&body).expect("JSON"));
    StatusCode::ACCEPTED
}

fn options(database: Database) -> Options {
    let settings = "[notifications]\nallowed_hosts = [\"127.0.0.1\"]\n".to_owned();
    let secret = ("COUNTERSIGN_HANDLER_SECRET".to_owned(), SECRET.to_owned());
    Options { settings, environment: vec![secret], ..Options::on(database) }
}

async fn launch(server: &Server) -> RunId {
    reviewing::launch(server, "parcel", Value::Null).await
}

async fn over(admin: &Api, run: RunId) -> Run {
    eventually("the run is over", async || admin.run(run).await.ok().filter(|run| run.summary.status.is_over())).await
}

/// Waits for the pending review of a run.
async fn pending(server: &Server, run: RunId) -> Review {
    let admin = server.admin().await;
    let waits = async || admin.run_reviews(run).await.ok()?.items.into_iter().find(Review::is_pending);
    eventually("people may decide too", waits).await
}

/// Posts an answer to the path of a question's callback URL, whose host is the server's public one. Returns the status
/// and the JSON body (`Null` if it is not JSON).
async fn call_back(server: &Server, asked: &Value, answer: &Value) -> (StatusCode, Value) {
    let url = asked["data"]["callback_url"].as_str().expect("a URL");
    let path = &url[url.find("/api/v1/").expect("a path of the API")..];
    let mut body =
        json!({ "revision": asked["data"]["review"]["revision"], "digest": asked["data"]["review"]["digest"] });
    body.as_object_mut().expect("an object").extend(answer.as_object().expect("an object").clone());
    let answer = HttpTransport::new(&server.base).raw(Method::POST, path).json(&body).send().await.expect("an answer");
    let status = answer.status();
    (status, serde_json::from_slice(&answer.bytes().await.expect("a body")).unwrap_or(Value::Null))
}

async fn answers_after_a_kill(database: Database) {
    let mut approver = Approver::start().await;
    let mut server = Server::start(options(database)).await;
    server.save(&FLOW.replace("URL", &approver.url).replace("TIMEOUT", "1h")).await;
    let run = launch(&server).await;
    let asked = approver.asked().await;
    let review = pending(&server, run).await;
    assert_eq!(json!(review.id), asked["data"]["review"]["id"]);
    assert_eq!(review.asked.expect("the webhook").by, "127.0.0.1");
    server.kill();
    server.restart().await;

    let misfit = json!({ "approved": true, "modifications": { "output": { "other": "x" } } });
    let (status, problem) = call_back(&server, &asked, &misfit).await;
    assert_eq!(
        (status, problem["errors"][0]["path"].as_str()),
        (StatusCode::UNPROCESSABLE_ENTITY, Some("/edits/other"))
    );
    let approval = json!({ "approved": true, "modifications": { "output": { "note": "Ring first." } } });
    let refusal = json!({ "approved": false });
    // Of two answers at the same time, one wins, and the other is told of it.
    let (one, other) = tokio::join!(call_back(&server, &asked, &approval), call_back(&server, &asked, &refusal));
    let mut statuses = [one.0, other.0];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::NO_CONTENT, StatusCode::CONFLICT], "{one:?} {other:?}");
    let late = if one.0 == StatusCode::CONFLICT { &one.1 } else { &other.1 };
    assert_eq!((&late["code"], &late["resolution"]["via"]), (&json!("review_resolved"), &json!("webhook")));
    let run = over(&server.admin().await, run).await;
    if one.0 == StatusCode::NO_CONTENT {
        assert_eq!(run.output.expect("its output")["note"], "Ring first.");
    } else {
        assert_eq!(run.summary.status, RunStatus::Failed);
    }

    let secret = asked["data"]["callback_url"].as_str().and_then(|url| url.rsplit('/').next()).expect("a secret");
    let log = server.log_text();
    for word in [secret, "s3cret", SECRET, "MfKQ9r8G"] {
        assert!(!log.contains(word), "{word} is in the log");
    }
    let rest = HttpTransport::new(&server.base);
    let status = async |method: Method, path: &str| {
        rest.raw(method, path).json(&json!({})).send().await.expect("an answer").status()
    };
    let path = format!("/api/v1/callbacks/{secret}");
    assert_eq!(status(Method::GET, &path).await, StatusCode::METHOD_NOT_ALLOWED);
    let forged = format!("/api/v1/callbacks/{}", secret.chars().rev().collect::<String>());
    assert_eq!(status(Method::POST, &forged).await, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_answers_later_though_the_server_was_killed_on_sqlite() {
    answers_after_a_kill(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_answers_later_though_the_server_was_killed_on_postgres() {
    answers_after_a_kill(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_answers_after_its_time_is_told_who_is_asked_now_and_then_who_decided() {
    let mut approver = Approver::start().await;
    let server = Server::start(options(Database::Sqlite)).await;
    server.save(&FLOW.replace("URL", &approver.url).replace("TIMEOUT", "2s")).await;
    let run = launch(&server).await;
    let asked = approver.asked().await;
    let review = pending(&server, run).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let alone = async || ana.review(review.id).await.ok().filter(|review| review.asked.is_none());
    let review = eventually("its time is over", alone).await;
    assert_eq!(review.advice[0].to_string(), "127.0.0.1 did not decide: It did not answer in time.");
    let (status, problem) = call_back(&server, &asked, &json!({ "approved": true })).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");

    let choice = json!({
        "revision": review.revision, "digest": review.digest, "verdict": { "type": "choose", "option": "allowed" },
    });
    ana.decide(review.id, &serde_json::from_value(choice).expect("a decision"), None).await.expect("decided");
    let (status, problem) = call_back(&server, &asked, &json!({ "approved": false })).await;
    assert_eq!((status, &problem["resolution"]["by"]), (StatusCode::CONFLICT, &json!(["ana"])), "{problem}");
    assert_eq!(over(&server.admin().await, run).await.summary.status, RunStatus::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_on_a_server_is_refused_when_it_is_saved() {
    let server = Server::start(Options::on(Database::Sqlite)).await;
    let admin = server.admin().await;
    let webhook = FLOW.replace("URL", "https://approvals.example.com/decide").replace("TIMEOUT", "1h");
    let cli = webhook.replace("[{ webhook: { url: 'https://approvals.example.com/decide', timeout: 1h } }]", "[cli]");
    for (source, remedy) in [(webhook, "COUNTERSIGN_HANDLER_SECRET"), (cli, "countersign flow run")] {
        let problem = admin.save_flow("parcel", &source).await.expect_err("it is refused");
        let mistake = &problem.errors[0];
        assert_eq!((mistake.path.as_str(), mistake.line), ("/nodes/ask/human/handlers/0", Some(12)), "{problem:?}");
        assert!(mistake.message.contains(remedy), "{mistake}");
    }
}
