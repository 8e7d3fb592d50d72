//! Maps: a branch for each item, several reviews in one run, results in the order of the list.

use super::*;

const BATCH: &str = r#"
id: batch
input: { type: object, properties: { claims: { default: [{ n: a, sum: 1 }, { n: b, sum: 2 }, { n: c, sum: 3 }] } } }
nodes:
  each: { map: { over: claims, as: claim, node: check }, write_keys: [answers], next: after }
  check:
    human:
      prompt: "Pay {{ claim.sum }} to {{ claim.n }}?"
      review_keys: [claim]
      edit_keys: [claim]
      options: [{ id: pay, label: Pay }, { id: keep, label: Do not pay }, { id: halt, kind: stop, label: Stop all }]
  after: { set: { paid: "{{ answers | selectattr('option', 'equalto', 'pay') | map(attribute='edits') | list }}" } }
"#;

fn pending(play: &Play) -> Vec<Review> {
    play.snapshot.reviews.values().filter(|review| review.is_pending()).cloned().collect()
}

fn titled(play: &Play, which: &str) -> Review {
    let found = pending(play).into_iter().find(|review| review.title.contains(which));
    found.unwrap_or_else(|| panic!("{which}: {:?}", pending(play)))
}

#[test]
fn each_item_is_asked_about_by_its_own_review_and_the_answers_come_in_the_lists_order() {
    let mut play = Play::start(BATCH, json!({}));
    assert_eq!((play.status(), pending(&play).len()), (RunStatus::WaitingForHuman, 3));
    let second = titled(&play, "(2 of 3)");
    assert_eq!((second.prompt.as_str(), &second.items[0].value), ("Pay 2 to b?", &json!({ "n": "b", "sum": 2 })));
    let parts = || pending(&play).into_iter().filter_map(|review| Some((review.part?.number, review.visit?)));
    assert_eq!(parts().collect::<BTreeSet<_>>(), [(1, 1), (2, 2), (3, 3)].into());
    assert_eq!(Part::again(second.part, 2), None, "the visits of a mapped node are its items");
    // The answers come in another order than the list's, and each is for its own id.
    let third = titled(&play, "(3 of 3)");
    let mut edited = request(&third, choose("pay"));
    edited.edits = object(json!({ "claim": { "n": "c", "sum": 0.5 } }));
    play.try_decide(third.id, &ana(), edited).unwrap();
    assert_eq!(pending(&play).len(), 2);
    let first = titled(&play, "(1 of 3)");
    play.decide_on(&first, choose("pay"));
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    play.decide_on(&second, choose("keep"));
    assert_eq!(play.status(), RunStatus::Completed);
    let answers = play.key("answers").as_array().unwrap().clone();
    let options: Vec<_> = answers.iter().map(|answer| answer["option"].as_str().unwrap()).collect();
    assert_eq!(options, ["pay", "keep", "pay"]);
    assert_eq!(play.key("paid"), &json!([{}, { "claim": { "n": "c", "sum": 0.5 } }]));
    assert_eq!(play.key("claim"), &Value::Null, "the item is no state key");
    assert_eq!(
        play.steps().iter().filter(|(node, _, status)| node == "check" && *status == StepStatus::Completed).count(),
        3
    );
}

#[test]
fn a_stop_in_one_review_ends_the_run_or_leaves_the_map_and_takes_the_other_reviews_back() {
    let mut play = Play::start(BATCH, json!({}));
    let one = titled(&play, "(2 of 3)");
    play.decide_on(&one, choose("halt"));
    assert_eq!((play.error().0, pending(&play).len()), (FlowCode::FlowHumanRejected, 0));

    let leaves = BATCH.replace("      review_keys", "      on_reject: after\n      review_keys").replace(
        "{{ answers | selectattr('option', 'equalto', 'pay') | map(attribute='edits') | list }}",
        "{{ decisions.check.option }}",
    );
    let mut play = Play::start(&leaves, json!({}));
    let one = titled(&play, "(2 of 3)");
    play.decide_on(&one, choose("halt"));
    assert_eq!(
        (play.status(), play.key("paid"), play.key("answers")),
        (RunStatus::Completed, &json!("halt"), &Value::Null)
    );
    let withdrawn = play.snapshot.reviews.values().filter(|review| review.status == ReviewStatus::Withdrawn).count();
    assert_eq!(withdrawn, 2);
}

#[test]
fn no_items_need_nobody_and_what_is_no_list_or_too_long_says_so() {
    let empty = Play::start(BATCH, json!({ "claims": [] }));
    assert_eq!((empty.status(), empty.key("answers")), (RunStatus::Completed, &json!([])));
    let (code, message) = Play::start(BATCH, json!({ "claims": "x" })).error();
    assert_eq!((code, message.as_str()), (FlowCode::FlowCondition, "`claims` is of type string; a map needs a list"));
    let many: Vec<_> = (0..201).collect();
    let (_, message) = Play::start(BATCH, json!({ "claims": many })).error();
    assert_eq!(message, "`claims` has 201 items; a map takes at most 200: split the list");
    let most: Vec<_> = (0..200).map(|n| json!({ "n": n, "sum": n })).collect();
    assert_eq!(pending(&Play::start(BATCH, json!({ "claims": most }))).len(), 200);
}

const CALLS: &str = r#"
id: calls
input: { type: object, properties: { names: { default: [x, y, z] } } }
agents: { a: { model: demo/a } }
tools: { send: { http: { url: "https://x" }, idempotent: true } }
nodes:
  each: { map: { over: names, as: one, node: send }, failure: { then: { goto: sorry } }, next: ask }
  send: { tool: send, arguments: { to: "{{ one }}", again: "{{ correction | default('') }}" } }
  ask: { human: { prompt: Fine?, review_keys: [each], options: [{ id: ok, label: OK }, { id: no, kind: correct, label: No, message: Louder }] }, corrects_here }
  sorry: { set: { failed: true } }
gates: { before_tool: { send: { when: "arguments.to == 'y'" } } }
"#;

fn calls_play() -> Play {
    Play::start(&CALLS.replace(" }, corrects_here }", " } }"), json!({}))
}

fn tasks_of(play: &Play) -> Vec<Task> {
    play.tasks.values().filter(|task| task.kind.is_call()).cloned().collect()
}

#[test]
fn calls_of_items_are_gated_and_made_one_by_one_each_with_its_own_key() {
    let mut play = calls_play();
    assert_eq!((tasks_of(&play).len(), play.status()), (2, RunStatus::Running), "the others go on beside the gate");
    let gate = play.review();
    assert_eq!((gate.title.as_str(), &gate.actions[0].arguments["to"]), ("send: y (2 of 3)", &json!("y")));
    play.decide_on(&gate, answer_actions([("c1-1", ActionDecision::APPROVE)]));
    let mut keys = BTreeSet::new();
    let mut tasks = tasks_of(&play);
    tasks.reverse();
    for task in tasks {
        let work = play.tool_work(&task);
        keys.insert(work.idempotency_key.clone());
        play.returned(&task, json!(format!("to {}", work.arguments["to"].as_str().unwrap())));
    }
    assert_eq!(keys.len(), 3);
    assert_eq!(play.key("each"), &json!(["to x", "to y", "to z"]));
    // A correction after the map runs it again, and each item sees the correction.
    let ask = play.review();
    play.decide_on(&ask, choose("no"));
    let work = play.tool_work(&tasks_of(&play)[0]);
    assert_eq!(work.arguments["again"], "Louder");
}

#[test]
fn an_item_that_fails_fails_the_map_and_late_results_of_the_others_are_recorded() {
    let mut play = calls_play();
    let [first, other] = tasks_of(&play).try_into().unwrap();
    play.failed(&first, FlowCode::ToolFailed, false);
    assert_eq!((play.status(), play.key("failed")), (RunStatus::Completed, &json!(true)));
    assert_eq!(pending(&play).len(), 0);
    play.returned(&other, json!("late"));
    assert_eq!(play.kinds(), ["tool.executed"]);
    assert_eq!(play.events[0].data["late"], true);

    // Also while the run goes on.
    let waits = CALLS
        .replace(" }, corrects_here }", " } }")
        .replace("sorry: { set: { failed: true } }", "sorry: { human: { prompt: What now? } }");
    let mut play = Play::start(&waits, json!({}));
    let [first, other] = tasks_of(&play).try_into().unwrap();
    play.failed(&first, FlowCode::ToolFailed, false);
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    play.returned(&other, json!("late"));
    assert_eq!((play.events[0].kind.as_str(), &play.events[0].data["late"]), ("tool.executed", &json!(true)));
    play.decide(say("go on"));
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn an_agent_answers_for_each_item_and_sees_only_its_own() {
    let source = "id: a\ninput: { type: object, properties: { texts: { default: [one, two] } } }\nagents: { a: { model: demo/a } }\n\
        nodes:\n  each: { map: { over: texts, as: text, node: read } }\n  read: { agent: a }\n";
    let mut play = Play::start(source, json!({}));
    for task in tasks_of(&play) {
        let Some(Work::Model(request)) = work(&play.flow, &play.snapshot.state, &task) else { panic!("{task:?}") };
        let [Message::User { text: prompt }] = &request.messages[..] else { panic!("{request:?}") };
        let answer = text(&format!("read {prompt}"));
        play.apply(Input::ModelAnswered { task: task.id, attempt: 1, answer });
    }
    assert_eq!(play.key("each"), &json!(["read \"one\"", "read \"two\""]));
    assert_eq!(play.key("read"), &Value::Null);
}
