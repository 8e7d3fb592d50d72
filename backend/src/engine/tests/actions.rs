//! Gates before agents and before the output.

use super::*;
use shared::definition::ActionKind;
use shared::review::{ActionType, Outcome, ReviewKind};

const ANSWER: &str = r#"
id: answer
agents:
  billing: { model: demo/billing, instructions: You know the bills., output_schema: SCHEMA }
gates:
  before_agent: { "bill*": AGENT }
  before_return: RETURN
nodes:
  ask: { agent: billing, prompt: "Reply to {{ input.from }}.", next: check, failure: FAILURE }
  check: { human: { prompt: Fine?, options: [{ id: fine, label: Fine }, { id: again, kind: correct, label: Again, message: Shorter. }] }, next: late }
  late: { set: { internal: note } }
  aside: { set: { reply: aside } }
output: [reply]
"#;

fn flow(gate: &str, returns: &str) -> String {
    let schema = "{ type: object, required: [reply], properties: { reply: { type: string } } }";
    let failure = "{ then: { goto: aside } }";
    let replaced = ANSWER.replace("SCHEMA", schema).replace("FAILURE", failure);
    replaced.replace("AGENT", gate).replace("RETURN", returns)
}

fn start(gate: &str, returns: &str) -> Play {
    Play::start(&flow(gate, returns), json!({ "from": "Ann" }))
}

fn one(decision: ActionDecision, review: &Review) -> Verdict {
    Verdict::Actions { decisions: [(review.actions[0].id.clone(), decision)].into(), instructions: None }
}

fn system(play: &Play, node: &str) -> Option<String> {
    match work(&play.flow, &play.snapshot.state, &play.task_at(node)) {
        Some(Work::Model(request)) => request.instructions,
        other => panic!("{other:?}"),
    }
}

fn edit(arguments: Value) -> ActionDecision {
    ActionDecision::Edit { arguments: object(arguments) }
}

#[test]
fn an_agent_begins_once_somebody_has_given_leave() {
    let mut play = start("{ severity: high, title: 'May {{ agent }} reply?', timeout: 1h }", "false");
    let review = play.review();
    let action = &review.actions[0];
    assert_eq!((review.kind, action.action_type, &*action.name), (ReviewKind::Agent, ActionType::Agent, "billing"));
    assert_eq!(review.title, "May billing reply?");
    assert_eq!(action.arguments, object(json!({ "prompt": "Reply to Ann.", "instructions": "You know the bills." })));
    assert_eq!(action.allowed_decisions, ActionKind::ALL);
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    assert!(play.tasks.values().all(|task| !task.kind.is_call()), "no model is called");

    let Verdict::Actions { decisions, .. } = one(ActionDecision::APPROVE, &review) else { unreachable!() };
    play.decide(Verdict::Actions { decisions, instructions: Some("Be kind.".to_owned()) });
    assert_eq!(system(&play, "ask").unwrap(), "You know the bills.\n\nBe kind.");
    assert_eq!(play.heard("ask"), [Message::User { text: "Reply to Ann.".to_owned() }]);
    play.model("ask", text(r#"{"reply": "Dear Ann"}"#));

    // A correction is a visit of its own: it is asked about again, and edits of the earlier visit are gone.
    play.decide(choose("again"));
    let again = play.review();
    assert_eq!((again.visit, &again.actions[0].arguments["correction"]), (Some(2), &json!("Shorter.")));
    play.decide(one(edit(json!({ "prompt": "Reply.", "instructions": "None.", "correction": "In French." })), &again));
    assert_eq!(system(&play, "ask").unwrap(), "None.");
    let heard = play.heard("ask");
    assert_eq!(heard[0], Message::User { text: "Reply.".to_owned() });
    assert_eq!(heard[2], Message::User { text: "In French.".to_owned() });
}

#[test]
fn an_agent_without_instructions_can_be_given_some() {
    let source = flow("true", "false").replace("instructions: You know the bills., ", "");
    let mut play = Play::start(&source, json!({ "from": "Ann" }));
    let review = play.review();
    assert_eq!(review.actions[0].arguments, object(json!({ "prompt": "Reply to Ann." })));
    play.decide(one(edit(json!({ "prompt": "Reply.", "instructions": "Be brief." })), &review));
    assert_eq!(system(&play, "ask").as_deref(), Some("Be brief."));
}

#[test]
fn what_is_answered_in_place_of_an_agent_is_its_answer() {
    let mut play = start("true", "false");
    let review = play.review();
    let respond = |text: &str| one(ActionDecision::Respond { message: text.to_owned() }, &review);
    let refused = play.try_decide(review.id, &ana(), request(&review, respond("Dear Ann"))).unwrap_err();
    assert_eq!(mistakes(refused), [("/verdict/decisions/agent/message".to_owned(), "invalid".to_owned())]);
    let bad = one(edit(json!({ "prompt": 1 })), &review);
    let refused = mistakes(play.try_decide(review.id, &ana(), request(&review, bad)).unwrap_err());
    assert!(refused.iter().all(|(place, _)| place.starts_with("/verdict/decisions/agent/arguments")), "{refused:?}");
    play.decide(respond(r#"{"reply": "Dear Ann"}"#));
    assert_eq!(play.key("reply"), "Dear Ann");
    assert_eq!(play.snapshot.state.total_tokens, 0);
    assert_eq!(&*play.review().node.unwrap(), "check");
}

#[test]
fn a_rejected_agent_fails_its_step_and_failure_routes() {
    for verdict in ["reject", "text", "timer", "auto", "withdrawn"] {
        let gate = match verdict {
            "timer" => "{ timeout: 1h }",
            "auto" => "{ handlers: [{ auto: { reject: Not now. } }] }",
            _ => "true",
        };
        let mut play = start(gate, "false");
        let message = || Some("Not now.".to_owned());
        match verdict {
            "reject" => {
                let review = play.review();
                play.decide(one(ActionDecision::Reject { message: message() }, &review));
            }
            "text" => play.decide(say("Not now.")),
            "timer" => {
                play.now = play.now.after(Duration::from_hours(2));
                let task = play.tasks.keys().next().copied().unwrap();
                play.apply(Input::Due { task });
            }
            "withdrawn" => {
                let (review, by) = (play.review().id, person("dev", &[]));
                play.apply(Input::Withdraw { review, by, via: Via::Human, reason: message() });
            }
            _ => {}
        }
        let failed = play.steps.iter().find(|step| step.status == StepStatus::Failed).unwrap();
        let error = failed.error.as_ref().unwrap();
        let words = if verdict == "timer" { "nobody decided in time" } else { "Not now." };
        assert_eq!((error.code, &*error.message), (FlowCode::FlowHumanRejected, words), "{verdict}");
        assert_eq!((play.status(), play.key("reply")), (RunStatus::Completed, &json!("aside")));
    }
}

#[test]
fn a_timer_may_fail_the_run_or_let_the_agent_begin() {
    for (then, status) in [("error", RunStatus::Failed), ("approve", RunStatus::Running)] {
        let mut play = start(&format!("{{ timeout: 1h, on_timeout: {then} }}"), "false");
        play.now = play.now.after(Duration::from_hours(2));
        let task = play.tasks.keys().next().copied().unwrap();
        play.apply(Input::Due { task });
        assert_eq!(play.status(), status);
        if status == RunStatus::Failed {
            assert_eq!(play.error().0, FlowCode::FlowHumanTimeout);
        }
    }
}

#[test]
fn a_gate_opens_for_what_its_condition_lets_pass() {
    for (when, asks) in
        [("agent != 'billing'", false), ("arguments.prompt.contains('Ann')", true), ("nobody == 1", true)]
    {
        let play = start(&format!("{{ when: \"{when}\" }}"), "false");
        assert_eq!(play.status() == RunStatus::WaitingForHuman, asks, "{when}");
    }
}

#[test]
fn a_router_s_agent_is_asked_about_too_and_a_person_may_choose_in_its_place() {
    let source = "
id: route
agents: { guide: { model: demo/guide } }
gates: { before_agent: { guide: true } }
nodes:
  fork: { router: { agent: guide }, next: [left, right] }
  left: { set: { left: 1 } }
  right: { set: { right: 1 } }
";
    let mut play = Play::start(source, json!({}));
    let review = play.review();
    let respond = |text: &str| one(ActionDecision::Respond { message: text.to_owned() }, &review);
    let refused = play.try_decide(review.id, &ana(), request(&review, respond("back"))).unwrap_err();
    assert_eq!(mistakes(refused), [("/verdict/decisions/agent/message".to_owned(), "invalid".to_owned())]);
    play.decide(respond("Right"));
    assert_eq!((play.status(), play.key("right")), (RunStatus::Completed, &json!(1)));
}

fn to_the_end(play: &mut Play) -> Review {
    play.model("ask", text(r#"{"reply": "Dear Ann"}"#));
    play.decide(choose("fine"));
    play.review()
}

#[test]
fn the_output_is_given_once_somebody_has_given_leave() {
    let mut play = start("false", "{ consequences: [Ann reads it.] }");
    let review = to_the_end(&mut play);
    let action = &review.actions[0];
    assert_eq!((review.kind, action.action_type, &*action.name), (ReviewKind::Output, ActionType::Output, "answer"));
    assert_eq!(action.arguments, object(json!({ "reply": "Dear Ann" })), "only what is given is asked about");
    assert_eq!(action.allowed_decisions, [ActionKind::Approve, ActionKind::Edit, ActionKind::Reject]);
    assert_eq!(play.status(), RunStatus::WaitingForHuman);
    assert_eq!(shown_run(Some(&play.flow), &play.snapshot.state).output, None);
    let position = &shown_run(None, &play.snapshot.state).positions[0];
    assert_eq!((position.node.as_str(), position.review), ("end", Some(review.id)));
    let hears = Verdict::Actions {
        decisions: [("output".to_owned(), ActionDecision::APPROVE)].into(),
        instructions: Some("Hm.".to_owned()),
    };
    let refused = play.try_decide(review.id, &ana(), request(&review, hears)).unwrap_err();
    assert_eq!(mistakes(refused), [("/verdict/instructions".to_owned(), "not_allowed".to_owned())]);
    for wrong in [json!({ "reply": 1 }), json!({ "reply": "x", "more": 1 }), json!({})] {
        let edited = request(&review, one(edit(wrong), &review));
        assert_eq!(mistakes(play.try_decide(review.id, &ana(), edited).unwrap_err()).len(), 1);
    }
    play.decide(one(edit(json!({ "reply": "Dearest Ann" })), &review));
    assert_eq!((play.status(), play.key("reply")), (RunStatus::Completed, &json!("Dearest Ann")));
    assert_eq!(play.kinds(), ["review.resolved", "step.completed", "run.completed"]);
    assert_eq!(play.events[2].data["output"], json!({ "reply": "Dearest Ann" }));
    assert_eq!(play.events[1].data["writes"], json!({ "reply": "Dearest Ann" }));
}

#[test]
fn a_rejected_output_fails_the_run_whatever_its_failure_policy_says() {
    let source =
        flow("false", "{ timeout: 1h, on_timeout: error }") + "defaults: { failure: { then: { goto: aside } } }\n";
    let mut play = Play::start(&source, json!({ "from": "Ann" }));
    let review = to_the_end(&mut play);
    let mut late = play.again();
    play.decide(one(ActionDecision::Reject { message: Some("Not to Ann.".to_owned()) }, &review));
    let error = (FlowCode::FlowHumanRejected, "Not to Ann.".to_owned());
    assert_eq!((play.status(), play.error()), (RunStatus::Failed, error));
    late.now = late.now.after(Duration::from_hours(2));
    let task = late.tasks.keys().next().copied().unwrap();
    late.apply(Input::Due { task });
    assert_eq!((late.status(), late.error().0), (RunStatus::Failed, FlowCode::FlowHumanTimeout));
}

#[test]
fn a_cancelled_run_takes_the_question_about_its_output_back() {
    let mut play = start("false", "true");
    let review = to_the_end(&mut play);
    play.apply(Input::Cancel { by: person("dev", &[]), reason: None });
    assert_eq!(play.past(review.id).resolution.as_ref().unwrap().outcome, Outcome::Withdrawn);
    assert_eq!(play.steps().last().unwrap(), &("end".to_owned(), 1, StepStatus::Cancelled));
}

#[test]
fn guardrails_look_at_what_was_let_pass() {
    let rules =
        "guardrails: [{ name: own, pattern: Falcon }, { name: soft, pattern: Ann, effect: redact, on: [outputs] }]\n";
    let mut play = Play::start(&(flow("true", "true") + rules), json!({ "from": "Falcon" }));
    let review = play.review();
    assert_eq!(review.warnings.len(), 1, "people are told before they decide");
    let mut blocked = play.again();
    blocked.decide(one(ActionDecision::APPROVE, &review));
    let step = blocked.steps.iter().find(|step| step.status == StepStatus::Failed).unwrap();
    assert_eq!(step.error.as_ref().unwrap().code, FlowCode::GuardrailBlocked);
    assert_eq!(blocked.past(review.id).resolution.as_ref().unwrap().vetoes.len(), 1);

    play.decide(one(edit(json!({ "prompt": "Reply.", "instructions": "x" })), &review));
    let review = to_the_end(&mut play);
    let mut blocked = play.again();
    blocked.decide(one(edit(json!({ "reply": "Falcon" })), &review));
    assert_eq!((blocked.status(), blocked.error().0), (RunStatus::Failed, FlowCode::GuardrailBlocked));
    play.decide(one(ActionDecision::APPROVE, &review));
    assert_eq!((play.status(), play.key("reply")), (RunStatus::Completed, &json!("Dear [redacted]")));
    assert!(play.past(review.id).actions[0].redacted);
}

#[test]
fn a_called_flow_gives_its_output_by_its_own_gate() {
    let called = "
id: called
gates: { before_return: { when: \"arguments.word != 'fine'\" } }
nodes: { say: { set: { word: '{{ input.word }}', beside: 1 } } }
output: [word]
";
    let calling = "
id: calling
nodes:
  call: { flow: { id: called, input: { word: '{{ input.word }}' } }, write_keys: [word], failure: { then: { goto: other } } }
  other: { set: { word: other } }
";
    let start = |word: &str| {
        let mut library = flow::Library::default();
        library.add(Arc::new(compile(called)));
        let calling = flow::check(calling).flow.unwrap();
        Play::try_start(Compiled::calling(calling, 1, &library).unwrap(), json!({ "word": word })).unwrap()
    };
    assert_eq!((start("fine").status(), start("fine").key("word")), (RunStatus::Completed, &json!("fine")));
    let mut play = start("rude");
    let review = play.review();
    assert_eq!((review.node.as_ref().unwrap().as_str(), &*review.title), ("call:1/end", "Output of called: rude"));
    let mut rejected = play.again();
    rejected.decide(one(ActionDecision::Reject { message: None }, &review));
    assert_eq!((rejected.status(), rejected.key("word")), (RunStatus::Completed, &json!("other")));
    play.decide(one(edit(json!({ "word": "polite" })), &review));
    assert_eq!((play.status(), play.key("word")), (RunStatus::Completed, &json!("polite")));
    assert!(
        play.snapshot.state.frames.is_empty() && play.snapshot.state.visits.keys().all(|node| node.frame().is_empty())
    );
}

#[test]
fn the_gates_of_an_agent_win_over_those_of_the_flow() {
    let source = r#"
id: shop
agents:
  clerk: { model: demo/clerk, tools: [pay], gates: { before_tool: { pay: { when: "agent == 'clerk' && arguments.amount > 10" } } } }
  chief: { model: demo/chief, tools: [pay], gates: { before_tool: { "*": false } } }
tools:
  pay: { http: { url: "https://example.com/pay" }, parameters: { type: object, properties: { amount: { type: integer } } } }
gates: { before_tool: { pay: true } }
nodes:
  one: { agent: clerk, prompt: Pay., next: two }
  two: { agent: chief, prompt: Pay., next: three }
  three: { tool: pay, arguments: { amount: 1 } }
"#;
    let mut play = Play::start(source, json!({}));
    play.model("one", calls([("pay", json!({ "amount": 5 })), ("pay", json!({ "amount": 50 }))]));
    assert_eq!(play.review().actions.len(), 1, "the clerk's own gate asks for more than 10");
    play.decide(say("no"));
    let task = play.call_task("c1-1");
    play.returned(&task, json!("ok"));
    play.model("one", text("Done."));
    play.model("two", calls([("pay", json!({ "amount": 50 }))]));
    assert_eq!(play.status(), RunStatus::Running, "nobody is asked for the chief");
    let task = play.call_task("c1-1");
    play.returned(&task, json!("ok"));
    play.model("two", text("Done."));
    assert_eq!(play.review().node.unwrap().as_str(), "three", "a tool node is held back by the flow's gate");
}

#[test]
fn an_output_that_does_not_fit_the_flows_schema_is_not_given_out() {
    let source = |value: &str, gates: &str| {
        format!(
            "id: bill\n{gates}output: [total]\n\
             output_schema: {{ type: object, required: [total], properties: {{ total: {{ type: integer, minimum: 1 }} }} }}\n\
             nodes: {{ add: {{ set: {{ total: {value} }} }} }}\n"
        )
    };
    let play = Play::start(&source("0", ""), json!({}));
    let (code, message) = play.error();
    assert_eq!(code, FlowCode::FlowInvalid);
    assert!(message.starts_with("the output does not match `output_schema`: /total"), "{message}");
    assert_eq!(Play::start(&source("2", ""), json!({})).status(), RunStatus::Completed);

    let mut play = Play::start(&source("2", "gates: { before_return: true }\n"), json!({}));
    let review = play.review();
    assert_eq!(review.actions[0].schema.as_ref().unwrap()["properties"]["total"]["minimum"], 1);
    let edit = |total: i64| ActionDecision::Edit { arguments: object(json!({ "total": total })) };
    let refused = play.try_decide(review.id, &ana(), request(&review, one(edit(0), &review))).unwrap_err();
    assert_eq!(mistakes(refused)[0].0, "/verdict/decisions/output/arguments/total");
    play.decide(one(edit(3), &review));
    assert_eq!(shown_run(Some(&play.flow), &play.snapshot.state).output, Some(object(json!({ "total": 3 }))));
}

#[test]
fn a_schema_of_an_output_may_refer_to_its_own_parts() {
    let source = "
id: tree
gates: { before_return: true }
output: [tree, word]
output_schema:
  type: object
  required: [tree]
  properties:
    tree: { type: array, items: { $ref: '#' } }
    word: { $ref: '#/$defs/word' }
  $defs: { word: { type: string, maxLength: 4 } }
nodes: { add: { set: { tree: [], word: oak } } }
";
    let mut play = Play::start(source, json!({}));
    let review = play.review();
    let edited = |arguments: Value| one(edit(arguments), &review);
    let refused = |play: &mut Play, arguments: Value| {
        mistakes(play.try_decide(review.id, &ana(), request(&review, edited(arguments))).unwrap_err()).remove(0).0
    };
    assert_eq!(refused(&mut play, json!({ "tree": [], "word": "maple" })), "/verdict/decisions/output/arguments/word");
    let leaf = json!({ "tree": [{ "word": "oak" }], "word": "oak" });
    assert_eq!(refused(&mut play, leaf), "/verdict/decisions/output/arguments/tree/0/tree");
    // A branch needs no word, unlike the output that is edited.
    assert_eq!(refused(&mut play, json!({ "tree": [] })), "/verdict/decisions/output/arguments/word");
    let edit = json!({ "tree": [{ "tree": [] }], "word": "fir" });
    play.decide(edited(edit.clone()));
    assert_eq!(shown_run(Some(&play.flow), &play.snapshot.state).output, Some(object(edit)));
}
