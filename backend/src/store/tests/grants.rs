//! Grants on both databases: they are given and used in the commits to which they belong.

use serde_json::json;
use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Verdict, Via};
use shared::grant::{GrantScope, Remember};
use shared::review::Review;
use shared::run::{Run, RunStatus};

use super::support::{World, actor, new_run, on_both, on_review, person};
use crate::engine::Input;
use crate::store::{Change, Committed, NewFlow, Operation};

on_both! {
    a_grant_is_there_for_the_next_call_and_for_other_runs,
}

/// Saves a flow that makes two gated calls, one after the other.
async fn save(world: &World) {
    let note = |value: &str, next: &str| json!({ "tool": "note", "arguments": { "key": "done", "value": value }, "write_keys": ["done"], "next": next });
    let flow = json!({
        "id": "notes",
        "tools": { "note": { "builtin": "set_state", "ask_permission": true } },
        "nodes": { "one": note("a", "two"), "two": note("b", "end") },
    });
    let flow = serde_json::from_value(flow).expect("the flow is well-formed");
    let new = NewFlow { flow, source: String::new(), digest: "sha256:2".to_owned() };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
}

async fn launch(world: &World) -> Run {
    let operation = Operation::launch(new_run(), "notes".parse().expect("an id"), JsonMap::new());
    match world.store.commit(Change { by: Some(actor("dev")), key: None, operation }).await.expect("it starts") {
        Committed::Run { run } => *run,
        other => panic!("{other:?}"),
    }
}

fn approve(review: &Review, scope: GrantScope) -> Change {
    let remember = Some(Remember { scope, for_ms: None, arguments: Vec::new() });
    let decisions = [("c1-1".to_owned(), ActionDecision::Approve { remember })].into();
    let request = DecisionRequest {
        revision: review.revision,
        digest: review.digest.clone(),
        verdict: Verdict::Actions { decisions, instructions: None },
        edits: JsonMap::new(),
        comment: None,
        metadata: JsonMap::new(),
    };
    on_review(review.id, "ana", Input::decide(review.id, person("ana"), Via::Human, request))
}

async fn a_grant_is_there_for_the_next_call_and_for_other_runs(world: World) {
    save(&world).await;
    let first = launch(&world).await.summary.id;
    world.store.commit(approve(&world.review_of(first).await, GrantScope::Run)).await.expect("she approves");
    let state = world.store.run(first).await.expect("reads").expect("is there");
    assert_eq!(crate::engine::summary(&state).status, RunStatus::Completed);
    assert_eq!(world.store.grants(None).await.expect("reads"), [], "one of a run ends with it");

    let second = launch(&world).await.summary.id;
    world.store.commit(approve(&world.review_of(second).await, GrantScope::Flow)).await.expect("she approves");
    let grants = world.store.grants(None).await.expect("reads");
    assert_eq!(grants.len(), 1);
    assert_eq!(grants[0].expires_at.since(grants[0].given_at), shared::grant::DEFAULT_LIFETIME);
    assert_eq!(launch(&world).await.summary.status, RunStatus::Completed);
    world.clock.advance(shared::grant::DEFAULT_LIFETIME);
    assert_eq!(world.store.grants(None).await.expect("reads"), []);
    assert_eq!(launch(&world).await.summary.status, RunStatus::WaitingForHuman);
}
