//! More settings and cases: settings of gates, gated calls among others, counts and kinds of decisions, agents called
//! by agents.

use super::teams::{results, says, task_of};
use super::*;
use shared::definition::ActionKind;
use shared::review::{Outcome, ReviewKind};

const FILES: &str = r#"
id: files
agents: { clerk: { model: demo/clerk, tools: [read, write, wipe] } }
tools:
  read: { http: { url: "https://example.com/read" }, idempotent: true }
  write: { http: { url: "https://example.com/write" } }
  wipe: { http: { url: "https://example.com/wipe" }, parameters: { properties: { path: { type: string } } } }
gates: { before_tool: GATES }
nodes: { serve: { agent: clerk, prompt: Serve. } }
"#;

/// Reading is not gated.
const GATES: &str =
    "{ write: { allowed_decisions: [approve, edit, reject] }, wipe: { allowed_decisions: [approve, reject] } }";

fn start(gates: &str) -> Play {
    Play::start(&FILES.replace("GATES", gates), json!({}))
}

/// Returns calls of these tools, without arguments.
fn calls_of(tools: &[&str]) -> ModelAnswer {
    let call = |(index, tool): (usize, &&str)| ModelToolCall {
        provider_id: format!("p{index}"),
        tool: (*tool).to_owned(),
        arguments: json!({}),
    };
    ModelAnswer { calls: tools.iter().enumerate().map(call).collect(), ..text("") }
}

/// Approves these actions.
fn approve(ids: &[&str]) -> Verdict {
    let decisions = ids.iter().map(|id| ((*id).to_owned(), ActionDecision::APPROVE)).collect();
    Verdict::Actions { decisions, instructions: None }
}

fn ids(review: &Review) -> Vec<&str> {
    review.actions.iter().map(|action| action.id.as_str()).collect()
}

fn place(of: &str, code: &str) -> (String, String) {
    (of.to_owned(), code.to_owned())
}

fn refused(play: &mut Play, review: &Review, verdict: Verdict) -> Vec<(String, String)> {
    mistakes(play.try_decide(review.id, &ana(), request(review, verdict)).unwrap_err())
}

#[test]
fn a_gate_takes_all_answers_or_those_that_it_names_and_rejecting_is_always_one() {
    use ActionKind::{Approve, Edit, Reject, Respond};
    let cases: [(&str, &[ActionKind]); 5] = [
        ("{ write: true }", ActionKind::ALL),
        ("{ write: { severity: high } }", ActionKind::ALL),
        ("{ write: { allowed_decisions: [approve, edit, reject] } }", &[Approve, Edit, Reject]),
        ("{ write: { allowed_decisions: [approve] } }", &[Approve, Reject]),
        ("{ write: { allowed_decisions: [respond] } }", &[Reject, Respond]),
    ];
    for (gates, allowed) in cases {
        let mut play = start(gates);
        says(&mut play, "clerk", calls_of(&["write"]));
        assert_eq!(play.review().actions[0].allowed_decisions, allowed, "{gates}");
    }
    for gates in ["{}", "{ write: false }", "{ '*': true, write: false }", "{ wipe: true }"] {
        let mut play = start(gates);
        says(&mut play, "clerk", calls_of(&["write"]));
        assert_eq!((play.snapshot.reviews.len(), play.tasks.len()), (0, 1), "{gates}");
    }
}

#[test]
fn a_tool_that_asks_for_leave_takes_the_answers_that_it_names() {
    let asking = |answers: &str| {
        FILES.replace("GATES", "{}").replace("/write\" }", &format!("/write\" }}, ask_permission: {answers}"))
    };
    let mut play = Play::start(&asking("{ allowed_decisions: [approve, reject] }"), json!({}));
    says(&mut play, "clerk", calls_of(&["write"]));
    assert_eq!(play.review().actions[0].allowed_decisions, [ActionKind::Approve, ActionKind::Reject]);

    let gate = FILES.replace("GATES", "{ write: { allowed_decisions: [] } }");
    for (source, path) in [
        (gate, "/gates/before_tool/write/allowed_decisions"),
        (asking("{ allowed_decisions: [] }"), "/tools/write/ask_permission/allowed_decisions"),
    ] {
        let errors = flow::check(&source).errors;
        let found: Vec<_> = errors.iter().map(|error| (error.path.as_str(), error.code.as_str())).collect();
        assert_eq!(found, [(path, "FLOW_INVALID")], "{errors:?}");
    }
}

#[test]
fn calls_without_a_gate_run_with_those_that_were_approved_wherever_they_stand() {
    let cases: [(&[&str], &[&str]); 4] = [
        (&["wipe", "read", "write"], &["c1-1", "c1-3"]),
        (&["read", "wipe"], &["c1-2"]),
        (&["read", "write", "read"], &["c1-2"]),
        (&["read", "write", "read", "wipe", "read"], &["c1-2", "c1-4"]),
    ];
    for (made, asked) in cases {
        let mut play = start(GATES);
        says(&mut play, "clerk", calls_of(made));
        let review = play.review();
        assert_eq!((ids(&review), play.tasks.len()), (asked.to_vec(), 0), "nothing runs yet: {made:?}");
        play.decide_on(&review, approve(asked));
        assert_eq!(play.tasks.len(), made.len(), "{made:?}");
        // The last call returns first; the agent gets the results in the order of its calls.
        for index in (1..=made.len()).rev() {
            let task = play.call_task(&format!("c1-{index}"));
            play.returned(&task, json!(index));
        }
        let heard: Vec<_> = (1..=made.len()).map(Value::from).collect();
        assert_eq!(results(&play, "clerk"), heard, "{made:?}");
    }
}

#[test]
fn there_is_one_decision_for_each_action_and_none_for_a_call_that_was_not_asked_about() {
    let mut play = start(GATES);
    says(&mut play, "clerk", calls_of(&["read", "write", "wipe"]));
    let review = play.review();
    let before = play.snapshot.clone();
    let at = |id: &str, code: &str| place(&format!("/verdict/decisions/{id}"), code);
    for (given, wrong) in [
        (&[][..], vec![at("c1-2", "required"), at("c1-3", "required")]),
        (&["c1-2"], vec![at("c1-3", "required")]),
        (&["c1-1", "c1-2", "c1-3"], vec![at("c1-1", "unknown")]),
    ] {
        assert_eq!(refused(&mut play, &review, approve(given)), wrong, "{given:?}");
        assert_eq!(play.snapshot, before);
    }
    play.decide_on(&review, approve(&["c1-2", "c1-3"]));
}

#[test]
fn a_decision_of_a_kind_that_is_not_allowed_is_refused_with_its_place() {
    let mut play = start(GATES);
    says(&mut play, "clerk", calls_of(&["write", "wipe"]));
    let review = play.review();
    let edit = || ActionDecision::Edit { arguments: object(json!({ "path": "b" })) };
    let at = |id: &str| place(&format!("/verdict/decisions/{id}/type"), "not_allowed");
    let both = answer_actions([("c1-1", ActionDecision::Respond { message: "x".to_owned() }), ("c1-2", edit())]);
    assert_eq!(refused(&mut play, &review, both), [at("c1-1"), at("c1-2")]);
    assert!(play.review().is_pending() && play.tasks.is_empty());

    let reject = ActionDecision::Reject { message: None };
    play.decide_on(&review, answer_actions([("c1-1", edit()), ("c1-2", reject)]));
    let task = play.call_task("c1-1");
    play.returned(&task, json!("written"));
    assert_eq!(results(&play, "clerk"), ["written", "TOOL_PERMISSION_DENIED: a reviewer did not allow `wipe`"]);
}

#[test]
fn what_does_not_say_what_is_decided_is_no_decision() {
    let right = r#"{"type": "approve"} {"type": "reject"} {"type": "edit", "arguments": {}}
        {"type": "respond", "message": "x"}"#;
    let wrong = r#"{} {"arguments": {}} {"type": "perhaps"} {"type": null} {"type": "edit"} {"type": "respond"}
        {"type": "edit", "arguments": "all"} {"type": "edit", "arguments": []} {"type": "approve", "arguments": {}}
        "approve" true null"#;
    for (all, is_one) in [(right, true), (wrong, false)] {
        for said in serde_json::Deserializer::from_str(all).into_iter::<Value>().map(Result::unwrap) {
            assert_eq!(serde_json::from_value::<ActionDecision>(said.clone()).is_ok(), is_one, "{said}");
        }
    }
}

#[test]
fn what_nobody_was_asked_cannot_be_decided_and_what_was_decided_not_again() {
    let mut play = start(GATES);
    let nothing = "01900000-0000-7000-8000-0000000000ff".parse().unwrap();
    says(&mut play, "clerk", calls_of(&["read"]));
    let task = play.call_task("c1-1");
    play.returned(&task, json!("read"));
    says(&mut play, "clerk", calls_of(&["write"]));
    let review = play.review();
    assert_eq!(ids(&review), ["c2-1"], "only calls of this turn");
    let again = request(&review, approve(&["c2-1"]));
    assert_eq!(play.try_decide(nothing, &ana(), again.clone()), Err(Refusal::NotFound));
    play.decide_on(&review, approve(&["c2-1"]));
    let late = play.try_decide(review.id, &ana(), again).unwrap_err();
    assert!(matches!(late, Refusal::ReviewResolved(_)), "{late:?}");
    assert_eq!(play.tasks.len(), 1, "it runs once");
}

#[test]
fn only_calls_that_could_run_are_asked_about_and_the_others_stay_refused() {
    let mut play = start(GATES);
    let wipe = |path: Value| ("wipe", json!({ "path": path }));
    let made = [wipe(json!("a")), wipe(json!(5)), ("read", json!({})), ("burn", json!({}))];
    says(&mut play, "clerk", calls(made));
    let review = play.review();
    assert_eq!(ids(&review), ["c1-1"]);
    let wrong = refused(&mut play, &review, approve(&["c1-1", "c1-2"]));
    assert_eq!(wrong, [place("/verdict/decisions/c1-2", "unknown")]);
    play.decide_on(&review, approve(&["c1-1"]));
    assert_eq!(play.tasks.len(), 2);
    for call in ["c1-1", "c1-3"] {
        let task = play.call_task(call);
        play.returned(&task, json!(call));
    }
    let told = results(&play, "clerk");
    assert_eq!((&told[0], &told[2]), (&json!("c1-1"), &json!("c1-3")));
    let why = |index: usize| told[index].as_str().unwrap();
    assert!(why(1).starts_with("TOOL_FAILED: the arguments of `wipe` are not valid: /path"), "{told:?}");
    assert!(why(3).starts_with("TOOL_FAILED: there is no tool `burn`"), "{told:?}");
}

const DESK: &str = r#"
id: desk
agents:
  desk: { model: demo/desk, tools: [ask_expert, ask_scout] }
  expert: { model: demo/expert, tools: [write, wipe, question, stuck] }
  scout: { model: demo/scout, tools: [write] }
tools:
  ask_expert: { agent: expert }
  ask_scout: { agent: scout }
  write: { http: { url: "https://example.com/write" }, ask_permission: true }
  wipe: { http: { url: "https://example.com/wipe" }, ask_permission: true }
  question: { builtin: ask_human }
  stuck: { builtin: escalate }
nodes: { serve: { agent: desk, prompt: Serve. } }
"#;

/// Starts a run in which the desk delegates to the expert, who makes these calls.
fn delegated(made: ModelAnswer) -> Play {
    let mut play = Play::start(DESK, json!({}));
    says(&mut play, "desk", calls([("ask_expert", json!({ "task": "Tidy up." }))]));
    says(&mut play, "expert", made);
    play
}

#[test]
fn an_agent_that_works_for_another_is_asked_about_as_often_as_it_calls() {
    let mut play = delegated(calls([("write", json!({ "path": "a" }))]));
    let first = play.review();
    assert_eq!((ids(&first), first.actions[0].agent.as_deref()), (vec!["c1-1-c1-1"], Some("expert")));
    let arguments = object(json!({ "path": "b" }));
    let edit = ActionDecision::Edit { arguments: arguments.clone() };
    play.decide_on(&first, answer_actions([("c1-1-c1-1", edit)]));
    let task = play.call_task("c1-1-c1-1");
    assert_eq!(play.tool_work(&task).arguments, arguments);
    play.returned(&task, json!("written"));

    says(&mut play, "expert", calls([("wipe", json!({ "path": "c" }))]));
    let second = play.review();
    assert_eq!((ids(&second), play.status()), (vec!["c1-1-c2-1"], RunStatus::WaitingForHuman));
    play.decide_on(&second, approve(&["c1-1-c2-1"]));
    let task = play.call_task("c1-1-c2-1");
    play.returned(&task, json!("wiped"));
    assert_eq!(results(&play, "expert"), ["written", "wiped"]);
    says(&mut play, "expert", text("Tidy."));
    assert_eq!(results(&play, "desk"), ["Tidy."], "who waits hears of the answer only");
}

#[test]
fn agents_that_work_side_by_side_are_asked_about_each_by_itself() {
    let mut play = Play::start(DESK, json!({}));
    let task = json!({ "task": "Write it down." });
    says(&mut play, "desk", calls([("ask_expert", task.clone()), ("ask_scout", task)]));
    for agent in ["expert", "scout"] {
        says(&mut play, agent, calls([("write", json!({ "path": agent }))]));
    }
    let about = |id: &str| play.snapshot.reviews.values().find(|review| ids(review) == [id]).unwrap().clone();
    let (expert, scout) = (about("c1-1-c1-1"), about("c1-2-c1-1"));
    let reject = ActionDecision::Reject { message: Some("Not yours.".to_owned()) };
    play.decide_on(&scout, answer_actions([("c1-2-c1-1", reject)]));
    assert_eq!(results(&play, "scout"), ["TOOL_PERMISSION_DENIED: Not yours."]);
    says(&mut play, "scout", text("I may not."));
    assert_eq!((play.review().id, play.status()), (expert.id, RunStatus::WaitingForHuman));
    play.decide_on(&expert, approve(&["c1-1-c1-1"]));
    let task = play.call_task("c1-1-c1-1");
    play.returned(&task, json!("written"));
    says(&mut play, "expert", text("Written."));
    assert_eq!(results(&play, "desk"), ["Written.", "I may not."]);
}

#[test]
fn a_cancelled_run_takes_back_what_is_asked_of_an_agent_that_works_for_another() {
    let mut play = delegated(calls([("write", json!({ "path": "a" }))]));
    let review = play.review();
    play.apply(Input::Cancel { by: person("dev", &[]), reason: None });
    assert_eq!(play.past(review.id).resolution.as_ref().unwrap().outcome, Outcome::Withdrawn);
    assert!(play.tasks.is_empty() && play.snapshot.state.branches.is_empty());
    assert_eq!(play.steps(), [("serve".to_owned(), 1, StepStatus::Cancelled)]);
}

#[test]
fn what_fails_or_is_ended_below_is_told_to_the_agent_that_waits_for_it() {
    let mut play = Play::start(DESK, json!({}));
    says(&mut play, "desk", calls([("ask_expert", json!({ "task": "Tidy up." }))]));
    let task = play.tasks[&task_of(&play, "expert")].clone();
    play.failed(&task, FlowCode::ModelFailed, false);
    assert_eq!(results(&play, "desk"), ["MODEL_FAILED: no luck"]);

    let mut play = delegated(calls([("stuck", json!({ "reason": "out_of_scope", "explanation": "Not mine." }))]));
    let fields = object(json!({ "reason": "They left." }));
    play.decide(Verdict::Choose { option: "abort".to_owned(), fields });
    assert_eq!(results(&play, "desk"), ["FLOW_HUMAN_REJECTED: They left."]);
}

#[test]
fn an_agent_that_works_for_another_asks_by_itself_once_its_gated_calls_are_decided() {
    let mut play =
        delegated(calls([("question", json!({ "question": "Which file?" })), ("write", json!({ "path": "a" }))]));
    let gate = play.review();
    assert_eq!((gate.kind, ids(&gate)), (ReviewKind::ToolCalls, vec!["c1-1-c1-2"]));
    play.decide_on(&gate, approve(&["c1-1-c1-2"]));
    let kinds = play.kinds();
    assert!(kinds.contains(&"review.resolved") && kinds.contains(&"review.requested"), "in one commit: {kinds:?}");
    let question = play.review();
    assert_eq!((question.kind, &*question.prompt), (ReviewKind::Clarification, "Agent `expert` asks:\n\nWhich file?"));
    play.decide(say("The second."));
    let task = play.call_task("c1-1-c1-2");
    play.returned(&task, json!("written"));
    let told = results(&play, "expert");
    assert_eq!((&told[0]["text"], &told[1]), (&json!("The second."), &json!("written")));
}

/// Starts a run in which an agent asks this question.
fn asked(question: Value) -> Play {
    let source = "id: ask\nagents: { clerk: { model: demo/clerk, tools: [ask] } }\n\
        tools: { ask: { builtin: ask_human } }\nnodes: { serve: { agent: clerk, prompt: Serve. } }\n";
    let mut play = Play::start(source, json!({}));
    says(&mut play, "clerk", calls([("ask", question)]));
    play
}

fn options(count: usize) -> Value {
    (0..count).map(|number| json!({ "id": format!("o{number}"), "label": format!("Size {number}") })).collect()
}

#[test]
fn a_question_that_cannot_be_asked_is_told_to_the_agent_with_its_place() {
    let unnamed = json!([{ "id": "a", "label": "" }, { "id": "b", "label": "B" }]);
    for (wrong, why) in [
        (json!({ "question": "" }), "/question"),
        (json!({ "question": "Which?", "type": "riddle" }), "/type"),
        (json!({ "question": "Which?", "options": options(11) }), "/options"),
        (json!({ "question": "Which?", "options": unnamed }), "/options/0/label"),
        (json!({ "question": "Which?", "multiple": true }), "`multiple` needs `options`"),
    ] {
        let play = asked(wrong);
        assert!(play.snapshot.reviews.is_empty(), "{why}");
        let told = results(&play, "clerk")[0].to_string();
        assert!(told.contains("TOOL_FAILED: ") && told.contains(why), "{why}: {told}");
    }
}

#[test]
fn a_question_is_answered_by_what_it_offers_and_by_nothing_else() {
    let mut play = asked(json!({ "question": "Which?", "options": options(2), "allow_free_text": false }));
    let review = play.review();
    let both = Verdict::Choose { option: "o0".to_owned(), fields: object(json!({ "options": ["o0", "o1"] })) };
    for (verdict, at, code) in [
        (choose("o2"), "/verdict/option", "unknown"),
        (say("Both."), "/verdict/type", "not_offered"),
        (both, "/verdict/fields", "unknown"),
        (say(" \n"), "/verdict/text", "required"),
        (answer_actions([]), "/verdict/type", "not_offered"),
    ] {
        assert_eq!(refused(&mut play, &review, verdict), [place(at, code)]);
    }
    play.decide_on(&review, choose("o1"));
    assert_eq!(results(&play, "clerk")[0]["option"], "o1");
    let mut several = asked(json!({ "question": "Which?", "options": options(3), "multiple": true }));
    let review = several.review();
    let fields = object(json!({ "options": ["o0", "o2"] }));
    let chosen = request(&review, Verdict::Choose { option: "answer".to_owned(), fields });
    let noted = DecisionRequest { comment: Some("As a gift.".to_owned()), ..chosen };
    several.try_decide(review.id, &ana(), noted).unwrap();
    let told = &results(&several, "clerk")[0];
    assert_eq!((&told["options"], &told["text"]), (&json!(["o0", "o2"]), &json!("As a gift.")));
}
