//! States as earlier versions stored them go on under this one.

use super::*;

/// The flow of the fixture.
const FLOW: &str = r#"
id: shop
agents:
  clerk: { model: demo/clerk, tools: [cancel] }
tools:
  cancel:
    http: { url: "https://example.com/orders/{{ arguments.order }}", method: DELETE, headers: { reason: "{{ why }}" } }
    parameters: { type: object, required: [order], properties: { order: { type: integer } } }
input:
  type: object
  properties: { why: { type: string } }
gates:
  before_tool: { cancel: true }
nodes:
  serve: { agent: clerk, prompt: Serve. }
"#;

/// A state as the store reads it.
fn stored(state: &Value) -> RunState {
    let mut state = state.clone();
    assert!(!RunState::is_current(&state.to_string()));
    RunState::upgrade(&mut state);
    serde_json::from_value(state).unwrap()
}

/// A run of format 1, in which a call waits for leave: what it sends was rendered when it was sent.
fn waiting() -> (Compiled, Snapshot, Review) {
    let fixture: Value = serde_json::from_str(include_str!("fixtures/gated_call_format_1.json")).unwrap();
    let state = stored(&fixture["state"]);
    let review: Review = serde_json::from_value(fixture["review"].clone()).unwrap();
    assert_eq!((state.format, fixture.to_string().contains("example.com")), (1, false));
    let reviews = BTreeMap::from([(review.id, review.clone())]);
    (compile(FLOW), Snapshot { state, reviews, grants: Vec::new(), people: None }, review)
}

/// The calls that are made once a person has answered.
fn made(decision: ActionDecision) -> Vec<ToolRequest> {
    let (flow, snapshot, review) = waiting();
    let request = request(&review, answer_actions([("c1-1", decision)]));
    let input = Input::Decide { review: review.id, by: ana(), via: Via::Human, request };
    let moment = Moment { now: snapshot.state.updated_at.after(Duration::from_mins(1)), seed: [7; 16] };
    let transition = apply(&flow, snapshot, input, moment).unwrap();
    assert_eq!((transition.state.format, &transition.refused), (RunState::FORMAT, &None));
    let work = transition.tasks.iter().filter_map(|task| match work(&flow, &transition.state, task) {
        Some(Work::Tool(request)) => Some(*request),
        Some(Work::Model(_)) => None,
        other => panic!("not a call: {other:?}"),
    });
    work.collect()
}

fn sent(call: &ToolRequest) -> Value {
    json!(call.request)
}

#[test]
fn a_call_that_waited_for_leave_in_format_1_is_made_as_it_was_approved() {
    let calls = made(ActionDecision::APPROVE);
    let [call] = &calls[..] else { panic!("one call: {calls:?}") };
    assert_eq!(call.arguments, object(json!({ "order": 7 })));
    let sent = sent(call);
    assert_eq!((&sent["url"], &sent["headers"]["reason"]), (&json!("https://example.com/orders/7"), &json!("doubled")));
}

#[test]
fn a_call_that_waited_for_leave_in_format_1_is_made_as_it_was_edited() {
    let calls = made(ActionDecision::Edit { arguments: object(json!({ "order": 8 })) });
    let [call] = &calls[..] else { panic!("one call: {calls:?}") };
    let sent = sent(call);
    assert_eq!((&sent["url"], &sent["headers"]["reason"]), (&json!("https://example.com/orders/8"), &json!("doubled")));
}

#[test]
fn a_call_that_waited_for_leave_in_format_1_is_not_made_where_it_is_rejected() {
    assert_eq!(made(ActionDecision::Reject { message: None }), []);
}
