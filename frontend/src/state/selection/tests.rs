//! What can be selected, and what becomes of choices and of the note.

use serde_json::{Value, json};

use super::*;
use crate::state::fixtures::{calls, resolved, review};

fn refused(review: &Review) -> Option<&'static str> {
    refusal(review, Access::Allowed, Begun::default())
}

fn says(patch: Value) -> &'static str {
    refused(&review(1, 1, patch)).unwrap_or("it can")
}

#[test]
fn only_what_needs_no_more_than_a_click_is_decided_with_others() {
    assert_eq!(says(json!({})), "it can");
    assert_eq!(refused(&calls(1, 1)), None);
    assert_eq!(says(json!({ "severity": "high" })), "it can");
    let cases = [
        (json!({ "severity": "critical" }), "critical"),
        (json!({ "kind": "clarification" }), "question"),
        (json!({ "kind": "edit" }), "text"),
        (json!({ "kind": "handoff" }), "hands off"),
        (json!({ "options": [] }), "in words"),
        (
            json!({ "options": [
                { "id": "ok", "kind": "accept", "label": "Approve", "fields": { "type": "object" } },
                { "id": "again", "kind": "correct", "label": "Again" },
            ] }),
            "filled in",
        ),
    ];
    for (patch, expected) in cases {
        assert!(says(patch.clone()).contains(expected), "{patch}: {}", says(patch.clone()));
    }
    let mut calls = calls(1, 1);
    calls.actions[0].allowed_decisions = vec![ActionKind::Edit, ActionKind::Respond];
    assert!(refused(&calls).unwrap().contains("open it to decide each"));
}

#[test]
fn what_cannot_be_decided_now_is_not_selected() {
    assert!(refused(&resolved(1, 2, "tom")).unwrap().contains("over"));
    let review = review(1, 1, json!({}));
    assert_eq!(refusal(&review, Access::Denied("you are barred"), Begun::default()), Some("you are barred"));
    for begun in [
        Begun { drafted: true, ..Begun::default() },
        Begun { sent: true, ..Begun::default() },
        Begun { voted: true, ..Begun::default() },
    ] {
        assert!(refusal(&review, Access::Allowed, begun).is_some(), "{begun:?}");
    }
}

#[test]
fn the_plain_choices_are_those_of_the_review_itself() {
    let of = |review: &Review| -> Vec<_> {
        choices(review).into_iter().map(|choice| (choice.intent, choice.accepts, choice.usual)).collect()
    };
    let choose = |id: &str| Intent::Choose(id.to_owned());
    assert_eq!(of(&review(1, 1, json!({}))), [(choose("approve"), true, true), (choose("reject"), false, true)]);
    assert_eq!(of(&calls(1, 1)), [(Intent::ApproveAll, true, true), (Intent::RejectAll, false, true)]);
    let mut no_reject = calls(1, 1);
    no_reject.actions[0].allowed_decisions = vec![ActionKind::Approve];
    assert_eq!(of(&no_reject), [(Intent::ApproveAll, true, true)], "not every call can be rejected");
}

#[test]
fn a_choice_is_dropped_when_its_review_changes_or_ends() {
    let ids = [1, 2, 3].map(|number| review(number, 1, json!({})).id);
    let choice = |revision| Some(ReviewChoice { intent: Intent::ApproveAll, revision, for_all: false });
    let mut selection = Selection::default();
    for id in ids {
        selection.tick(id);
        selection.choose(id, choice(1));
    }
    let now = |id: ReviewId| if id == ids[0] { None } else { Some(if id == ids[1] { 2 } else { 1 }) };
    selection.follow(true, now);
    assert_eq!(selection.chosen(), [(ids[2], choice(1).unwrap())], "one has ended, another has changed");
    assert_eq!(selection.ticked().collect::<Vec<_>>(), ids[1..]);
    assert_eq!(selection.shown(), ids, "its page says what became of it");
    selection.choose(ids[0], choice(1));
    assert_eq!(selection.choice(ids[0]), None, "nothing is chosen for what is over");

    // Undone, it can be decided again.
    selection.follow(true, |_| Some(1));
    assert!(selection.has(ids[0]) && selection.choice(ids[0]).is_none());
    selection.follow(false, now);
    assert_eq!(selection.shown(), ids[1..], "away from its page, nothing is kept");
}

#[test]
fn the_number_of_selected_reviews_has_a_limit() {
    let mut selection = Selection::default();
    for number in 0..=u8::try_from(MAX_SELECTED).unwrap() {
        selection.tick(review(number, 1, json!({})).id);
    }
    assert_eq!((selection.ticked().count(), selection.is_full()), (MAX_SELECTED, true));
    let first = selection.shown()[0];
    selection.remove(first);
    assert!(!selection.has(first) && !selection.is_full());
}

#[test]
fn what_is_decided_makes_room_for_others_and_stays_for_a_while() {
    let ids: Vec<_> =
        (0..=u8::try_from(2 * MAX_SELECTED).unwrap()).map(|number| review(number, 1, json!({})).id).collect();
    let mut selection = Selection::default();
    let tick = |selection: &mut Selection, ids: &[ReviewId]| ids.iter().for_each(|id| selection.tick(*id));
    tick(&mut selection, &ids[..MAX_SELECTED]);
    selection.follow(true, |id| (id != ids[1]).then_some(1));
    assert!(!selection.is_full());
    tick(&mut selection, &ids[MAX_SELECTED..=MAX_SELECTED]);
    assert!(selection.has(ids[MAX_SELECTED]) && selection.is_full());
    assert_eq!(selection.shown(), ids[..=MAX_SELECTED], "its decision can still be undone");
    selection.follow(true, |_| None);
    tick(&mut selection, &ids[MAX_SELECTED + 1..]);
    assert_eq!(selection.shown(), ids[1..], "the oldest has made room");
    selection.follow(true, |_| Some(1));
    assert_eq!(selection.ticked().count(), MAX_SELECTED, "also if everything can be decided again");
}

#[test]
fn what_is_chosen_for_all_replaces_no_choice_for_one() {
    let ids = [1, 2].map(|number| review(number, 1, json!({})).id);
    let mut selection = Selection::default();
    for id in ids {
        selection.tick(id);
    }
    assert!(selection.is_untouched());
    selection.choose(ids[0], Some(ReviewChoice { intent: Intent::RejectAll, revision: 1, for_all: false }));
    assert!(!selection.is_untouched());
    let mut for_all = |intent: &Intent| {
        for id in ids {
            selection.choose_for_all(id, intent.clone(), 1);
        }
        selection.chosen().into_iter().map(|(_, choice)| choice.intent).collect::<Vec<_>>()
    };
    assert_eq!(for_all(&Intent::ApproveAll), [Intent::RejectAll, Intent::ApproveAll]);
    assert_eq!(for_all(&Intent::RejectAll), [Intent::RejectAll, Intent::RejectAll], "the other is still open");
}

#[test]
fn a_note_goes_with_the_reviews_for_which_it_was_written() {
    let [one, two, later] = [1, 2, 3].map(|number| review(number, 1, json!({})).id);
    let mut selection = Selection::default();
    selection.tick(one);
    selection.tick(two);
    selection.write_note("As agreed".to_owned());
    selection.tick(later);
    let notes = |selection: &Selection| [one, two, later].map(|id| selection.note.of(id).to_owned());
    assert_eq!(notes(&selection), ["As agreed", "As agreed", ""]);
    selection.follow(true, |id| (id != one).then_some(1));
    selection.follow(true, |_| Some(1));
    assert_eq!(notes(&selection)[0], "As agreed", "its decision was undone");
    selection.remove(one);
    selection.remove(two);
    assert!(selection.note.is_blank(), "none of its reviews is selected");
    selection.write_note("For all".to_owned());
    assert_eq!(selection.note.of(later), "For all");
}
