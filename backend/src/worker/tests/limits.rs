//! Answers that are too large: their step fails, and the record stays readable.

use async_trait::async_trait;
use serde_json::{Value, json};
use shared::access::Principal;
use shared::api::{AuditQuery, RunQuery};
use shared::error::FlowCode;

use super::*;
use crate::engine::ModelToolCall;
use crate::store::Form;

/// Builds `[[…1…]]` with this depth.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |value, _| json!([value]))
}

/// A tool whose result has this depth.
struct Deep(usize);

#[async_trait]
impl Tool for Deep {
    async fn call(&self, _: &ToolRequest) -> Result<Value, TaskFailure> {
        Ok(nested(self.0))
    }
}

/// A model whose call has arguments of this depth.
struct DeepCall(usize);

#[async_trait]
impl Model for DeepCall {
    async fn call(&self, _: &ModelRequest, _: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        let arguments = json!({ "title": nested(self.0 - 1), "text": "x" });
        let call = ModelToolCall { provider_id: "1".to_owned(), tool: "publish".to_owned(), arguments };
        Ok(ModelAnswer { calls: vec![call], ..ModelAnswer::default() })
    }
}

/// Checks that the lists and every entry of the audit log can be read.
async fn reads_all(house: &House) {
    let admin = Principal::new("boss".parse().unwrap(), ["admin".to_owned()].into());
    house.store.runs(&admin, &RunQuery::default()).await.unwrap();
    house.store.reviews(&admin, &shared::api::ReviewQuery::default()).await.unwrap();
    for form in [Form::Whole, Form::Sealed] {
        let page = house.store.audit(&AuditQuery { limit: Some(200), ..<_>::default() }, form).await.unwrap();
        assert!(page.items.iter().all(|entry| entry.event.kind != shared::log::EntryKind::Unreadable));
    }
}

async fn failed(house: &House, code: FlowCode) {
    let state = house.ended(house.launch().await).await;
    let Some(RunOutcome::Failed { error, .. }) = &state.outcome else { panic!("{:?}", state.outcome) };
    assert_eq!(error.code, code);
    assert!(error.message.contains("nested deeper than 64"), "{error}");
    reads_all(house).await;
}

fn tool_flow() -> Value {
    flow(&json!({ "tool": "publish", "arguments": { "title": "A", "text": "B" } }), true)
}

#[tokio::test]
async fn a_tools_answer_that_is_nested_too_deeply_fails_its_step() {
    for depth in [65, 126, 1_000] {
        let house = House::with(tool_flow()).await;
        let worker = start(house.worker(demo(), Deep(depth)));
        failed(&house, FlowCode::ToolFailed).await;
        worker.stop().await;
    }
    let house = House::with(tool_flow()).await;
    let worker = start(house.worker(demo(), Deep(64)));
    let state = house.ended(house.launch().await).await;
    assert_eq!(state.keys.get("draft"), Some(&nested(64)));
    reads_all(&house).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_models_arguments_that_are_nested_too_deeply_fail_its_step() {
    for depth in [65, 118, 126] {
        let house = House::with(agent_flow()).await;
        let worker = start(house.worker(DeepCall(depth), tools()));
        failed(&house, FlowCode::ModelFailed).await;
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_value_that_grows_with_each_visit_fails_its_step() {
    let flow = json!({
        "id": "test",
        "nodes": {
            "begin": { "set": { "list": 1 }, "next": "wrap" },
            "wrap": { "set": { "list": ["{{ list }}"] }, "max_visits": 200, "next": "again" },
            "again": { "set": { "more": true }, "max_visits": 200, "next": "wrap" },
        },
    });
    let house = House::with(flow).await;
    failed(&house, FlowCode::FlowCondition).await;
}

#[tokio::test]
async fn a_launch_that_does_not_come_over_http_has_the_same_limits() {
    let house = House::with(tool_flow()).await;
    let run = RunId(Moment::of(&*house.clock).ids().uuid());
    let flow = "test".parse().unwrap();
    let input = JsonMap::from_iter([("list".to_owned(), nested(64))]);
    let operation = Operation::launch(run, flow, input);
    let change = Change { by: Some(Actor::of(house.ana.clone())), key: None, operation };
    let refused = house.store.commit(change).await.unwrap_err();
    assert!(matches!(refused, store::CommitError::Refused(engine::Refusal::Invalid(_))), "{refused}");
}
