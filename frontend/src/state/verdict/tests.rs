//! The content of decisions, and the mistakes that prevent sending them.

use serde_json::json;
use shared::definition::Severity;

use super::*;
use crate::state::drafts::Chosen;
use crate::state::fixtures::{calls, review};

fn draft(text: &str) -> Draft {
    Draft { revision: 1, text: text.into(), ..Draft::default() }
}

#[test]
fn edits_go_with_an_acceptance_and_with_nothing_else() {
    let review = review(1, 1, json!({}));
    let mut draft = draft("Nice");
    draft.edit("draft", json!("Hi"), &json!("Hello"));
    let accept = request(&review, &draft, &Intent::Choose("approve".into())).unwrap();
    assert_eq!((accept.edits.len(), accept.comment.as_deref()), (1, Some("Nice")));
    assert_eq!(option_says(&review, &draft, &review.options[0]), "Looks good, with your edit");
    let correct = request(&review, &draft, &Intent::Choose("shorten".into())).unwrap();
    assert!(correct.edits.is_empty());
}

#[test]
fn critical_calls_are_decided_one_by_one() {
    let mut review = calls(1, 1);
    review.stakes.severity = Severity::Critical;
    let mut draft = Draft { revision: 1, ..Draft::default() };
    for all in [Intent::ApproveAll, Intent::RejectAll] {
        assert!(request(&review, &draft, &all).is_err());
    }
    assert_eq!(actions_say(&review, &draft), (Intent::Actions, "Decide 2 calls".into()));
    for id in ["a1", "a2"] {
        draft.actions.entry(id.into()).or_default().chosen = Some(Chosen::Answer(ActionKind::Approve));
    }
    assert!(request(&review, &draft, &Intent::Actions).is_ok());
    review.actions.truncate(1);
    assert!(request(&review, &Draft::default(), &Intent::ApproveAll).is_ok(), "a single call is no batch");
}

#[test]
fn what_was_written_on_an_older_revision_is_not_sent() {
    let newer = review(1, 2, json!({"revision": 2}));
    let refused = request(&newer, &draft("Nice"), &Intent::Choose("approve".into())).unwrap_err();
    assert_eq!(refused[0].path, "/revision");
    let refused = request(&newer, &Draft::default(), &Intent::Choose("approve".into()));
    assert!(refused.is_ok(), "nothing was written");
}

#[test]
fn a_correction_needs_a_message_and_a_visit() {
    let plain = review(1, 1, json!({}));
    let refused = request(&plain, &draft(" "), &Intent::Choose("longer".into())).unwrap_err();
    assert_eq!(refused[0].path, "/comment");
    let spent = review(1, 1, json!({"source": {"node": "draft", "visits": 5, "max_visits": 5}}));
    assert!(request(&spent, &draft("Shorter"), &Intent::Text).is_err());
    assert!(request(&spent, &draft(""), &Intent::Choose("approve".into())).is_ok());
}

#[test]
fn no_action_may_be_left_out() {
    let review = calls(1, 1);
    let mut draft = draft("");
    assert_eq!(actions_say(&review, &draft), (Intent::ApproveAll, "Approve all 2".into()));
    draft.actions.entry("a1".into()).or_default().chosen = Some(Chosen::Answer(ActionKind::Reject));
    assert_eq!(actions_say(&review, &draft).1, "Decide 1 more");
    assert!(request(&review, &draft, &Intent::Actions).is_err());
    let second = draft.actions.entry("a2".into()).or_default();
    second.chosen = Some(Chosen::Answer(ActionKind::Edit));
    second.arguments = Some(json!({"path": "/b"}).as_object().unwrap().clone());
    assert_eq!(actions_say(&review, &draft).1, "Approve 1 with edits, reject 1");
    let Verdict::Actions { decisions, .. } = request(&review, &draft, &Intent::Actions).unwrap().verdict else {
        panic!("actions are answered one by one")
    };
    assert_eq!(decisions["a1"], ActionDecision::Reject { message: None });
    assert!(matches!(&decisions["a2"], ActionDecision::Edit { arguments } if arguments["path"] == "/b"));
}

#[test]
fn an_alternative_is_chosen_in_place_of_a_call_and_takes_the_place_of_what_was_chosen() {
    let mut review = calls(1, 1);
    review.actions.truncate(1);
    review.stakes.alternatives =
        serde_json::from_value(json!(["Wait.", { "id": "draft", "description": "Keep a draft" }])).unwrap();
    let mut draft = draft("");
    draft.actions.entry("a1".into()).or_default().chosen = Some(Chosen::Alternative { alternative: "draft".into() });
    assert_eq!(actions_say(&review, &draft), (Intent::Actions, "Choose “Keep a draft”".into()));
    let chosen = request(&review, &draft, &Intent::Actions).unwrap().verdict;
    let wanted = json!({ "type": "actions", "decisions": { "a1": { "type": "choose", "alternative": "draft" } } });
    assert_eq!(json!(chosen), wanted);
    review.stakes.alternatives.clear();
    assert!(request(&review, &draft, &Intent::Actions).is_err(), "it is not offered any more");
}

#[test]
fn a_form_that_was_only_opened_decides_nothing() {
    let mut review = calls(1, 1);
    let mut draft = draft("");
    for id in ["a1", "a2"] {
        let action = draft.actions.entry(id.into()).or_default();
        action.chosen = Some(Chosen::Answer(ActionKind::Edit));
        action.arguments = Some(review.actions[0].arguments.clone());
    }
    assert_eq!(actions_say(&review, &draft), (Intent::ApproveAll, "Approve all 2".into()));
    assert!(request(&review, &draft, &Intent::Actions).is_err());
    let decisions = |review: &Review, draft: &Draft, intent: Intent| match request(review, draft, &intent) {
        Ok(DecisionRequest { verdict: Verdict::Actions { decisions, .. }, .. }) => decisions,
        other => panic!("actions are answered one by one: {other:?}"),
    };
    let all = decisions(&review, &draft, Intent::ApproveAll);
    assert!(all.values().all(|decision| *decision == ActionDecision::APPROVE));

    // Where only edits are allowed, an edit that changes nothing is an approval, and is called one.
    for action in &mut review.actions {
        action.allowed_decisions = vec![ActionKind::Edit, ActionKind::Reject];
    }
    assert_eq!(actions_say(&review, &draft), (Intent::Actions, "Approve 2".into()));
    let all = decisions(&review, &draft, Intent::Actions);
    assert!(all.values().all(|decision| matches!(decision, ActionDecision::Edit { .. })));
}

#[test]
fn it_is_said_which_calls_are_critical() {
    let mut review = calls(1, 1);
    assert_eq!(one_by_one(&review), "These calls are critical. Open and decide each one separately.");
    let stakes = |severity: &str| serde_json::from_value(json!({ "severity": severity })).unwrap();
    review.actions[0].stakes = Some(stakes("critical"));
    assert!(one_by_one(&review).starts_with("One of these calls is critical."));
    review.actions[1].stakes = Some(stakes("critical"));
    assert!(one_by_one(&review).starts_with("These calls are critical."));
}

#[test]
fn nothing_is_sent_of_a_form_with_a_text_that_cannot_be_read() {
    let with = |place: &str| {
        let mut draft = draft("");
        draft.unparsed.insert(place, "{\"path\": ".into());
        draft
    };
    let plain = review(1, 1, json!({}));
    let refused = |draft: &Draft, intent| request(&plain, draft, &intent).unwrap_err()[0].path.clone();
    let choose = |option: &str| Intent::Choose(option.to_owned());
    for place in ["/edits/draft", "/edits/draft/rows/1"] {
        assert_eq!(refused(&with(place), choose("approve")), place);
    }
    assert!(request(&plain, &with("/edits/draft"), &choose("reject")).is_ok(), "it sends no edits");
    assert_eq!(refused(&with(METADATA), choose("reject")), METADATA);

    let calls = calls(1, 1);
    for inside in ["", "/headers"] {
        let place = arguments_place("a1") + inside;
        let mut draft = with(&place);
        for (id, kind) in [("a1", ActionKind::Edit), ("a2", ActionKind::Approve)] {
            draft.actions.entry(id.into()).or_default().chosen = Some(Chosen::Answer(kind));
        }
        for intent in [Intent::Actions, Intent::ApproveAll] {
            let mistakes = request(&calls, &draft, &intent).unwrap_err();
            assert_eq!(mistakes[0].path, place, "not approved as requested, either");
        }
        assert!(request(&calls, &draft, &Intent::RejectAll).is_ok());
    }
}

#[test]
fn a_number_without_a_schema_is_not_sent_as_text() {
    let mut calls = calls(1, 1);
    calls.actions.truncate(1);
    calls.actions[0].arguments = [("amount".to_owned(), json!(12))].into_iter().collect();
    let mut draft = draft("");
    let own = draft.actions.entry("a1".into()).or_default();
    own.chosen = Some(Chosen::Answer(ActionKind::Edit));
    own.arguments = Some([("amount".to_owned(), json!("12,50"))].into_iter().collect());
    let mistakes = request(&calls, &draft, &Intent::Actions).unwrap_err();
    assert_eq!(mistakes[0].path, "/verdict/decisions/a1/arguments/amount");
}
