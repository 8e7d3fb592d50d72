//! The stages of decisions, and the storage of those that could not be sent.

use serde_json::json;
use shared::decision::Verdict;

use super::*;
use crate::state::fixtures::review;

fn sending(until: i64) -> Sending {
    let review = review(1, 1, json!({}));
    let request = DecisionRequest {
        revision: 1,
        digest: review.digest.clone(),
        verdict: Verdict::Text { text: "Shorter".into() },
        edits: shared::JsonMap::new(),
        comment: None,
        metadata: shared::JsonMap::new(),
    };
    Sending::held(&review, request, "k".into(), "Ask".into(), Timestamp(until))
}

#[test]
fn a_decision_can_be_undone_only_until_it_is_sent() {
    let mut outbox = Outbox::default();
    let one = sending(5);
    assert!(outbox.hold(one.clone()));
    assert!(!outbox.hold(one.clone()), "the second click does nothing");
    assert!(outbox.take_due(Some(Timestamp(4))).is_empty());
    assert_eq!(outbox.take_due(Some(Timestamp(5))).len(), 1);
    assert_eq!(outbox.undo(one.id), None);
    assert!(outbox.take_due(None).is_empty(), "it is sent once");
}

#[test]
fn a_decision_is_sent_before_the_deadline_takes_it() {
    let due = |at: i64| review(1, 1, json!({ "expires_at": Timestamp(at) }));
    assert_eq!(held_until(&due(60_000_000), Timestamp(0)).0, UNDO);
    assert_eq!(held_until(&due(4_000_000), Timestamp(0)).0, 2_000_000);
    assert_eq!(held_until(&due(1_000_000), Timestamp(0)).0, 0, "at once");
    assert_eq!(held_until(&review(1, 1, json!({})), Timestamp(7)).0, 7 + UNDO);
}

#[test]
fn what_a_page_that_is_being_closed_could_not_send_is_not_held_back() {
    let mut outbox = Outbox::default();
    let mut long = sending(5);
    long.request.verdict = Verdict::Text { text: "x".repeat(SENT_ON_LEAVING / 2) };
    assert!(outbox.fits(&long.request));
    outbox.hold(long.clone());
    assert!(!outbox.fits(&long.request), "both are too long together");
    assert!(outbox.fits(&sending(5).request));
    outbox.take_due(None);
    assert_eq!(outbox.unanswered().count(), 1, "what is on its way is broken off, too");

    // A decision that is too long to be sent on leaving is kept, in case the page is closed before it arrives.
    let mut longer = Sending { id: review(2, 1, json!({})).id, ..long };
    longer.request.verdict = Verdict::Text { text: "x".repeat(SENT_ON_LEAVING + 1) };
    let id = longer.id;
    outbox.hold(longer);
    let left: Vec<_> = outbox.on_leaving().into_iter().map(|(sending, fits)| (sending.id, fits)).collect();
    assert_eq!(left, [(sending(5).id, true), (id, false)]);
    assert!(outbox.stored(id).is_some());
}

#[test]
fn a_held_decision_on_what_somebody_else_has_ended_is_not_sent() {
    let mut outbox = Outbox::default();
    let one = sending(5);
    outbox.hold(one.clone());
    assert_eq!(outbox.held(), [one.id]);
    outbox.overtake(one.id);
    assert!(outbox.take_due(None).is_empty() && outbox.take(one.id).is_none());
    assert_eq!(outbox.get(one.id).unwrap().stage, Stage::Overtaken);
}

#[test]
fn what_never_arrived_keeps_its_key_and_can_be_sent_again() {
    let mut outbox = Outbox::default();
    let id = sending(5).id;
    outbox.hold(sending(5));
    outbox.take_due(None);
    outbox.answered(id, "k", Err(Problem::new(Code::Unavailable)), Timestamp(9));
    assert!(matches!(outbox.get(id).unwrap().stage, Stage::Unsent(_)));
    assert_eq!(outbox.take(id).unwrap().key, "k");
    outbox.answered(id, "k", Err(Problem::new(Code::ReviewResolved)), Timestamp(9));
    assert!(matches!(outbox.get(id).unwrap().stage, Stage::Refused(_)));
    assert_eq!(outbox.take(id), None);
}

#[test]
fn what_was_accepted_is_let_go_after_a_while_unless_it_is_open() {
    let mut outbox = Outbox::default();
    assert!(outbox.hold(sending(5)));
    let id = outbox.reviews()[0];
    assert!(!outbox.sweep(Timestamp(i64::MAX), None), "what is not answered yet stays");
    outbox.by_review.get_mut(&id).unwrap().stage = Stage::Accepted(DecisionEffect::Resolved, Timestamp(10));
    assert!(!outbox.sweep(Timestamp(9 + LINGER), None) && !outbox.sweep(Timestamp(10 + LINGER), Some(id)));
    assert!(outbox.sweep(Timestamp(10 + LINGER), None) && outbox.reviews().is_empty());
}

fn unsent() -> Outbox {
    let mut outbox = Outbox::default();
    outbox.hold(sending(5));
    outbox.take_due(None);
    outbox.answered(sending(5).id, "k", Err(Problem::new(Code::Unavailable)), Timestamp(9));
    outbox
}

#[test]
fn what_was_not_sent_is_kept_and_never_sent_by_itself() {
    let (id, owner) = (sending(5).id, "ana".parse().unwrap());
    let key = storage_key(&owner, id);
    assert_eq!(review_of_storage_key(&key, &owner), Some(id));
    assert_eq!(review_of_storage_key(&key, &"an".parse().unwrap()), None, "nobody else sees it");

    let kept = unsent().stored(id).unwrap();
    let mut later = Outbox::default();
    later.restore(id, &kept);
    let Sending { request, key, says, title, stage, .. } = later.get(id).unwrap().clone();
    let before = sending(5);
    assert_eq!((request, key, says, title), (before.request, before.key, before.says, before.title));
    assert_eq!((stage, later.unsent()), (Stage::Unsent(Reason::Kept), vec![id]));
    assert!(later.take_due(None).is_empty() && later.unanswered().next().is_none());
    assert_eq!(later.take(id).unwrap().key, "k", "it counts once, however often it is sent");
}

#[test]
fn what_its_review_shows_has_arrived() {
    let shows = |by: &str, revision: u32, said: &str| {
        let decision = json!({ "by": by, "at": Timestamp(3), "via": "human", "revision": revision,
            "digest": "", "verdict": { "type": "text", "text": said } });
        unsent().arrive(&review(1, 2, json!({ "decisions": [decision] })), &"ana".parse().unwrap())
    };
    assert!(shows("ana", 1, "Shorter"));
    assert!(!shows("tom", 1, "Shorter") && !shows("ana", 0, "Shorter") && !shows("ana", 1, "Longer"));
    let mut held = Outbox::default();
    held.hold(sending(5));
    assert!(!held.arrive(&review(1, 2, json!({})), &"ana".parse().unwrap()));
}

#[test]
fn what_may_hold_a_password_is_not_kept_in_the_browser() {
    let mut outbox = Outbox::default();
    outbox.hold(Sending { in_memory: true, ..sending(5) });
    assert_eq!(outbox.stored(sending(5).id), None);
}

#[test]
fn another_tab_that_sends_it_settles_it_here_too() {
    let id = sending(5).id;
    let mut outbox = unsent();
    let kept = outbox.stored(id).unwrap();
    outbox.settle_elsewhere(id);
    assert_eq!(outbox.get(id), None);
    outbox.restore(id, &kept);
    assert_eq!(outbox.unsent(), [id]);
    outbox.take(id);
    outbox.settle_elsewhere(id);
    assert_eq!(outbox.get(id).unwrap().stage, Stage::Sending, "the answer is on its way here");
}

#[test]
fn what_got_no_answer_can_be_sent_once_the_connection_is_back() {
    let id = sending(5).id;
    let mut outbox = unsent();
    assert!(outbox.connect() && !outbox.connect());
    assert_eq!(outbox.get(id).unwrap().stage, Stage::Unsent(Reason::Connected));
    assert!(outbox.overtake(id), "somebody else was first meanwhile");
    assert!(outbox.unsent().is_empty() && outbox.take(id).is_none());
}

#[test]
fn who_takes_one_back_is_told_which_and_what_is_still_sent() {
    assert_eq!(undone("Send this?", 0), "Undone: “Send this?”. Nothing was sent.");
    assert_eq!(undone("Ship it", 1), "Undone: “Ship it”. 1 other decision is still being sent.");
    assert_eq!(undone("Ship it", 2), "Undone: “Ship it”. 2 other decisions are still being sent.");
    assert_eq!((not_sent(1), not_sent(2)), ("1 decision not sent".into(), "2 decisions not sent".into()));
}
