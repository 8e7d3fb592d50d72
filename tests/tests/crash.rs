//! The server is killed at random moments under load. Nothing that was acknowledged is lost, nothing happens twice, and
//! every run continues from exactly where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use rand::RngExt;
use serde_json::json;
use shared::api::{Decided, LogQuery};
use shared::decision::DecisionRequest;
use shared::error::{Code, Problem};
use shared::id::{ReviewId, RunId};
use shared::log::{Entry, EntryKind};
use shared::review::ReviewStatus;
use shared::run::RunStatus;
use tests::reviewing::{chosen, launch_of};
use tests::wait::eventually_within;
use tests::{Api, Database, Options, Recorder, Server, eventually, flows, settings};

/// The time limit for what must happen despite kills, which includes that leases of lost workers run out.
const SETTLE: Duration = Duration::from_mins(3);
const CLIENTS: usize = 6;

/// A launch and a decision that the server has acknowledged.
struct Acknowledged {
    topic: String,
    run: RunId,
    review: ReviewId,
}

/// Retries a request until the server has answered. `ask` must use the same idempotency key each time, so that it
/// counts once.
async fn insist<T>(what: &str, mut ask: impl AsyncFnMut() -> Result<T, Problem>) -> T {
    eventually_within(SETTLE, what, async || match ask().await {
        Ok(answer) => Some(answer),
        Err(problem) => {
            let gone = matches!(problem.code, Code::Unavailable | Code::Internal);
            assert!(gone, "{what}: {problem}");
            None
        }
    })
    .await
}

async fn client(number: usize, admin: &Api, ana: &Api, stop: &AtomicBool) -> Vec<Acknowledged> {
    let mut done = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let topic = format!("client-{number}-run-{}", done.len());
        let launch = launch_of("quick", json!({ "topic": topic }));
        let key = format!("launch-{topic}");
        let run = insist("launched", async || admin.launch(&launch, Some(&key)).await).await.summary.id;
        let review = eventually_within(SETTLE, "somebody is asked", async || {
            ana.run_reviews(run).await.ok()?.items.into_iter().next()
        })
        .await;
        let decision = DecisionRequest { comment: Some(topic.clone()), ..chosen(&review, "approve") };
        let key = format!("decide-{topic}");
        let Decided { review, .. } =
            insist("decided", async || ana.decide(review.id, &decision, Some(&key)).await).await;
        done.push(Acknowledged { topic, run, review: review.id });
    }
    done
}

async fn log_of(admin: &Api, run: RunId) -> Vec<Entry> {
    let query = LogQuery { run: Some(run), limit: Some(200), after: None };
    admin.log(&query).await.expect("the log").items
}

async fn survives(database: Database) {
    let recorder = Recorder::start(Duration::from_millis(5)).await;
    let settings = "[limits]\nwrites_per_second = 0\n".to_owned();
    let mut server = Server::start(Options { settings, ..Options::on(database) }).await;
    server.save(&flows::quick_article(&recorder.url)).await;
    let ana = server.person("ana", &["reviewer"]).await;
    let admin = server.admin().await;
    let stop = AtomicBool::new(false);
    let clients = join_all((0..CLIENTS).map(|number| client(number, &admin, &ana, &stop)));
    let killing = async {
        let mut random = settings::random();
        for _ in 0..settings::kills() {
            // Not a wait for a condition: the load goes on for a random time before the next kill.
            tokio::time::sleep(Duration::from_millis(random.random_range(20..600))).await;
            server.kill();
            server.restart().await;
        }
        stop.store(true, Ordering::Relaxed);
    };
    let (acknowledged, ()) = tokio::join!(clients, killing);
    let acknowledged: Vec<Acknowledged> = acknowledged.into_iter().flatten().collect();
    assert!(acknowledged.len() >= CLIENTS, "hardly any load: {} runs", acknowledged.len());

    let mut keys = BTreeSet::new();
    for Acknowledged { topic, run, review } in &acknowledged {
        let run = eventually_within(SETTLE, &format!("the run of {topic} is over"), async || {
            let run = admin.run(*run).await.ok()?;
            run.summary.status.is_over().then_some(run)
        })
        .await;
        assert_eq!(run.summary.status, RunStatus::Completed, "{topic}: {:?}", run.summary.error);
        assert_eq!(run.state["topic"], json!(topic));

        // The acknowledged decision is there, unchanged.
        let review = ana.review(*review).await.expect("the review is there");
        assert_eq!(review.status, ReviewStatus::Resolved, "{topic}");
        let decision = review.resolution.expect("resolved").decision.expect("by a decision");
        assert_eq!((decision.by.as_str(), decision.comment.as_deref()), ("ana", Some(topic.as_str())));

        // There is one launch and one resolution, and no recorded step ran again.
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let entries = log_of(&admin, run.summary.id).await;
        for entry in &entries {
            *counts.entry(entry.event.kind.as_str()).or_default() += 1;
        }
        for kind in [
            EntryKind::RunStarted,
            EntryKind::ModelAnswered,
            EntryKind::ReviewRequested,
            EntryKind::ReviewResolved,
            EntryKind::ToolExecuted,
            EntryKind::RunCompleted,
        ] {
            assert_eq!(counts.get(kind.as_str()), Some(&1), "{topic}: {kind} in {counts:?}");
        }

        // If the tool's answer was lost, the tool may have been called again, but with the same key.
        let calls = recorder.calls_with("topic", topic);
        assert!(!calls.is_empty(), "{topic}: the tool was called");
        let distinct: BTreeSet<&str> = calls.iter().map(|call| call.key.as_str()).collect();
        assert_eq!(distinct.len(), 1, "{topic}: every attempt has the same idempotency key");
        assert!(keys.insert(calls[0].key.clone()), "{topic}: no two calls share a key");
    }

    // A launch whose answer was lost has not left a second run behind.
    let started = all_started(&admin).await;
    let mut topics = BTreeMap::<String, usize>::new();
    for run in started {
        let run = admin.run(run).await.expect("there");
        *topics.entry(run.state["topic"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    assert!(topics.values().all(|runs| *runs == 1), "a launch counted twice: {topics:?}");
}

/// Returns every run that started, in the order of the log, and checks that no cursor appears twice.
async fn all_started(admin: &Api) -> Vec<RunId> {
    let (mut after, mut cursors, mut runs) = (None, BTreeSet::new(), Vec::new());
    loop {
        let query = LogQuery { run: None, after, limit: Some(200) };
        let page = eventually("the log answers", async || admin.log(&query).await.ok()).await;
        for entry in &page.items {
            assert!(cursors.insert(entry.cursor.0.clone()), "{} comes twice", entry.cursor);
            if entry.event.kind == EntryKind::RunStarted {
                runs.push(entry.event.run_id.expect("its run"));
            }
        }
        match page.items.last() {
            Some(last) => after = Some(last.cursor.0.clone()),
            None => return runs,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_done_twice_when_the_server_is_killed_on_sqlite() {
    survives(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_done_twice_when_the_server_is_killed_on_postgres() {
    survives(Database::Postgres).await;
}
