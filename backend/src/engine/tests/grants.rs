//! Calls that a grant covers.

use shared::grant::{GrantScope, Remember};

use super::*;

const DEPLOY: &str = r#"
id: deploy
agents:
  ops: { model: demo/ops, tools: [deploy, drop], max_turns: 9 }
tools:
  deploy:
    http: { url: "https://example.com/deploy" }
    parameters: { type: object, properties: { to: { type: string }, what: { type: string } } }
  drop: { http: { url: "https://example.com/drop" } }
nodes:
  ship: { agent: ops, prompt: Ship. }
gates:
  before_tool:
    deploy: { severity: high, allowed_decisions: [approve, reject], reviewers: { not_requester: true } }
    drop: { severity: critical, reviewers: { not_requester: true } }
"#;

fn remember(scope: GrantScope, arguments: &[&str]) -> ActionDecision {
    let arguments = arguments.iter().map(|name| (*name).to_owned()).collect();
    ActionDecision::Approve { remember: Some(Remember { scope, for_ms: Some(3_600_000), arguments }) }
}

fn deploy(play: &mut Play, to: &str, what: &str) {
    play.model("ship", calls([("deploy", json!({ "to": to, "what": what }))]));
}

/// Returns a result for a call of the tool.
fn done(play: &mut Play, call: &str) {
    let task = play.call_task(call);
    play.returned(&task, json!("done"));
}

fn waits(play: &Play) -> bool {
    play.status() == RunStatus::WaitingForHuman
}

#[test]
fn what_was_allowed_for_the_run_is_not_asked_again_and_stands_on_the_record() {
    let mut play = Play::start(DEPLOY, json!({}));
    deploy(&mut play, "staging", "web");
    play.decide(answer_actions([("c1-1", remember(GrantScope::Run, &["to"]))]));
    assert_eq!(play.kinds().iter().filter(|kind| **kind == "grant.made").count(), 1);
    done(&mut play, "c1-1");

    deploy(&mut play, "staging", "api");
    assert!(!waits(&play));
    let resolved = play.events.iter().find(|event| event.kind == EntryKind::ReviewResolved).expect("on the record");
    let review = play.past(resolved.review_id.unwrap()).clone();
    let decision = &review.decisions[0];
    assert_eq!((&*decision.by, decision.via, decision.grant.is_some()), ("ana", Via::Auto, true));
    assert_eq!(review.actions[0].arguments["what"], "api");
    assert!(play.kinds().contains(&"grant.used"));
    let executed = play.tool_work(&play.call_task("c2-1")).arguments;
    assert_eq!(executed, review.actions[0].arguments, "what is executed is what is on the record");
    done(&mut play, "c2-1");

    deploy(&mut play, "production", "web");
    assert!(waits(&play), "another value of what was named");
    play.decide(answer_actions([("c3-1", ActionDecision::APPROVE)]));
    done(&mut play, "c3-1");
    play.now = play.now.after(Duration::from_hours(1));
    deploy(&mut play, "staging", "web");
    assert!(waits(&play), "its time is over");
}

#[test]
fn the_settings_limit_a_grant_and_the_record_has_the_hash_of_the_request_as_it_was_sent() {
    let mut play = Play::start(DEPLOY, json!({}));
    deploy(&mut play, "staging", "web");
    let review = play.review();
    let remember = Some(Remember { scope: GrantScope::Flow, for_ms: None, arguments: Vec::new() });
    let request = request(&review, answer_actions([("c1-1", ActionDecision::Approve { remember })]));
    let sent = digest::of_request(&request);
    let mut input = Input::decide(review.id, ana(), Via::Human, request);
    if let Input::Decide { longest_grant_ms, .. } = &mut input {
        *longest_grant_ms = Some(60_000);
    }
    play.apply(input);
    let grant = &play.snapshot.grants[0].grant;
    assert_eq!(grant.expires_at.since(grant.given_at), Duration::from_mins(1));
    assert_eq!(play.past(review.id).decisions[0].sent, Some(sent));
}

#[test]
fn a_grant_allows_no_more_than_its_giver_may_now() {
    let mut play = Play::start(DEPLOY, json!({}));
    deploy(&mut play, "staging", "web");
    play.decide(answer_actions([("c1-1", remember(GrantScope::Flow, &[]))]));
    done(&mut play, "c1-1");
    play.snapshot.grants[0].giver = person("ana", &["editor"]);
    deploy(&mut play, "staging", "web");
    assert!(waits(&play), "its giver reviews no more");
    play.decide(answer_actions([("c2-1", ActionDecision::APPROVE)]));
    done(&mut play, "c2-1");
    play.snapshot.grants[0].giver = person("dev", &["reviewer"]);
    deploy(&mut play, "staging", "web");
    assert!(waits(&play), "nobody allows what they started");
    play.decide(answer_actions([("c3-1", ActionDecision::APPROVE)]));
    done(&mut play, "c3-1");
    play.snapshot.grants[0].giver = ana();
    play.model("ship", calls([("deploy", json!({})), ("drop", json!({}))]));
    assert_eq!(play.review().actions.len(), 1, "what is critical is asked");
}

#[test]
fn what_may_not_be_allowed_for_later_is_refused_with_its_place() {
    let mut play = Play::start(DEPLOY, json!({}));
    play.model("ship", calls([("deploy", json!({ "to": "staging" })), ("drop", json!({}))]));
    let review = play.review();
    assert_eq!(review.grantable, ["c1-1"], "only what may be allowed is offered");
    let both = answer_actions([
        ("c1-1", remember(GrantScope::Run, &["to", "region"])),
        ("c1-2", remember(GrantScope::Run, &[])),
    ]);
    let refused = mistakes(play.try_decide(review.id, &ana(), request(&review, both)).unwrap_err());
    let expected = [
        ("/verdict/decisions/c1-1/remember/arguments/1".to_owned(), "unknown".to_owned()),
        ("/verdict/decisions/c1-2/remember".to_owned(), "not_allowed".to_owned()),
    ];
    assert_eq!(refused, expected);
    let one = answer_actions([("c1-1", remember(GrantScope::Run, &[])), ("c1-2", ActionDecision::APPROVE)]);
    let lea = shared::access::Absent { username: "lea".parse().unwrap(), roles: ["reviewer".to_owned()].into() };
    let deputy = Principal { stands_for: vec![lea], ..person("tom", &[]) };
    let refused = mistakes(play.try_decide(review.id, &deputy, request(&review, one)).unwrap_err());
    assert_eq!(refused[0].1, "not_allowed", "who decides for somebody else allows nothing more");
}

#[test]
fn a_token_cannot_allow_what_comes_later() {
    let mut play = Play::start(DEPLOY, json!({}));
    deploy(&mut play, "staging", "web");
    let review = play.review();
    let token = Principal { token: true, ..ana() };
    let allow = |answer| request(&review, answer_actions([("c1-1", answer)]));
    let refused = play.try_decide(review.id, &token, allow(remember(GrantScope::Run, &[]))).unwrap_err();
    assert_eq!(mistakes(refused)[0].0, "/verdict/decisions/c1-1/remember");
    play.try_decide(review.id, &token, allow(ActionDecision::APPROVE)).unwrap();
}

#[test]
fn what_a_template_says_of_the_severity_may_be_critical_so_that_nothing_is_offered() {
    let source = DEPLOY
        .replace("severity: high", "severity: '{{ severity }}'")
        .replace("id: deploy\n", "id: deploy\ninput: { type: object }\n");
    let mut play = Play::start(&source, json!({ "severity": "low" }));
    deploy(&mut play, "staging", "web");
    let review = play.review();
    assert!(review.grantable.is_empty());
    let answer = answer_actions([("c1-1", remember(GrantScope::Run, &[]))]);
    let refused = mistakes(play.try_decide(review.id, &ana(), request(&review, answer)).unwrap_err());
    assert_eq!(refused, [("/verdict/decisions/c1-1/remember".to_owned(), "not_allowed".to_owned())]);
}

#[test]
fn four_eyes_hold_for_what_a_grant_allows_too() {
    let source = r#"
id: pay
agents: { clerk: { model: demo/clerk, tools: [pay], max_turns: 9 } }
tools: { pay: { http: { url: "https://example.com/pay" }, parameters: { type: object } } }
nodes:
  first: { agent: clerk, prompt: Pay., next: again }
  again: { agent: clerk, prompt: Pay again., next: check }
  check: { human: { prompt: Paid?, options: [{ id: ok, label: OK }], reviewers: { not_same_as: again } } }
gates: { before_tool: { pay: true } }
"#;
    let mut play = Play::start(source, json!({}));
    play.model("first", calls([("pay", json!({}))]));
    play.decide(answer_actions([("c1-1", remember(GrantScope::Run, &[]))]));
    done(&mut play, "c1-1");
    play.model("first", text("Paid."));
    play.model("again", calls([("pay", json!({}))]));
    assert!(!waits(&play), "ana has allowed it");
    done(&mut play, "c1-1");
    play.model("again", text("Paid."));
    let review = play.review();
    let refused = play.try_decide(review.id, &ana(), request(&review, choose("ok")));
    assert!(matches!(refused, Err(Refusal::Forbidden(_))), "by her grant she has decided there: {refused:?}");
    play.try_decide(review.id, &person("tom", &["reviewer"]), request(&review, choose("ok"))).unwrap();
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn what_was_allowed_for_one_agent_is_asked_about_for_another() {
    let source = DEPLOY
        .replace("max_turns: 9 }", "max_turns: 9 }\n  other: { model: demo/other, tools: [deploy] }")
        .replace("prompt: Ship. }", "prompt: Ship., next: again }\n  again: { agent: other, prompt: Ship. }");
    let mut play = Play::start(&source, json!({}));
    deploy(&mut play, "staging", "web");
    play.decide(answer_actions([("c1-1", remember(GrantScope::Run, &[]))]));
    done(&mut play, "c1-1");
    play.model("ship", text("Shipped."));
    play.model("again", calls([("deploy", json!({ "to": "staging", "what": "web" }))]));
    assert!(waits(&play), "the grant is of another agent");
}
