//! What people and programs are told of runs.

use serde_json::{Value, json};
use shared::log::EntryKind;
use shared::notification::Occasion;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::mails::{Post, by_mail};
use super::webhooks::{requests, toml, verified};
use super::{SECRET, URL, choose, eventually, settings, start};
use crate::store::tests::support::{World, decide, launch, on_both};
use crate::store::{Committed, Operation};

on_both! {
    a_program_hears_how_runs_go_on_and_nothing_of_their_input,
    who_started_a_run_hears_that_it_failed_and_nobody_else,
    the_end_of_a_run_is_posted_where_its_program_wants_it,
}

/// A receiver that accepts everything.
async fn receiver() -> MockServer {
    let receiver = MockServer::start().await;
    for at in ["/hook", "/done"] {
        Mock::given(path(at)).respond_with(ResponseTemplate::new(204)).mount(&receiver).await;
    }
    receiver
}

async fn a_program_hears_how_runs_go_on_and_nothing_of_their_input(world: World) {
    let receiver = receiver().await;
    // A run is for no role.
    let events = "events = [\"workflow.waiting\", \"run.completed\", \"run.failed\"]\nroles = [\"editor\"]";
    let notifier = start(&world, &settings(&toml(&receiver, events))).await;
    let (accepted, stopped) = (world.launched_review("a secret").await, world.launched_review("a secret").await);
    world.store.commit(decide(&accepted, "tom", "yes")).await.expect("decided");
    world.store.commit(decide(&stopped, "tom", "no")).await.expect("decided");
    let told = eventually(&world, "all is told", async || {
        Some(requests(&receiver).await).filter(|requests| requests.len() == 4)
    })
    .await;
    notifier.shutdown().await;
    let mut told: Vec<Value> = told.iter().map(|one| verified(one, SECRET).1).collect();
    told.sort_by_key(|body| body["type"].as_str().map(str::to_owned));
    let types: Vec<_> = told.iter().map(|body| body["type"].as_str().expect("a type")).collect();
    assert_eq!(types, ["run.completed", "run.failed", "workflow.waiting", "workflow.waiting"]);
    let run = |body: &Value| body["data"]["run"].clone();
    let (completed, failed) = (run(&told[0]), run(&told[1]));
    assert_eq!((&completed["id"], &completed["flow"]), (&json!(accepted.run_id), &json!("ask")));
    assert_eq!(told[0]["data"]["url"], format!("{URL}/runs/{}", accepted.run_id.expect("its run")));
    assert_eq!((&failed["id"], &failed["status"]), (&json!(stopped.run_id), &json!("failed")));
    assert_eq!(failed["error"]["code"], "FLOW_HUMAN_REJECTED");
    assert_eq!(run(&told[2])["status"], "waiting_for_human");
    assert!(!json!(told).to_string().contains("a secret"), "{told:?}");
}

async fn who_started_a_run_hears_that_it_failed_and_nobody_else(world: World) {
    let post = Post::start().await;
    for name in ["dev", "ana"] {
        let chosen = by_mail(&format!("{name}@desk.example"), &[Occasion::RunFailed], None);
        choose(&world, name, chosen).await.expect("chosen");
    }
    let notifier = start(&world, &settings(&post.toml())).await;
    let (accepted, stopped) = (world.launched_review("one").await, world.launched_review("two").await);
    world.store.commit(decide(&accepted, "ana", "yes")).await.expect("decided");
    world.store.commit(decide(&stopped, "ana", "no")).await.expect("decided");
    let mail = eventually(&world, "a mail", async || post.mails().pop()).await;
    notifier.shutdown().await;
    assert_eq!(post.mails().len(), 1, "{:?}", post.mails());
    assert!(mail.contains("RCPT TO:<dev@desk.example>") && mail.contains("Subject: Rejected: "), "{mail}");
    let link = format!("Look at it: {URL}/runs/{}", stopped.run_id.expect("its run"));
    assert!(mail.contains(&link) && mail.contains("\nFLOW_HUMAN_REJECTED"), "{mail}");
}

async fn the_end_of_a_run_is_posted_where_its_program_wants_it(world: World) {
    let receiver = receiver().await;
    let notifier = start(&world, &settings("")).await;
    let mut wanted = launch("hello");
    if let Operation::Launch { callback_url, .. } = &mut wanted.operation {
        *callback_url = Some(format!("{}/done?key=s3cret", receiver.uri()));
    }
    let Committed::Run { run } = world.store.commit(wanted).await.expect("the run starts") else { panic!("a run") };
    let (wanted, other) = (world.review_of(run.summary.id).await, world.launched_review("hello").await);
    for review in [other, wanted] {
        world.store.commit(decide(&review, "tom", "yes")).await.expect("decided");
    }
    let told = eventually(&world, "it is posted", async || requests(&receiver).await.pop()).await;
    let (_, body) = verified(&told, SECRET);
    assert_eq!((&body["type"], &body["data"]["run"]["id"]), (&json!("run.completed"), &json!(run.summary.id)));
    assert_eq!(told.url.query(), Some("key=s3cret"));
    notifier.shutdown().await;
    assert_eq!(requests(&receiver).await.len(), 1, "nobody wants to hear of the other run, or that this one waits");
    let entries = json!(world.told(EntryKind::RunCompleted).await).to_string();
    assert!(!entries.contains("s3cret"), "the URL is in no entry");
}
