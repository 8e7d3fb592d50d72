//! Calls that two gates hold back: a change of a team has the team's gate and that of its tool.

use super::teams::{TEAM, due, results, says, start_with};
use super::*;
use shared::review::Review;

const MORE: &str = "strategy: sequential, emergent: { enabled: true, max: 2 }";
const LED: &str = "gates: { before_emergent: { reviewers: { roles: [leads] } }, \
                   before_tool: { grow: { reviewers: { roles: [editors] }, WHEN } } }";

fn grow(play: &mut Play, instructions: &str) {
    let made = json!({ "role": "tester", "instructions": instructions, "tools": ["look"] });
    says(play, "researcher", calls([("grow", made)]));
}

/// Returns the only pending review, and the role that it is for.
fn asked(play: &Play) -> (Review, String) {
    let mut pending = play.snapshot.reviews.values().filter(|review| review.is_pending());
    let review = pending.next().expect("somebody is asked").clone();
    assert!(pending.next().is_none(), "one gate after another");
    let role = review.reviewers.roles[0].clone();
    (review, role)
}

fn decide(play: &mut Play, review: &Review, decision: ActionDecision) {
    let reviewer = person("rob", &[&review.reviewers.roles[0]]);
    let id = review.actions[0].id.clone();
    play.try_decide(review.id, &reviewer, request(review, answer_actions([(&id, decision)]))).expect("it fits");
}

fn edit(review: &Review, instructions: &str) -> ActionDecision {
    let mut arguments = review.actions[0].arguments.clone();
    arguments.insert("instructions".to_owned(), instructions.into());
    ActionDecision::Edit { arguments }
}

fn joined(play: &Play) -> bool {
    // While its call waits for an answer, it has no turn.
    due(play) == ["researcher"] && results(play, "researcher").last().is_some_and(|told| told.get("joined").is_some())
}

#[test]
fn each_gate_that_closes_is_asked_and_one_refusal_is_enough() {
    for refused_by in [None, Some("leads"), Some("editors")] {
        let mut play = start_with(MORE, &LED.replace(", WHEN", ""));
        grow(&mut play, "Test.");
        for role in ["leads", "editors"] {
            let (review, asks) = asked(&play);
            assert_eq!(asks, role);
            assert!(!joined(&play));
            if refused_by == Some(role) {
                decide(&mut play, &review, ActionDecision::Reject { message: Some("No.".to_owned()) });
                break;
            }
            decide(&mut play, &review, ActionDecision::APPROVE);
        }
        assert_eq!(joined(&play), refused_by.is_none());
        if refused_by.is_some() {
            assert_eq!(results(&play, "researcher"), ["TOOL_PERMISSION_DENIED: No."]);
        }
        assert!(play.snapshot.reviews.values().all(|review| !review.is_pending()));
    }
}

#[test]
fn an_edit_asks_the_gate_that_it_closes_and_those_who_let_something_else_pass() {
    let mut play = start_with(MORE, &LED.replace("WHEN", "when: 'arguments.instructions.contains(\"delete\")'"));
    grow(&mut play, "Test.");
    let (review, role) = asked(&play);
    assert_eq!(role, "leads");
    decide(&mut play, &review, edit(&review, "Test, then delete."));
    let (review, role) = asked(&play);
    assert_eq!((&*role, &review.actions[0].arguments["instructions"]), ("editors", &json!("Test, then delete.")));

    // What the leads have approved is not what the editors made of it.
    decide(&mut play, &review, edit(&review, "Test, then delete all."));
    let (review, role) = asked(&play);
    assert_eq!((&*role, &review.actions[0].arguments["instructions"]), ("leads", &json!("Test, then delete all.")));
    assert!(!joined(&play));
    decide(&mut play, &review, ActionDecision::APPROVE);
    assert!(joined(&play), "the editors have let pass what the leads have now");
}

#[test]
fn the_gate_of_a_team_gives_no_permission_to_call_the_tool() {
    let gates = LED.replace("WHEN", "when: 'arguments.instructions.contains(\"delete\")'");
    let flow = TEAM.replace("MORE", MORE).replace("GATES", &gates);
    let flow = flow.replace("{ builtin: spawn_specialist }", "{ builtin: spawn_specialist, ask_permission: true }");
    let mut play = Play::start(&flow, json!({ "q": "it" }));
    grow(&mut play, "Test.");
    let (review, role) = asked(&play);
    assert_eq!(role, "leads");
    decide(&mut play, &review, ActionDecision::APPROVE);
    let permission = play.review();
    assert!(permission.reviewers.roles.is_empty() && !joined(&play), "{permission:?}");
    let id = permission.actions[0].id.clone();
    play.decide_on(&permission, answer_actions([(&id, ActionDecision::APPROVE)]));
    assert!(joined(&play));
}

#[test]
fn two_gates_that_ask_the_same_people_ask_them_once() {
    let gates = "gates: { before_emergent: { reviewers: { roles: [leads] } }, \
                 before_tool: { grow: { reviewers: { roles: [leads] } } } }";
    let mut play = start_with(MORE, gates);
    grow(&mut play, "Test.");
    let (review, _) = asked(&play);
    decide(&mut play, &review, ActionDecision::APPROVE);
    assert!(joined(&play));
}

#[test]
fn a_gate_that_says_something_else_of_the_same_people_is_asked_too() {
    for other in [
        "severity: critical",
        "allowed_decisions: [approve, reject]",
        "on_timeout: approve, timeout: 1h",
        "guardrails: false",
    ] {
        let gates = "gates: { before_emergent: { reviewers: { roles: [leads] }, OTHER }, \
                     before_tool: { grow: { reviewers: { roles: [leads] } } } }";
        let mut play = start_with(MORE, &gates.replace("OTHER", other));
        grow(&mut play, "Test.");
        for _ in 0..2 {
            assert!(!joined(&play), "{other}");
            let (review, _) = asked(&play);
            decide(&mut play, &review, ActionDecision::APPROVE);
        }
        assert!(joined(&play), "{other}");
    }
}

#[test]
fn gates_that_undo_each_others_edits_end() {
    let mut play = start_with(MORE, &LED.replace(", WHEN", ""));
    grow(&mut play, "Test.");
    let mut decided = 0;
    while play.snapshot.reviews.values().any(Review::is_pending) {
        let (review, role) = asked(&play);
        decide(&mut play, &review, edit(&review, &format!("As {role} want, version {decided}.")));
        decided += 1;
        assert!(decided < 100, "it has an end");
    }
    assert!(!joined(&play));
    let told = results(&play, "researcher");
    assert!(told[0].as_str().is_some_and(|told| told.starts_with("TOOL_PERMISSION_DENIED: its gates")), "{told:?}");
}

const PERMITTED: &str = "
id: f
agents: { clerk: { model: demo/clerk, tools: [pay] } }
tools: { pay: { http: { url: 'https://example.com' }, idempotent: true, ask_permission: true } }
gates: { before_tool: { pay: { when: arguments.amount > 100, reviewers: { roles: [legal] } } } }
nodes: { work: { agent: clerk, prompt: Pay. } }
";

#[test]
fn a_tool_that_asks_permission_asks_where_the_condition_of_its_gate_opens_it() {
    let pay = |amount: i64| ActionDecision::Edit { arguments: object(json!({ "amount": amount })) };
    // The amount, the role that the first review is for, the answer, and whether a second review is opened then.
    for (amount, first, answer, then) in [
        (50, None, ActionDecision::APPROVE, false),
        (50, None, pay(60), false),
        (50, None, pay(500), true),
        (500, Some("legal"), ActionDecision::APPROVE, false),
        (500, Some("legal"), pay(50), false),
    ] {
        let mut play = Play::start(PERMITTED, json!({}));
        play.model("work", calls([("pay", json!({ "amount": amount }))]));
        let review = play.review();
        assert_eq!(review.reviewers.roles.first().map(String::as_str), first, "{amount}");
        let call = review.actions[0].id.clone();
        let rob = person("rob", &["reviewer", "legal"]);
        play.try_decide(review.id, &rob, request(&review, answer_actions([(&call, answer)]))).expect("it fits");
        let asked = play.snapshot.reviews.values().find(|review| review.is_pending());
        assert_eq!(asked.is_some(), then, "{amount}");
        assert!(asked.is_none_or(|review| review.reviewers.roles == ["legal"]));
        if !then {
            play.call_task(&call);
        }
    }
}
