//! Four eyes (`not_same_as`): whoever decided or voted at a step may not decide what checks it.

use super::teams::{TEAM, says};
use super::*;

const PAY: &str = r#"
id: pay
input: { type: object, properties: { to: { type: string }, sum: { type: number } } }
nodes:
  ask:
    human:
      prompt: Pay?
      review_keys: [to, sum]
      edit_keys: [to, sum]
      options: [{ id: yes, label: "Yes" }]
      policy: { quorum: 2 }
      timeout: 1h
      on_timeout: approve
    next: check
  check:
    human:
      prompt: Really?
      options: [{ id: yes, label: "Yes" }]
      reviewers: { not_same_as: ask }
"#;

/// `ask` is visited again while `check` waits.
const AGAIN: &str = r#"
id: again
input: { type: object, properties: { to: { type: string } } }
nodes:
  ask:
    human: { prompt: Pay?, review_keys: [to], edit_keys: [to], options: [{ id: yes, label: "Yes" }] }
    next: [{ to: list, when: "visit == 1" }, { to: note, when: "visit == 1" }, { to: end, else: true }]
  list: { set: { listed: "yes" }, next: check }
  note: { set: { noted: "yes" }, next: ask }
  check:
    human:
      prompt: Really?
      review_keys: [to]
      options: [{ id: yes, label: "Yes" }]
      reviewers: { not_same_as: ask }
"#;

fn start(source: &str) -> Play {
    let everyone = ["ana", "bob", "cid"].map(who);
    Play::try_start_among(compile(source), json!({ "to": "shop", "sum": 5 }), &everyone).unwrap()
}

fn who(name: &str) -> Principal {
    person(name, &["reviewer"])
}

fn decide(play: &mut Play, review: &Review, name: &str, edits: Value) -> Result<(), Refusal> {
    let request = DecisionRequest { edits: object(edits), ..request(review, choose("yes")) };
    play.try_decide(review.id, &who(name), request)
}

fn pending_at(play: &Play, node: &str) -> Review {
    let at = |review: &&Review| review.is_pending() && review.node.as_deref() == Some(node);
    play.snapshot.reviews.values().find(at).cloned().unwrap()
}

fn barred(review: &Review) -> Vec<&str> {
    review.barred.iter().map(|name| &**name).collect()
}

#[test]
fn a_vote_counts_even_if_it_is_void_later() {
    let mut play = start(PAY);
    for (name, edits) in [("ana", json!({ "to": "ana" })), ("bob", json!({ "sum": 9 })), ("cid", json!({}))] {
        let review = play.review();
        decide(&mut play, &review, name, edits).unwrap();
    }
    let check = play.review();
    assert_eq!((play.key("to"), barred(&check)), (&json!("ana"), vec!["ana", "bob", "cid"]));
    assert!(check.problem.is_some(), "everybody took part");
}

#[test]
fn a_vote_counts_even_if_a_timer_decides() {
    let mut play = start(PAY);
    let review = play.review();
    decide(&mut play, &review, "ana", json!({ "to": "ana" })).unwrap();
    play.now = play.now.after(Duration::from_hours(1));
    let task = *play.tasks.keys().next().unwrap();
    play.apply(Input::Due { task });
    let check = play.review();
    assert_eq!((play.key("to"), barred(&check)), (&json!("ana"), vec!["ana"]));
    let refused = decide(&mut play, &check, "ana", json!({})).unwrap_err();
    assert!(matches!(refused, Refusal::Forbidden(why) if why.contains("four eyes")));
    decide(&mut play, &check, "bob", json!({})).unwrap();
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn whoever_decides_the_step_later_may_no_longer_check_it() {
    for policy in ["first", "unanimous"] {
        let source = AGAIN.replace("      reviewers: {", &format!("      policy: {policy}\n      reviewers: {{"));
        let mut play = start(&source);
        let first = play.review();
        decide(&mut play, &first, "cid", json!({})).unwrap();
        let check = pending_at(&play, "check");
        play.apply(Input::Claim { review: check.id, by: who("ana"), via: Via::Human });
        if policy == "unanimous" {
            decide(&mut play, &check, "ana", json!({})).unwrap();
        }
        let second = pending_at(&play, "ask");
        decide(&mut play, &second, "ana", json!({ "to": "ana" })).unwrap();
        let check = pending_at(&play, "check");
        assert_eq!((barred(&check), check.claimed_by.as_ref(), check.decisions.len()), (vec!["ana", "cid"], None, 0));
        let lost = play.events.iter().rev().find_map(|event| event.data.get("lost"));
        assert_eq!(lost, Some(&json!(["ana"])), "{policy}");
        let refused = decide(&mut play, &check, "ana", json!({})).unwrap_err();
        assert!(matches!(refused, Refusal::Forbidden(why) if why.contains("four eyes")));
        decide(&mut play, &check, "bob", json!({})).unwrap();
        assert_eq!(play.status(), RunStatus::Completed);
    }
}

#[test]
fn whoever_let_a_member_of_a_team_or_a_routers_agent_begin_may_not_check_it() {
    let check = "human: { prompt: Good?, reviewers: { not_same_as: work }, ";
    let team =
        TEAM.replace("GATES", "gates: { before_agent: { critic: true } }").replace("MORE", "strategy: sequential");
    let team = team.replace("human: { prompt: Good?, ", check);
    let router = format!(
        "id: route\nagents: {{ guide: {{ model: demo/guide }} }}\ngates: {{ before_agent: {{ guide: true }} }}\nnodes:\n  \
         work: {{ router: {{ agent: guide }}, next: [check, other] }}\n  other: {{ set: {{ x: 1 }} }}\n  \
         check: {{ {check} options: [{{ id: ok, label: OK }}] }} }}\n"
    );
    for (source, before, after) in [(team.as_str(), Some("researcher"), "critic"), (router.as_str(), None, "guide")] {
        let mut play = Play::try_start_among(compile(source), json!({ "q": "it" }), &["ana", "bob"].map(who)).unwrap();
        if let Some(before) = before {
            says(&mut play, before, text("Yes."));
        }
        play.decide(answer_actions([("agent", ActionDecision::Approve { remember: None })]));
        says(&mut play, after, text("check"));
        let review = pending_at(&play, "check");
        assert_eq!(barred(&review), ["ana"], "{after}");
        play.try_decide(review.id, &who("bob"), request(&review, choose("ok"))).unwrap();
        assert_eq!(play.status(), RunStatus::Completed);
    }
}
