//! Gated calls of agents.

use super::*;

const AGENT: &str = r#"
id: shop
agents:
  clerk: { model: demo/clerk, tools: [look, delete_order, refund, note, wait], max_turns: 4 }
tools:
  look: { http: { url: "https://example.com/look" }, idempotent: true }
  delete_order:
    http: { url: "https://example.com/delete" }
    parameters: { type: object, required: [order], properties: { order: { type: integer } } }
  refund:
    description: Pay back
    http: { url: "https://example.com/refund" }
    parameters: { type: object, required: [amount], properties: { amount: { type: number } } }
  note: { builtin: set_state }
  wait: { builtin: sleep }
nodes:
  serve: { agent: clerk, prompt: Serve., write_keys: [serve, mood], failure: { retries: 1, initial: 10s, backoff: fixed } }
gates:
  before_tool:
    "delete_*": { severity: high, consequences: [The order is gone.] }
    refund: { when: "arguments.amount > 10.0", reversible: false, allowed_decisions: [approve, edit] }
"#;

fn results(play: &Play) -> Vec<Value> {
    let tool = |message| match message {
        Message::Tool { content, .. } => Some(content),
        _ => None,
    };
    play.heard("serve").into_iter().filter_map(tool).collect()
}

#[test]
fn an_edit_names_no_state_key_that_may_not_be_written() {
    let gated = AGENT.replace("    refund: { when", "    note: true\n    refund: { when");
    let mut play = Play::start(&gated, json!({}));
    play.model("serve", calls([("note", json!({ "key": "mood", "value": 1 }))]));
    let review = play.review();
    let edit = |key: &str| {
        let arguments = object(json!({ "key": key, "value": 2 }));
        request(&review, answer_actions([("c1-1", ActionDecision::Edit { arguments })]))
    };
    let refused = play.try_decide(review.id, &ana(), edit("order")).unwrap_err();
    let place = "/verdict/decisions/c1-1/arguments".to_owned();
    assert_eq!(mistakes(refused), [(place, "invalid".to_owned())]);
    play.try_decide(review.id, &ana(), edit("mood")).unwrap();
    assert_eq!(play.key("mood"), 2);
}

#[test]
fn gated_calls_of_a_turn_are_one_review_and_the_others_run_with_those_that_were_approved() {
    let mut play = Play::start(AGENT, json!({}));
    play.model(
        "serve",
        calls([
            ("delete_order", json!({ "order": 1 })),
            ("look", json!({})),
            ("refund", json!({ "amount": 20 })),
            ("refund", json!({ "amount": 5 })),
            ("delete_order", json!({ "order": 2 })),
            ("delete_order", json!({ "order": 3 })),
        ]),
    );
    let review = play.review();
    assert!(play.tasks.is_empty(), "calls without a gate wait for those with one");
    let ids: Vec<_> = review.actions.iter().map(|action| action.id.as_str()).collect();
    assert_eq!(ids, ["c1-1", "c1-3", "c1-5", "c1-6"]);
    assert_eq!((review.stakes.severity, review.stakes.reversible), (shared::definition::Severity::High, Some(false)));
    assert_eq!(play.status(), RunStatus::WaitingForHuman);

    let arguments = object(json!({ "amount": 12 }));
    let Verdict::Actions { decisions, .. } = answer_actions([
        ("c1-1", ActionDecision::APPROVE),
        ("c1-3", ActionDecision::Edit { arguments }),
        ("c1-5", ActionDecision::Reject { message: Some("keep it".to_owned()) }),
        ("c1-6", ActionDecision::Respond { message: "gone already".to_owned() }),
    ]) else {
        unreachable!()
    };
    play.decide(Verdict::Actions { decisions, instructions: Some("Be kind.".to_owned()) });
    assert_eq!(play.tasks.len(), 4);
    assert_eq!(play.tool_work(&play.call_task("c1-3")).arguments, object(json!({ "amount": 12 })));

    // The results come in any order; the agent gets them in the order of its calls.
    for call in ["c1-4", "c1-1", "c1-3", "c1-2"] {
        let task = play.call_task(call);
        play.returned(&task, json!(call));
    }
    let told = [
        json!("c1-1"),
        json!("c1-2"),
        json!("c1-3"),
        json!("c1-4"),
        json!("TOOL_PERMISSION_DENIED: keep it"),
        json!("gone already"),
    ];
    assert_eq!(results(&play), told);
    assert_eq!(play.heard("serve").last(), Some(&Message::User { text: "Be kind.".to_owned() }));
    play.model("serve", text("Done."));
    assert_eq!((play.status(), play.key("serve")), (RunStatus::Completed, &json!("Done.")));
}

#[test]
fn free_text_rejects_all_actions() {
    let mut play = Play::start(AGENT, json!({}));
    play.model("serve", calls([("delete_order", json!({ "order": 1 })), ("delete_order", json!({ "order": 2 }))]));
    play.decide(say("Ask the customer first."));
    let denied = json!("TOOL_PERMISSION_DENIED: Ask the customer first.");
    assert_eq!(results(&play), [denied.clone(), denied]);
}

#[test]
fn a_call_that_does_not_fit_is_answered_without_a_review() {
    let mut play = Play::start(AGENT, json!({}));
    play.model(
        "serve",
        calls([
            ("delete_order", json!({ "order": "all" })),
            ("nothing", json!({})),
            ("note", json!({ "key": "secret_plan", "value": 1 })),
            ("note", json!({ "key": "mood", "value": "fine" })),
        ]),
    );
    let results: Vec<_> = results(&play).iter().map(Value::to_string).collect();
    assert!(results[0].contains("TOOL_FAILED: the arguments of `delete_order` are not valid: /order"), "{results:?}");
    assert!(results[1].contains("there is no tool `nothing`"));
    assert!(results[2].contains("`secret_plan` may not be written here"));
    assert_eq!(play.key("mood"), "fine");
    play.model("serve", text("Done."));
    let writes = &play.events.iter().find(|event| event.kind == EntryKind::StepCompleted).unwrap().data["writes"];
    assert_eq!(writes, &json!({ "mood": "fine", "serve": "Done." }));
}

#[test]
fn gates_for_other_reviewers_are_other_reviews() {
    let source = AGENT.replace("{ severity: high, ", "{ severity: high, reviewers: { roles: [boss] }, ");
    let mut play = Play::start(&source, json!({}));
    play.model("serve", calls([("delete_order", json!({ "order": 1 })), ("refund", json!({ "amount": 20 }))]));
    let mut pending: Vec<_> = play.snapshot.reviews.values().cloned().collect();
    pending.sort_by_key(|review| review.title.clone());
    let [delete, refund] = pending.try_into().unwrap();
    play.decide_on(&refund, answer_actions([("c1-2", ActionDecision::APPROVE)]));
    assert!(play.tasks.is_empty(), "all of the turn's gates come first");
    let approve = request(&delete, answer_actions([("c1-1", ActionDecision::APPROVE)]));
    assert_eq!(play.try_decide(delete.id, &ana(), approve.clone()), Err(Refusal::NotFound));
    play.try_decide(delete.id, &person("eva", &["boss"]), approve).unwrap();
    assert_eq!(play.tasks.len(), 2);
}

#[test]
fn a_lost_call_that_may_not_be_repeated_asks_a_person() {
    let mut play = Play::start(AGENT, json!({}));
    play.model("serve", calls([("refund", json!({ "amount": 5 })), ("refund", json!({ "amount": 6 }))]));
    let first = play.call_task("c1-1");
    assert!(!first.repeatable);
    let key = play.tool_work(&first).idempotency_key;
    play.apply(Input::TaskLost { task: first.id, attempt: 1, again: false });
    assert_eq!(play.status(), RunStatus::Running, "the other call still runs");
    let second = play.call_task("c1-2");
    play.apply(Input::TaskLost { task: second.id, attempt: 1, again: false });
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    let reviews: BTreeMap<_, _> =
        play.snapshot.reviews.values().map(|review| (review.actions[0].id.clone(), review.clone())).collect();
    play.decide_on(&reviews["c1-1"], answer_actions([("c1-1", ActionDecision::APPROVE)]));
    let again = play.call_task("c1-1");
    assert_eq!(play.tool_work(&again).idempotency_key, key, "the same call keeps its key");
    let done = ActionDecision::Respond { message: "it was paid".to_owned() };
    play.decide_on(&reviews["c1-2"], answer_actions([("c1-2", done)]));
    play.returned(&again, json!("paid"));
    assert_eq!(results(&play), [json!("paid"), json!("it was paid")]);
}

#[test]
fn a_sleep_holds_no_worker_and_ends_at_its_time() {
    let mut play = Play::start(AGENT, json!({}));
    play.model("serve", calls([("wait", json!({ "duration": "1h" }))]));
    let task = play.call_task("c1-1");
    assert_eq!((task.kind.is_call(), task.due_at), (false, play.now.after(Duration::from_hours(1))));
    play.apply(Input::Due { task: task.id });
    assert_eq!(results(&play), [json!({ "slept": "1h" })]);
}

#[test]
fn a_failed_call_is_tried_again_under_its_task_and_then_told_to_the_agent() {
    let mut play = Play::start(AGENT, json!({}));
    play.model("serve", calls([("look", json!({}))]));
    let task = play.call_task("c1-1");
    play.failed(&task, FlowCode::ToolFailed, true);
    let again = play.call_task("c1-1");
    assert_eq!((again.id, again.due_at), (task.id, play.now.after(Duration::from_secs(10))));
    assert_eq!(play.kinds(), ["step.retrying"]);
    assert_eq!(
        shown_run(Some(&play.flow), &play.snapshot.state).positions[0].activity,
        shared::run::Activity::Retrying
    );
    play.failed(&again, FlowCode::ToolFailed, true);
    assert_eq!(results(&play), [json!("TOOL_FAILED: no luck")]);
    assert_eq!((play.steps[0].tries, play.steps[0].status), (2, StepStatus::Running));
}

#[test]
fn a_gate_whose_condition_cannot_be_evaluated_is_closed() {
    let source = AGENT.replace("arguments.amount > 10.0", "arguments.amount > 'ten'");
    let mut play = Play::start(&source, json!({}));
    play.model("serve", calls([("refund", json!({ "amount": 1 }))]));
    assert_eq!(play.review().actions[0].name, "refund");
}

#[test]
fn a_gate_whose_condition_meets_a_missing_field_or_an_error_stays_closed() {
    let held = |when: &str, arguments: Value| {
        let source = AGENT.replace("arguments.amount > 10.0", when).replace("required: [amount], ", "");
        let mut play = Play::start(&source, json!({}));
        play.model("serve", calls([("refund", arguments)]));
        match play.snapshot.reviews.len() {
            0 => false,
            _ => play.review().actions.len() == 1,
        }
    };
    let missing = || json!({ "to": "eve", "sum": 5000 });
    assert!(held("arguments.amount > 10.0", missing()), "a missing argument");
    assert!(held("!(arguments.amount <= 10.0)", missing()));
    assert!(held("context.metadata.tier != 'trusted'", missing()), "metadata that nobody gave");
    assert!(held("tier == 'x'", missing()), "a state key that is not written yet");
    assert!(held("arguments.amount > 'x'", json!({ "amount": 1 })), "an error");
    assert!(held("[1, 2, 3].map(x, x)[arguments.amount] == 1", json!({ "amount": 7 })), "an index out of bounds");
    let many: Vec<u32> = (0..2000).collect();
    assert!(held("arguments.xs.all(a, arguments.xs.all(b, a + b >= 0))", json!({ "xs": many })), "no answer in time");
    // The condition certainly does not hold: the call runs.
    assert!(!held("arguments.amount > 10.0", json!({ "amount": 5 })));
    assert!(!held("has(arguments.amount) && arguments.amount > 10.0", missing()));
    assert!(!held("arguments.amount > 10.0 && false", missing()));
}

#[test]
fn how_much_is_at_stake_may_follow_from_the_arguments() {
    use shared::definition::{Cost, Severity};
    let play = |amount: i64| {
        let source = r#"
id: refund
input: { type: object, properties: { amount: { type: integer } } }
tools: { refund: { http: { url: "https://example.com" }, parameters: { type: object, properties: { amount: { type: integer } } } } }
nodes: { pay: { tool: refund, arguments: { amount: "{{ input.amount }}" } } }
gates:
  before_tool:
    refund:
      severity: "{% if arguments.amount < 0 %}huge{% elif arguments.amount > 1000 %}critical{% else %}low{% endif %}"
      estimated_cost: { amount: "{{ arguments.amount }}", currency: EUR }
"#;
        Play::start(source, json!({ "amount": amount }))
    };
    for (amount, severity) in [(5_i32, Severity::Low), (2_000, Severity::Critical)] {
        let stakes = play(amount.into()).review().stakes;
        let cost = Cost { amount: amount.into(), currency: "EUR".to_owned() };
        assert_eq!((stakes.severity, stakes.estimated_cost), (severity, Some(cost)));
    }
    let (code, message) = play(-1).error();
    assert_eq!(code, FlowCode::FlowCondition);
    assert!(message.contains("`severity` is rendered as `huge`"), "{message}");
}
