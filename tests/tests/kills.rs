//! The server is killed while runs wait, one for everything that a run can wait for. Afterwards, the same questions are
//! still pending, unchanged. Then they are decided, and each run ends once and has its effect once.

#[path = "kills/cases.rs"]
mod cases;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use cases::{Case, cases};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use shared::api::LogQuery;
use shared::log::EntryKind;
use tests::caller::{Caller, caller, path_of};
use tests::{Api, Database, Options, Recorder, Server, eventually, on_both};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

on_both! { whatever_a_run_waits_for_is_decided_after_a_kill_and_has_its_effect_once }

/// A model server for a judge. It does not answer the first request, and approves all later ones. It stops when this is
/// dropped.
struct Judge {
    host: String,
    asked: Arc<AtomicUsize>,
    server: AbortHandle,
}

impl Judge {
    async fn start() -> Self {
        let asked = Arc::<AtomicUsize>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let host = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().route("/api/chat", post(judge)).with_state(Arc::clone(&asked));
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { host, asked, server }
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn judge(State(asked): State<Arc<AtomicUsize>>) -> Json<Value> {
    if asked.fetch_add(1, Ordering::SeqCst) == 0 {
        // Longer than the server that asks will live.
        tokio::time::sleep(Duration::from_mins(10)).await;
    }
    let verdict = json!({ "approved": true, "confidence": 0.9, "reasoning": "It is." });
    let message = json!({ "role": "assistant", "content": verdict.to_string() });
    Json(json!({ "message": message, "done": true, "prompt_eval_count": 3, "eval_count": 5 }))
}

/// The run of a case, by its id.
struct Waiting {
    case: Case,
    run: String,
}

impl Waiting {
    fn path(&self) -> String {
        format!("/api/v1/runs/{}", self.run)
    }

    /// Waits for a pending review of this kind, and returns it.
    async fn asks(&self, dev: &Caller, kind: &str) -> Value {
        eventually(&format!("`{}` asks: {kind}", self.case.name), async || {
            let reviews = dev.get(&format!("{}/reviews", self.path())).await;
            let asks = |review: &&Value| review["status"] == "pending" && review["kind"] == *kind;
            reviews["items"].as_array()?.iter().find(asks).cloned()
        })
        .await
    }

    async fn is_over(&self, dev: &Caller) -> Value {
        eventually(&format!("`{}` is over", self.case.name), async || {
            let run = dev.get(&self.path()).await;
            (run["status"] != "running" && run["status"] != "waiting_for_human").then_some(run)
        })
        .await
    }

    /// Decides reviews in order, as Ana: each entry names the kind of the review to wait for, and the decision.
    async fn decide(&self, dev: &Caller, ana: &Caller, decisions: &[(&str, Value)]) {
        for (kind, decision) in decisions {
            let review = self.asks(dev, kind).await;
            let decision = match decision.get("each") {
                Some(each) => {
                    let ids = review["actions"].as_array().expect("actions").iter().map(|action| &action["id"]);
                    let of = ids.map(|id| (id.as_str().expect("an id").to_owned(), each.clone()));
                    json!({ "verdict": { "type": "actions", "decisions": of.collect::<serde_json::Map<_, _>>() } })
                }
                None => decision.clone(),
            };
            let (status, decided) = ana.decide(&review, &decision).await;
            assert_eq!(status, StatusCode::OK, "{}: {decided}", self.case.name);
        }
    }

    /// Reads the run's log, and returns a function that counts its entries of a kind.
    async fn told(&self, admin: &Api) -> impl Fn(&str) -> usize + use<> {
        let query = LogQuery { run: Some(self.run.parse().expect("an id")), limit: Some(200), after: None };
        let log = admin.log(&query).await.expect("the log").items;
        move |kind| log.iter().filter(|entry| entry.event.kind.as_str() == kind).count()
    }
}

/// The parts of a review that must be the same after a kill, as Ana sees them.
async fn seen(ana: &Caller, review: &Value) -> Value {
    let review = ana.get(&path_of(review)).await;
    let of = ["revision", "digest", "title", "prompt", "items", "actions", "options", "advice", "expires_at"];
    of.into_iter().map(|member| (member.to_owned(), review[member].clone())).collect()
}

async fn whatever_a_run_waits_for_is_decided_after_a_kill_and_has_its_effect_once(database: Database) {
    let (recorder, judge) = (Recorder::start(Duration::ZERO).await, Judge::start().await);
    let environment = vec![("OLLAMA_HOST".to_owned(), judge.host.clone())];
    let mut server = Server::start(Options { environment, ..Options::on(database) }).await;
    let admin = server.admin().await;
    let (dev, ana) = (caller(&server, "dev", &["developer"]).await, caller(&server, "ana", &["reviewer"]).await);
    let mut waiting = Vec::new();
    for case in cases() {
        let saved = admin.save_flow(case.name, &case.source(&recorder.url)).await;
        saved.unwrap_or_else(|problem| panic!("{}: {problem}: {:?}", case.name, problem.errors));
        let (status, run) = dev.post("/api/v1/runs", &json!({ "flow": case.name })).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        waiting.push(Waiting { case, run: run["id"].as_str().expect("an id").to_owned() });
    }
    let asked = join_all(waiting.iter().map(async |waits| {
        let (before, after) = waits.case.decisions.split_at(waits.case.before);
        waits.decide(&dev, &ana, before).await;
        let (kind, _) = after.first()?;
        if *kind == "handoff" {
            waits.is_over(&dev).await;
        }
        let review = waits.asks(&dev, kind).await;
        Some((seen(&ana, &review).await, review))
    }));
    let asked = asked.await;
    eventually("the judge is asked", async || (judge.asked.load(Ordering::SeqCst) == 1).then_some(())).await;
    server.kill();
    server.restart().await;

    join_all(waiting.iter().zip(&asked).map(async |(waits, asked)| {
        let name = waits.case.name;
        if let Some((shown, review)) = asked {
            assert_eq!(seen(&ana, review).await, *shown, "{name} is asked as it was");
        }
        waits.decide(&dev, &ana, &waits.case.decisions[waits.case.before..]).await;
        let run = waits.is_over(&dev).await;
        assert_eq!(run["status"], "completed", "{name}: {run}");

        let calls = recorder.calls_with("case", name);
        let said: Vec<_> = calls.iter().map(|call| call.arguments["said"].to_string().replace('\\', "")).collect();
        assert!(matches!(&said[..], [said] if said.contains(waits.case.said)), "{name} acted once: {said:?}");
        let told = waits.told(&admin).await;
        let reviews = waits.case.decisions.len().max(1);
        for (kind, count) in [
            (EntryKind::RunStarted.as_str(), 1),
            (EntryKind::RunCompleted.as_str(), 1),
            (EntryKind::ReviewRequested.as_str(), reviews),
            (EntryKind::ReviewResolved.as_str(), reviews),
            (EntryKind::ModelAnswered.as_str(), waits.case.answers),
        ]
        .into_iter()
        .chain(waits.case.tells.map(|kind| (kind, 1)))
        {
            assert_eq!(told(kind), count, "{name}: {kind}");
        }
    }))
    .await;
    assert_eq!(judge.asked.load(Ordering::SeqCst), 2, "a question that nobody has answered is put again, once");
    let sealed = async || admin.verify_audit().await.ok().filter(|check| check.sealed >= check.entries);
    assert!(eventually("all of it is sealed", sealed).await.valid);
}
