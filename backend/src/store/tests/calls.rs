//! Flows that call flows: a version of the caller always calls the same version.

use serde_json::json;
use shared::api::FlowVersion;
use shared::definition::{Flow, NodeKind};
use shared::id::RunId;
use shared::review::Review;

use super::support::{World, actor, decide, new_run, on_both};
use crate::store::{Change, CommitError, Committed, NewFlow, Operation, Store};

on_both! { a_version_of_a_flow_always_calls_the_same_version_of_another }

async fn save(store: &Store, flow: serde_json::Value) -> Result<FlowVersion, CommitError> {
    let source = flow.to_string();
    let flow: Flow = serde_json::from_value(flow).expect("a flow");
    let digest = crate::flow::digest(&source);
    let new = NewFlow { flow, source, digest };
    match store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await? {
        Committed::Flow { flow } => Ok(*flow),
        other => panic!("{other:?}"),
    }
}

fn inner(prompt: &str) -> serde_json::Value {
    json!({ "id": "inner", "nodes": { "ask": { "human": { "prompt": prompt, "options": [{ "id": "yes", "label": "Yes" }] } } } })
}

fn outer() -> serde_json::Value {
    json!({ "id": "outer", "nodes": { "call": { "flow": { "id": "inner" }, "next": "done" }, "done": { "set": { "over": true } } } })
}

fn called(flow: &FlowVersion) -> Option<u32> {
    let definition = flow.definition.as_deref().expect("a definition");
    match &definition.nodes.values().next().expect("a node").kind {
        NodeKind::Flow(call) => call.version,
        other => panic!("{other:?}"),
    }
}

async fn launched(world: &World, store: &Store, version: Option<u32>) -> (RunId, Review) {
    let run = new_run();
    let (flow, input) = ("outer".parse().expect("an id"), shared::JsonMap::new());
    let launch = Operation::Launch { run, flow, version, input, context: Box::default(), callback_url: None };
    store.commit(Change { by: Some(actor("dev")), key: None, operation: launch }).await.expect("launched");
    (run, world.review_of(run).await)
}

async fn a_version_of_a_flow_always_calls_the_same_version_of_another(world: World) {
    let store = &world.store;
    match save(store, outer()).await {
        Err(CommitError::Refused(crate::engine::Refusal::Invalid(mistakes))) => {
            assert_eq!(mistakes[0].path, "/nodes/call/flow/id");
            assert!(mistakes[0].message.contains("there is no flow `inner`"), "{mistakes:?}");
        }
        other => panic!("{other:?}"),
    }
    save(store, inner("First?")).await.expect("saved");
    let one = save(store, outer()).await.expect("saved");
    assert_eq!((one.version, called(&one)), (1, Some(1)));
    assert_eq!(save(store, outer()).await.expect("the same").version, 1, "nothing new is called");
    let (waiting, asked) = launched(&world, store, None).await;
    assert_eq!((asked.prompt.as_str(), asked.node.as_deref()), ("First?", Some("call:1/ask")));

    save(store, inner("Second?")).await.expect("saved");
    let (_, asked) = launched(&world, store, None).await;
    assert_eq!(asked.prompt, "First?", "what is called changes with the caller only");
    let two = save(store, outer()).await.expect("saved");
    assert_eq!((two.version, called(&two)), (2, Some(2)));

    // Another process has to read everything from the database, even in the middle of a run.
    let other = world.another().await;
    let (_, asked) = launched(&world, &other, None).await;
    assert_eq!(asked.prompt, "Second?");
    let (_, asked) = launched(&world, &other, Some(1)).await;
    assert_eq!(asked.prompt, "First?");
    let review = world.review_of(waiting).await;
    other.commit(decide(&review, "ana", "yes")).await.expect("decided");
    let run = store.run(waiting).await.expect("reads").expect("a run");
    let status = crate::engine::summary(&run).status;
    assert_eq!((status.as_str(), &run.keys["over"]), ("completed", &json!(true)));
}
