//! Edges, joins, visits, parallel branches.

use super::*;

#[test]
fn conditions_choose_the_way_and_missing_fields_are_false() {
    let source = r#"
id: e
input: { type: object, properties: { n: { type: integer, default: 3 } } }
nodes:
  a: { set: { x: "{{ n + 1 }}" }, next: [{ to: b, when: "x > 10" }, { to: c, when: "input.m == 1" }, { to: d, else: true }] }
  b: { set: { big: true } }
  c: { set: { odd: true } }
  d: { set: { small: "{{ run.flow }} {{ visit }}" } }
"#;
    assert_eq!(Play::start(source, json!({})).key("small"), "e 1");
    let both = Play::start(source, json!({ "n": 10, "m": 1 }));
    assert_eq!((both.key("big"), both.key("odd"), both.key("small")), (&json!(true), &json!(true), &Value::Null));
    let dead_end = source.replace("{ to: d, else: true }", "{ to: d, when: \"x > 20\" }");
    assert_eq!(Play::start(&dead_end, json!({})).error().0, FlowCode::FlowNoMatchingEdge);
    let broken = source.replace("x > 10", "x > 'ten'");
    assert_eq!(Play::start(&broken, json!({})).error().0, FlowCode::FlowCondition);
}

#[test]
fn a_loop_ends_at_its_limit_or_goes_where_the_node_says() {
    let source =
        "id: l\nnodes:\n  a: { set: { n: \"{{ visit }}\" }, max_visits: 3, next: a }\n  b: { set: { out: true } }\n";
    let play =
        Play::start(&source.replace("next: a", "next: [{ to: a, when: 'true' }, { to: b, else: true }]"), json!({}));
    assert_eq!((play.error().0, play.key("n")), (FlowCode::FlowVisitLimit, &json!(3)));
    let play = Play::start(&source.replace("next: a", "on_visit_limit: b, next: a"), json!({}));
    assert_eq!((play.status(), play.key("out")), (RunStatus::Completed, &json!(true)));
}

#[test]
fn a_run_that_computes_too_much_in_a_row_fails_and_says_so() {
    let source = "id: l\nnodes:\n  a: { set: { n: \"{% for i in range(100) %}{{ i }}{% endfor %}\" }, \
                  max_visits: 10000, next: a }\n";
    let play = work_limit::within(500_000, || Play::start(source, json!({})));
    let (code, message) = play.error();
    assert_eq!(code, FlowCode::FlowCondition);
    assert!(message.contains("too much work together"), "{message}");
    let visits = play.snapshot.state.visits.values().sum::<u32>();
    assert!((2..1_000).contains(&visits), "{visits}");
}

const PARALLEL: &str = r#"
id: p
input: { type: object, properties: { text: { type: string } } }
agents: { a: { model: demo/a } }
nodes:
  fork: { router: {}, next: [one, two, ask] }
  one: { agent: a, prompt: One., next: meet }
  two: { agent: a, prompt: Two., next: meet }
  ask: { human: { prompt: Well?, review_keys: [text, one], edit_keys: [text] }, next: meet }
  meet: { set: { all: "{{ one }} {{ two }} {{ ask }}" }, join: all }
"#;

#[test]
fn branches_go_on_beside_a_pending_review_and_meet_as_one() {
    let mut play = Play::start(PARALLEL, json!({ "text": "hello" }));
    assert_eq!(play.status(), RunStatus::Running);
    let before = play.review();
    play.model("two", text("2"));
    assert_eq!(play.review(), before, "nothing that is shown has changed");
    let stale = request(&before, say("yes"));
    play.model("one", text("1"));
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    assert_eq!(play.kinds(), ["model.answered", "step.completed", "review.updated", "workflow.waiting"]);

    let after = play.review();
    assert_eq!((after.revision, after.version, &after.items[1].value), (2, 2, &json!("1")));
    assert_ne!(after.digest, before.digest);
    let refused = play.try_decide(before.id, &ana(), stale).unwrap_err();
    assert_eq!(refused, Refusal::RevisionChanged(Box::new(after.clone())));
    let mut answer = request(&after, say("yes"));
    answer.edits = object(json!({ "text": "hallo" }));
    play.try_decide(after.id, &ana(), answer).unwrap();
    assert_eq!((play.key("all"), play.key("text")), (&json!("1 2 yes"), &json!("hallo")));
    assert_eq!(play.steps().iter().filter(|(node, ..)| node == "meet").count(), 1);
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn a_run_that_fails_ends_all_its_branches_at_once() {
    let mut play = Play::start(PARALLEL, json!({ "text": "hello" }));
    let review = play.review();
    let late = play.task_at("two");
    let task = play.task_at("one");
    play.failed(&task, FlowCode::ModelFailed, false);
    assert_eq!(play.kinds(), ["step.failed", "review.resolved", "run.failed"]);
    assert!(play.tasks.is_empty());
    let resolution = play.past(review.id).resolution.clone().unwrap();
    assert_eq!((resolution.status, resolution.via), (ReviewStatus::Withdrawn, Via::Run));
    assert_eq!(resolution.reason.unwrap(), "the run has failed: MODEL_FAILED: no luck");
    let cancelled: Vec<_> = play.steps().into_iter().filter(|(.., status)| *status == StepStatus::Cancelled).collect();
    assert_eq!(cancelled.len(), 2);
    assert_eq!(play.abandoned.keys().collect::<Vec<_>>(), [&late.id], "what is under way may still be heard");
    let decided = play.try_decide(review.id, &ana(), request(&review, say("x"))).unwrap_err();
    assert!(matches!(decided, Refusal::ReviewResolved(review) if review.status == ReviewStatus::Withdrawn));
}

#[test]
fn a_cancelled_run_says_who_and_why() {
    let mut play = Play::start(PARALLEL, json!({ "text": "hello" }));
    let cancel =
        |name: &str, roles: &[&str]| Input::Cancel { by: person(name, roles), reason: Some("late".to_owned()) };
    assert!(matches!(play.try_apply(cancel("ana", &["reviewer"])), Err(Refusal::Forbidden(_))));
    play.apply(cancel("dev", &[]));
    assert_eq!(play.status(), RunStatus::Cancelled);
    let run = shown_run(Some(&play.flow), &play.snapshot.state);
    assert_eq!((run.cancel_reason.as_deref(), run.positions.len()), (Some("late"), 0));
    assert_eq!(play.try_apply(cancel("dev", &[])), Err(Refusal::RunOver));
}

#[test]
fn two_joins_that_wait_for_each_other_let_the_earliest_go() {
    let source = r#"
id: j
agents: { a: { model: demo/a } }
nodes:
  fork: { router: {}, next: [slow, left] }
  slow: { agent: a, prompt: Slow., next: right }
  left: { set: { l: "{{ visit }}" }, join: all, max_visits: 2, next: [{ to: right, when: "visit == 1" }, { to: end, else: true }] }
  right: { set: { r: "{{ visit }}" }, join: all, max_visits: 2, next: [{ to: left, when: "visit == 1" }, { to: end, else: true }] }
"#;
    let mut play = Play::start(source, json!({}));
    assert_eq!(play.key("l"), &Value::Null, "left waits: slow can still come to it");
    play.model("slow", text("here"));
    assert_eq!((play.status(), play.key("l"), play.key("r")), (RunStatus::Completed, &json!(2), &json!(1)));
}

#[test]
fn a_node_that_may_write_any_key_writes_none_that_another_branch_writes() {
    let source = "
id: any
agents:
  w: { model: demo/w, tools: [note] }
  pair: { model: demo/w, output_schema: { type: object, properties: { left: {}, beside: {} } } }
tools: { note: { builtin: set_state } }
nodes:
  fork: { router: {}, next: [work, beside] }
  work: { agent: w, prompt: Note it., write_keys: ['*'], next: both }
  both: { agent: pair, prompt: And?, write_keys: ['*'] }
  beside: { human: { prompt: Well? } }
";
    let mut play = Play::start(source, json!({}));
    let note = |key: &str| ("note", json!({ "key": key, "value": 1 }));
    play.model("work", calls([note("found"), note("beside"), note("run"), note("work")]));
    let heard = play.heard("work").into_iter().filter_map(|message| match message {
        Message::Tool { content, .. } => Some(content),
        _ => None,
    });
    let written: Vec<_> = heard.map(|result| result.get("written").cloned().unwrap_or_default()).collect();
    assert_eq!(written, [json!("found"), Value::Null, Value::Null, json!("work")]);
    play.model("work", text("Done."));
    assert_eq!(play.key("work"), "Done.", "its answer goes to the key of its name");
    play.model("both", text(r#"{ "left": 2, "beside": 3 }"#));
    assert_eq!((play.key("found"), play.key("left"), play.key("beside")), (&json!(1), &json!(2), &Value::Null));
}
