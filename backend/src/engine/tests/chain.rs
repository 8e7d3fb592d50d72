//! The chain of handlers: each handler that may pass on, before and after each other one.

use shared::definition::Handler;

use super::programs::{ASKED, PASSING, asked, source};
use super::*;

const JUDGE: &str = "{ judge: { model: demo/judge, criteria: Be kind. } }";

/// Tests every handler that may pass on before every other one: they are asked in order, and the advice of each is
/// recorded.
#[test]
fn handlers_are_asked_in_their_order_whatever_they_are() {
    type Pass = fn(&mut Play);
    let judge: Pass = |play| {
        play.model("ask", text(r#"{ "approved": true, "confidence": 0.1, "reasoning": "Hm." }"#));
    };
    let function: Pass = |play| play.says("ask", HandlerAnswer::Passes { reason: "Not mine.".to_owned() });
    let webhook: Pass = |play| play.fails("ask", "Webhook returned 404", false);
    let later: Pass = |play| {
        play.says("ask", HandlerAnswer::Later);
        play.deadline();
    };
    let channel: Pass = |play| play.deadline();
    let handlers = [
        ("demo/judge", JUDGE, judge),
        ("own", OWN, function),
        ("soft.test", PASSING, webhook),
        ("soft.test", PASSING, later),
        ("#approvals", CHANNEL, channel),
    ];
    for (first, one, pass_one) in handlers {
        for (second, other, pass_other) in handlers {
            let mut play = asked_of_built(&[one, other]);
            pass_one(&mut play);
            pass_other(&mut play);
            let review = play.review();
            let said: Vec<_> = review.advice.iter().map(|advice| advice.by.as_str()).collect();
            assert_eq!(said, [first, second]);
            assert_eq!((review.expires_at.is_some(), &review.asked), (true, &None), "{said:?}");
            play.decide(choose("yes"));
            assert_eq!(play.status(), RunStatus::Completed);

            let mut play = asked_of_built(&[one, other, "{ auto: reject }"]);
            pass_one(&mut play);
            pass_other(&mut play);
            assert_eq!(play.error().1, "Rejected automatically.", "{said:?}");
            assert_eq!(play.only_review().advice.len(), 2);
        }
    }
}

const OWN: &str = "{ function: own }";

/// A function cannot be named in a file, so the flow is built.
fn asked_of_built(handlers: &[&str]) -> Play {
    let file = ASKED.replace("HANDLERS", "human");
    let mut flow = flow::check(&file).flow.unwrap();
    let shared::definition::NodeKind::Human(human) = &mut flow.nodes.get_mut("ask").unwrap().kind else { panic!() };
    human.handlers = Some(handlers.iter().map(|handler| handler_of(handler)).collect());
    let mut play = Play::try_start(Compiled::new(flow, 1).unwrap(), json!({})).unwrap();
    play.model("write", text("A text"));
    play
}

fn handler_of(yaml: &str) -> Handler {
    if yaml == OWN {
        return Handler::Function("own".to_owned());
    }
    let flow = compile(&source(yaml)).flow.clone();
    let shared::definition::NodeKind::Human(human) = &flow.nodes["ask"].kind else { panic!() };
    human.handlers.as_ref().unwrap()[0].clone()
}

#[test]
fn a_judge_beside_a_pending_review_is_heard_if_people_are_not_first() {
    let mut play = asked(&format!("{PASSING}, {JUDGE}"));
    play.says("ask", HandlerAnswer::Later);
    play.deadline();
    assert_eq!(play.review().asked.unwrap().by, "demo/judge");
    let mut by_person = play.again();
    by_person.decide(choose("yes"));
    assert_eq!(by_person.status(), RunStatus::Completed);
    let verdict = r#"{ "approved": true, "confidence": 1, "reasoning": "Fine." }"#;
    play.model("ask", text(verdict));
    assert_eq!(play.key("said"), &json!("yes judge 0"));
    assert_eq!(play.only_review().advice.len(), 2);
}

const CHANNEL: &str = "{ slack: { channel: '#approvals', timeout: 10m } }";

#[test]
fn a_channel_is_asked_while_everybody_may_decide_and_the_next_after_its_time() {
    let mut play = asked(&format!("{CHANNEL}, {JUDGE}"));
    let review = play.review();
    let in_channel = review.asked.clone().unwrap();
    assert_eq!((&*in_channel.by, in_channel.via), ("#approvals", Via::Slack));
    assert_eq!((review.expires_at, play.status()), (None, RunStatus::WaitingForHuman));
    let mut there = play.again();
    there.decide(choose("yes"));
    assert_eq!(there.status(), RunStatus::Completed);

    play.deadline();
    let review = play.review();
    assert_eq!(review.asked.unwrap().by, "demo/judge", "the next is asked beside it");
    let said: Vec<_> = review.advice.iter().map(|advice| (&*advice.by, &*advice.reason)).collect();
    assert_eq!(said, [("#approvals", "Nobody there has decided in time.")]);
    let verdict = r#"{ "approved": true, "confidence": 1, "reasoning": "Fine." }"#;
    play.model("ask", text(verdict));
    assert_eq!(play.key("said"), &json!("yes judge 0"));
}

#[test]
fn a_channel_without_a_time_of_its_own_waits_as_long_as_the_review() {
    let play = asked("{ slack: { channel: C012345 } }");
    let review = play.review();
    assert_eq!(review.asked.as_ref().map(|asked| (&*asked.by, asked.until)), Some(("C012345", None)));
    assert!(review.expires_at.is_some());
}

#[test]
fn people_vote_in_a_channel_until_auto_decides() {
    let handlers = format!("{CHANNEL}, {{ auto: reject }}");
    let voted = source(&handlers).replace("      handlers:", "      policy: { quorum: 2 }\n      handlers:");
    let everyone = ["ana", "bob"].map(|name| person(name, &["reviewer"]));
    let mut play = Play::try_start_among(compile(&voted), json!({}), &everyone).unwrap();
    play.model("write", text("A text"));
    let vote = |play: &mut Play, by: &Principal| {
        let review = play.review();
        play.try_decide(review.id, by, request(&review, choose("yes"))).unwrap();
    };
    vote(&mut play, &everyone[0]);
    let mut late = play.again();
    vote(&mut play, &everyone[1]);
    assert_eq!(play.status(), RunStatus::Completed);
    late.deadline();
    assert_eq!(late.error().1, "Rejected automatically.");
}

const CHANGED: &str = "
id: changed
agents: { clerk: { model: demo/clerk, output_schema: { type: object, properties: { order: {}, menu: {} } } } }
nodes:
  begin: { router: {}, next: [before, change] }
  before: { set: { asked: true }, next: ask }
  ask:
    human:
      prompt: Pay {{ order.total }}?
      consequences: ['{{ order.total }} EUR leave the account.']
      options_key: menu
      TIMEOUT
      handlers: [HANDLERS]
  change: { agent: clerk, prompt: Change it. }
";

/// Asks in a channel first, and then these handlers; the state has changed meanwhile.
fn asked_before_a_change(timeout: &str, next: &str, menu: &Value) -> Play {
    let source = CHANGED.replace("TIMEOUT", timeout).replace("HANDLERS", &format!("{CHANNEL}, {next}"));
    let mut play = Play::start(&source, json!({ "order": { "total": 5 }, "menu": menu }));
    play.model("change", text(r#"{ "order": "gone", "menu": "gone" }"#));
    play.deadline();
    play
}

#[test]
fn a_pending_review_stays_as_it_was_asked_when_its_handler_passes_on() {
    let mut play = asked_before_a_change("timeout: 1h", "human", &json!(["Yes"]));
    let review = play.review();
    let until = review.expires_at.map(|at| at.since(play.now));
    assert_eq!((&*review.prompt, until), ("Pay 5?", Some(Duration::from_hours(1))));
    assert_eq!(review.stakes.consequences, ["5 EUR leave the account."]);
    play.decide(choose("Yes"));
    assert_eq!(play.status(), RunStatus::Completed);

    let mut play = asked_before_a_change("timeout: 1h", PASSING, &json!(["Yes"]));
    assert_eq!(play.shown("ask").prompt, "Pay 5?", "a program is shown what people see");
    let answer = Box::new(ProgramAnswer { approved: Some(true), ..ProgramAnswer::default() });
    play.says("ask", HandlerAnswer::Decides { answer });
    assert_eq!(play.status(), RunStatus::Completed);
}

#[test]
fn a_pending_review_ends_with_its_step_if_the_next_handler_cannot_answer() {
    let only_no = json!([{ "id": "no", "label": "No", "kind": "stop" }]);
    let play = asked_before_a_change("severity: low", "{ auto: approve }", &only_no);
    assert_eq!(play.error().0, FlowCode::FlowInvalid);
    assert_eq!(play.only_review().status, ReviewStatus::Withdrawn);
}
