//! The chain of handlers: each that may pass on, before and after every other.

use shared::definition::Handler;

use super::programs::{ASKED, PASSING, asked, source};
use super::*;

const JUDGE: &str = "{ judge: { model: demo/judge, criteria: Be kind. } }";

/// Every handler that may pass on, before every other: each is asked, in order, and what each said is on the record.
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
    let handlers = [
        ("demo/judge", JUDGE, judge),
        ("own", OWN, function),
        ("soft.test", PASSING, webhook),
        ("soft.test", PASSING, later),
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

/// A function can be named in no file: the flow is built.
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
