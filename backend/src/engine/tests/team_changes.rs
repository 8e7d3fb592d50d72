//! Changes that members make to their team: specialists, and the strategy.

use super::teams::{TEAM, due, request_of, results, says, start_with};
use super::*;
use shared::grant::{GrantScope, Remember};
use shared::review::{ActionType, ReviewKind};

const SPAWN: &str = "emergent: { enabled: true, max: 1, require_justification: true }";

fn specialist() -> Value {
    json!({ "role": "tester", "instructions": "You test.", "justification": "Nobody tests.", "tools": ["look"] })
}

#[test]
fn a_routing_lead_calls_a_specialist_that_has_joined_and_nobody_else_is_told_of_a_tool() {
    let mut play = start_with(&format!("strategy: router, {SPAWN}"), "");
    let tester = json!({ "role": "tester", "instructions": "You test.", "justification": "Nobody tests." });
    says(&mut play, "editor", calls([("grow", tester)]));
    assert_eq!(results(&play, "editor"), [json!({ "joined": "tester", "call": "delegate_to_tester" })]);
    let offered: Vec<_> = request_of(&play, "editor").tools.into_iter().map(|tool| tool.name).collect();
    assert!(offered.contains(&"delegate_to_tester".to_owned()), "{offered:?}");
    says(&mut play, "editor", calls([("delegate_to_tester", json!({ "task": "Test it." }))]));
    assert_eq!(due(&play), ["tester"]);
    says(&mut play, "tester", text("It holds."));
    assert_eq!(results(&play, "editor").last().unwrap(), "It holds.");
    says(&mut play, "editor", text("Done."));
    assert_eq!(play.key("work"), "Done.");

    let mut row = start_with(&format!("strategy: sequential, {SPAWN}"), "");
    says(&mut row, "researcher", calls([("grow", specialist())]));
    assert_eq!(results(&row, "researcher"), [json!({ "joined": "tester" })], "it speaks when its turn comes");
}

#[test]
fn a_specialist_joins_once_somebody_has_given_leave_and_takes_its_turn() {
    let gates = "gates: { before_emergent: { title: 'New: {{ arguments.role }}' } }";
    let mut play = start_with(&format!("strategy: sequential, {SPAWN}"), gates);
    let wrong = [
        json!({ "role": "critic", "instructions": "x", "justification": "y" }),
        json!({ "role": "9", "instructions": "x", "justification": "y" }),
        json!({ "role": "tester", "instructions": "x" }),
        json!({ "role": "tester", "instructions": "x", "justification": "y", "tools": ["secret"] }),
        json!({ "role": "tester", "instructions": "x", "justification": "y", "model": "demo/other" }),
    ];
    let made: Vec<_> = wrong.into_iter().map(|arguments| ("grow", arguments)).collect();
    let made: [(&str, Value); 5] = made.try_into().unwrap();
    says(&mut play, "researcher", calls(made));
    let told = results(&play, "researcher");
    assert!(told.iter().all(|told| told.as_str().unwrap().starts_with("TOOL_FAILED: `")), "{told:?}");
    assert!(play.snapshot.reviews.is_empty(), "nobody is asked about what cannot be");

    says(&mut play, "researcher", calls([("grow", specialist())]));
    let review = play.review();
    let action = &review.actions[0];
    assert_eq!((review.kind, &*review.title), (ReviewKind::Emergent, "New: tester"));
    assert_eq!(
        (action.action_type, &*action.name, action.agent.as_deref()),
        (ActionType::Emergent, "tester", Some("researcher"))
    );
    assert_eq!((&action.arguments["model"], &action.arguments["tools"]), (&json!("demo/r"), &json!(["look"])));
    let id = action.id.clone();
    let renamed = object(json!({ "role": "boss", "instructions": "x", "model": "demo/r", "tools": [] }));
    let refused = play.try_decide(
        review.id,
        &ana(),
        request(&review, answer_actions([(&id, ActionDecision::Edit { arguments: renamed })])),
    );
    assert!(matches!(refused, Err(Refusal::Invalid(_))), "its name stays: {refused:?}");
    let edited =
        object(json!({ "role": "tester", "instructions": "You test kindly.", "model": "demo/c", "tools": [] }));
    let Verdict::Actions { decisions, .. } = answer_actions([(&id, ActionDecision::Edit { arguments: edited })]) else {
        panic!()
    };
    let instructions = Some("Never guess.".to_owned());
    let verdict = Verdict::Actions { decisions, instructions };
    let refused = play.try_decide(review.id, &ana(), request(&review, verdict.clone()));
    let Err(Refusal::Invalid(_)) = refused else { panic!("without a justification it cannot be: {refused:?}") };
    let edited = object(json!({
        "role": "tester", "instructions": "You test kindly.", "justification": "y", "model": "demo/c", "tools": [],
    }));
    let Verdict::Actions { decisions, .. } = answer_actions([(&id, ActionDecision::Edit { arguments: edited })]) else {
        panic!()
    };
    play.decide_on(&review, Verdict::Actions { decisions, instructions: Some("Never guess.".to_owned()) });
    assert_eq!(results(&play, "researcher").last().unwrap()["joined"], "tester");
    says(
        &mut play,
        "researcher",
        calls([("grow", json!({ "role": "more", "instructions": "x", "justification": "y" }))]),
    );
    assert!(results(&play, "researcher").last().unwrap().as_str().unwrap().contains("which is the limit"));
    says(&mut play, "researcher", text("Yes."));
    says(&mut play, "critic", text("No."));
    let asked = request_of(&play, "tester");
    assert_eq!((&*asked.model, asked.instructions.as_deref()), ("demo/c", Some("You test kindly.\n\nNever guess.")));
    says(&mut play, "tester", text("It holds."));
    assert_eq!(play.key("work"), "It holds.");
}

#[test]
fn what_somebody_adds_to_the_instructions_is_looked_at_with_them() {
    let gates = "gates: { before_emergent: true, before_agent: { critic: true } }\n\
                 guardrails: [{ name: no-falcon, pattern: falcon }]";
    let mut play = start_with(&format!("strategy: sequential, {SPAWN}"), gates);
    let with = |id: &str| {
        let decisions = [(id.to_owned(), ActionDecision::APPROVE)].into();
        Verdict::Actions { decisions, instructions: Some("Ask about falcon.".to_owned()) }
    };
    says(&mut play, "researcher", calls([("grow", specialist())]));
    let review = play.review();
    play.decide_on(&review, with(&review.actions[0].id));
    let told = results(&play, "researcher");
    assert!(told[0].as_str().unwrap().starts_with("GUARDRAIL_BLOCKED: no-falcon"), "{told:?}");
    says(&mut play, "researcher", text("Yes."));
    let review = play.review();
    play.decide_on(&review, with("agent"));
    assert_eq!(play.error().0, FlowCode::GuardrailBlocked, "what an agent begins with is looked at too");
}

#[test]
fn a_specialist_that_is_rejected_or_that_the_judge_does_not_approve_is_not_made() {
    let gates = "gates: { before_emergent: true }";
    let mut play = start_with(&format!("strategy: sequential, {SPAWN}"), gates);
    says(&mut play, "researcher", calls([("grow", specialist())]));
    let review = play.review();
    let id = review.actions[0].id.clone();
    let reject = ActionDecision::Reject { message: Some("Three are enough.".to_owned()) };
    play.decide_on(&review, answer_actions([(&id, reject)]));
    assert_eq!(results(&play, "researcher"), ["TOOL_PERMISSION_DENIED: Three are enough."]);

    let judge = "emergent: { enabled: true, judge: { model: demo/j, criteria: Is it needed? } }";
    for (approved, joins) in [(true, true), (false, false)] {
        let mut play = start_with(&format!("strategy: sequential, {judge}"), "");
        says(&mut play, "researcher", calls([("grow", specialist())]));
        let (task, _) = play.snapshot.state.questions[0].task().expect("the judge is asked");
        let verdict = json!({ "approved": approved, "confidence": 0.9, "reasoning": "So." });
        play.apply(Input::ModelAnswered { task, attempt: 1, answer: text(&verdict.to_string()) });
        let told = results(&play, "researcher");
        assert_eq!(told[0].get("joined").is_some(), joins, "{told:?}");
    }
}

#[test]
fn a_specialist_is_held_to_the_gates_of_whoever_made_it() {
    // The gate is the creating agent's own, and no gate of the flow repeats it.
    let source =
        TEAM.replace("MORE", "strategy: sequential, emergent: { enabled: true, max: 2 }").replace("GATES", "").replace(
            "instructions: You research., tools: [look, put, grow, steer]",
            "instructions: You research., tools: [look, put, grow, steer], gates: { before_tool: { look: true } }",
        );
    let mut play = Play::start(&source, json!({ "q": "it" }));
    says(&mut play, "researcher", calls([("grow", specialist())]));
    says(&mut play, "researcher", text("Yes."));
    says(&mut play, "critic", text("No."));
    says(&mut play, "tester", calls([("look", json!({}))]));
    let review = play.review();
    assert_eq!((&*review.actions[0].name, review.actions[0].agent.as_deref()), ("look", Some("tester")));

    // If a gate holds back the beginning of an agent, it also holds back the specialists that the agent creates,
    // whatever their names.
    let gates = "gates: { before_agent: { researcher: true, '*': false } }";
    let mut play = start_with("strategy: sequential, emergent: { enabled: true, max: 2 }", gates);
    play.decide(answer_actions([("agent", ActionDecision::APPROVE)]));
    let safe = json!({ "role": "safe_one", "instructions": "You test.", "tools": ["look"] });
    says(&mut play, "researcher", calls([("grow", safe)]));
    says(&mut play, "researcher", text("Yes."));
    says(&mut play, "critic", text("No."));
    assert_eq!(&*play.review().actions[0].name, "safe_one");
}

#[test]
fn what_changes_a_team_is_asked_about_by_itself_and_no_gate_of_its_tool_is_passed_over() {
    // The gate of specialists stays open; that of the tool does not.
    let gates =
        "gates: { before_emergent: { when: 'arguments.role == \"boss\"' }, before_tool: { grow: true, look: true } }";
    let mut play = start_with("strategy: sequential, emergent: { enabled: true, max: 2 }", gates);
    says(&mut play, "researcher", calls([("grow", specialist()), ("look", json!({}))]));
    let reviews: Vec<_> = play.snapshot.reviews.values().filter(|review| review.is_pending()).collect();
    let asked: Vec<_> = reviews.iter().map(|review| (review.kind, review.actions.len())).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked.contains(&(ReviewKind::Emergent, 1)) && asked.contains(&(ReviewKind::ToolCalls, 1)), "{asked:?}");
}

#[test]
fn a_strategy_changes_from_the_next_turn_on_once_there_is_leave() {
    let gates = "gates: { before_strategy_override: { allowed_decisions: [approve, edit] } }";
    let mut play = start_with("strategy: sequential", gates);
    let same = json!({ "strategy": "sequential", "reason": "?" });
    let other = json!({ "strategy": "debate", "rounds": 2, "reason": "We disagree." });
    says(&mut play, "researcher", calls([("steer", same), ("steer", other)]));
    let review = play.review();
    let action = &review.actions[0];
    assert_eq!(
        (review.kind, action.action_type, &*action.name),
        (ReviewKind::StrategyOverride, ActionType::StrategyOverride, "debate")
    );
    assert_eq!(
        Value::Object(action.arguments.clone()),
        json!({ "from": "sequential", "to": "debate", "rounds": 2, "reason": "We disagree." })
    );
    let edit = object(json!({ "from": "sequential", "to": "debate", "rounds": 1, "reason": "We disagree." }));
    play.decide_on(&review, answer_actions([(&action.id, ActionDecision::Edit { arguments: edit })]));
    let told = results(&play, "researcher");
    assert!(told[0].as_str().unwrap().contains("already uses this strategy"), "{told:?}");
    assert_eq!(told[1], json!({ "strategy": "debate", "rounds": 1 }));
    says(&mut play, "researcher", text("A"));
    for (agent, said) in [("researcher", "B"), ("critic", "C"), ("editor", "D")] {
        assert_eq!(due(&play), [agent]);
        says(&mut play, agent, text(said));
    }
    assert_eq!(play.key("work"), "D");
}

#[test]
fn what_a_specialist_calls_is_not_allowed_for_later() {
    let spawn = "strategy: sequential, emergent: { enabled: true }";
    let mut play = start_with(spawn, "gates: { before_tool: { look: true } }");
    says(&mut play, "researcher", calls([("grow", specialist())]));
    says(&mut play, "researcher", text("Yes."));
    says(&mut play, "critic", text("No."));
    says(&mut play, "tester", calls([("look", json!({}))]));
    let review = play.review();
    let remember = |remember| answer_actions([(&*review.actions[0].id, ActionDecision::Approve { remember })]);
    let later = Remember { scope: GrantScope::Flow, for_ms: None, arguments: Vec::new() };
    let refused = play.try_decide(review.id, &ana(), request(&review, remember(Some(later)))).unwrap_err();
    let place = format!("/verdict/decisions/{}/remember", review.actions[0].id);
    assert_eq!(mistakes(refused), [(place, "not_allowed".to_owned())]);
    play.decide_on(&review, remember(None));
}
