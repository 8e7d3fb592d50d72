//! States that earlier versions stored continue under this version.

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

/// Upgrades and reads a stored state, as the store does.
fn stored(state: &Value) -> RunState {
    let mut state = state.clone();
    assert!(!RunState::is_current(&state.to_string()));
    RunState::upgrade(&mut state);
    serde_json::from_value(state).unwrap()
}

/// Returns a run of format 1, in which a call waits for approval: requests were rendered only when they were sent.
fn waiting() -> (Compiled, Snapshot, Review) {
    let fixture: Value = serde_json::from_str(include_str!("fixtures/gated_call_format_1.json")).unwrap();
    let state = stored(&fixture["state"]);
    let review: Review = serde_json::from_value(fixture["review"].clone()).unwrap();
    assert_eq!((state.format, fixture.to_string().contains("example.com")), (1, false));
    let reviews = BTreeMap::from([(review.id, review.clone())]);
    (compile(FLOW), Snapshot { state, reviews, grants: Vec::new(), people: None, feedback: Vec::new() }, review)
}

/// Returns the calls that are made once a person has decided.
fn made(decision: ActionDecision) -> Vec<ToolRequest> {
    let (flow, snapshot, review) = waiting();
    let request = request(&review, answer_actions([("c1-1", decision)]));
    let input = Input::decide(review.id, ana(), Via::Human, request);
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

/// Returns the state in format 2: a question stood in the phase that waited for it.
fn in_format_2(state: &RunState) -> Value {
    let mut stored = json!(state);
    stored["format"] = json!(2);
    let questions = stored.as_object_mut().unwrap().remove("questions");
    for question in questions.iter().filter_map(Value::as_array).flatten() {
        let phase = &mut stored["branches"][question["subject"]["branch"].to_string()]["phase"];
        let timer = &question["timer"];
        let asked = json!({ "review": question["review"], "deadline": timer["task"], "warn_at": timer["warn_at"] });
        match (question["asked"]["asked"].as_str(), phase["phase"].as_str()) {
            (Some("judge"), _) => {
                phase["phase"] = json!("agent");
                phase["conversation"] = question["asked"]["conversation"].clone();
                phase["conversation"]["purpose"] = json!({ "verdict": { "handler": question["handler"] } });
            }
            (_, Some("agent")) => phase["conversation"]["asked"] = json!([asked]),
            _ => phase["asked"] = asked,
        }
    }
    stored
}

const ASKING: &str = r#"
id: asking
agents: { clerk: { model: demo/clerk, tools: [cancel] } }
tools: { cancel: { http: { url: "https://x" }, ask_permission: true } }
nodes:
  fork: { router: {}, next: [ask, act, serve] }
  ask: { human: { prompt: Fine?, timeout: 1h } }
  act: { tool: cancel }
  serve: { agent: clerk, prompt: Serve. }
"#;

#[test]
fn what_was_asked_in_format_2_is_still_asked() {
    let mut play = Play::start(ASKING, json!({}));
    play.model("serve", calls([("cancel", json!({})), ("cancel", json!({ "order": 7 }))]));
    assert_eq!(play.snapshot.state.questions.len(), 3);
    let mut expected = play.snapshot.state.clone();
    expected.format = 2;
    assert_eq!(stored(&in_format_2(&play.snapshot.state)), expected);
}

#[test]
fn a_judge_that_was_asked_in_format_2_is_heard() {
    let source = r"
id: judged
nodes:
  ask:
    human:
      prompt: Fine?
      options: [{ id: yes, label: Fine }]
      handlers: [{ judge: { model: demo/judge, criteria: Be kind. } }]
";
    let mut play = Play::start(source, json!({}));
    play.snapshot.state = stored(&in_format_2(&play.snapshot.state));
    // A judge had no time limit then.
    play.tasks.retain(|_, task| task.kind.is_call());
    let verdict = json!({ "approved": true, "confidence": 1, "reasoning": "Because." });
    play.model("ask", text(&verdict.to_string()));
    // The content may have changed since the judge was asked: it decides nothing, and people are asked.
    assert_eq!(play.review().advice[0].verdict, None);
    play.decide(choose("yes"));
    assert_eq!(play.status(), RunStatus::Completed);
}

/// Returns the state in format 4: a review was pending if people were asked, and the advice of handlers was stored
/// twice.
fn in_format_4(state: &RunState) -> Value {
    let mut stored = json!(state);
    stored["format"] = json!(4);
    for question in stored["questions"].as_array_mut().unwrap() {
        let question = question.as_object_mut().unwrap();
        if question.remove("pending").is_some() {
            question.insert("advice".to_owned(), json!([]));
        }
        if let Some(until) = question["asked"].as_object_mut().unwrap().remove("until") {
            question.insert("until".to_owned(), until);
        }
    }
    stored
}

#[test]
fn what_was_asked_in_format_4_is_still_asked_by_whom_it_was_and_as_long() {
    let judge =
        "gates: { before_tool: { cancel: { handlers: [{ judge: { model: demo/judge, criteria: Be kind. } }] } } }";
    let source = ASKING.replace(", ask_permission: true", "") + judge;
    let mut play = Play::start(&source, json!({}));
    play.model("serve", calls([("cancel", json!({}))]));
    let asked = &play.snapshot.state.questions;
    assert_eq!(asked.iter().filter(|question| question.pending).count(), 1);
    assert!(asked.iter().any(|question| question.until().is_some()));
    let mut expected = play.snapshot.state.clone();
    expected.format = 4;
    assert_eq!(stored(&in_format_4(&play.snapshot.state)), expected);
}

/// Returns the state in format 9: the earlier usage of a member of a team was counted together with that of its turn.
fn in_format_9(state: &RunState) -> Value {
    let mut stored = json!(state);
    stored["format"] = json!(9);
    let branches = stored["branches"].clone();
    for branch in stored["branches"].as_object_mut().unwrap().values_mut() {
        let Some(own) = branch.pointer_mut("/phase/conversation") else { continue };
        let team = own["purpose"]["turn"]["team"].to_string();
        let before = &branches[&team]["phase"]["team"]["spent"][own["agent"].as_str().unwrap()];
        own["turns_before"] = before["turns"].clone();
        for name in ["asks", "tokens"] {
            own[name] = json!(own[name].as_u64().unwrap() + before[name].as_u64().unwrap());
        }
        own["cost_usd"] = json!(own["cost_usd"].as_f64().unwrap() + before["cost_usd"].as_f64().unwrap());
    }
    stored
}

#[test]
fn what_a_member_had_used_in_format_9_counts_once() {
    let source = r"
id: team
agents:
  one: { model: demo/1, tools: [which], budget: { tokens: 35 } }
  two: { model: demo/2 }
tools: { which: { builtin: ask_human } }
nodes: { work: { team: { agents: [one, two], lead: two, strategy: debate, rounds: 2, prompt: Work. } } }
";
    let mut play = Play::start(source, json!({}));
    let ask = || calls([("which", json!({ "question": "Which?" }))]);
    play.model("work", ask());
    play.decide(say("That one."));
    play.model("work", text("That one."));
    play.model("work", ask());
    let mut expected = play.snapshot.state.clone();
    expected.format = 9;
    play.snapshot.state = stored(&in_format_9(&play.snapshot.state));
    assert_eq!(play.snapshot.state, expected);
    play.decide(say("The other."));
    play.model("work", text("The other."));
    assert_eq!(play.error(), (FlowCode::BudgetExceeded, "agent `one` used 40 tokens of 35".to_owned()));
}
