//! How drafts of reviews and of flows are kept and dropped.

use serde_json::json;
use shared::id::Username;

use super::*;
use crate::state::fixtures::review;

fn on(revision: u32, draft: &str) -> Review {
    let mut review = review(1, u64::from(revision), json!({ "revision": revision }));
    review.items[0].value = json!(draft);
    review
}

#[test]
fn a_draft_stays_on_the_revision_that_was_on_screen_until_a_newer_one_was_looked_at() {
    let mut drafts = Drafts::default();
    let (first, second) = (on(1, "Hello"), on(2, "Hello all"));
    drafts.change(&first, Timestamp(1), |draft| draft.edit("draft", json!("Hi"), &json!("Hello")));
    // Neither reopening the tab nor typing more shows the person the new revision.
    let kept = drafts.stored(&first.id.into()).unwrap();
    let mut drafts = Drafts::default();
    drafts.replace([(first.id.into(), kept.as_str())]);
    drafts.change(&second, Timestamp(2), |draft| draft.text = "Shorter".into());
    let draft = drafts.review(first.id).unwrap().clone();
    assert!(draft.is_behind(&second) && !draft.is_behind(&first));
    assert_eq!((draft.revision, &draft.shown["draft"]), (1, &json!("Hello")));
    assert_eq!(draft.to_text(), "Shorter\n\ndraft:\nHi");
    drafts.see(&second);
    let draft = drafts.review(first.id).unwrap();
    assert_eq!((draft.is_behind(&second), &draft.shown["draft"]), (false, &json!("Hello all")));
}

#[test]
fn one_thing_is_chosen_for_an_action_and_pressing_it_again_takes_it_back() {
    let (answer, instead) =
        (Chosen::Answer(ActionKind::Reject), Chosen::Alternative { alternative: "wait".to_owned() });
    let mut action = ActionDraft::default();
    for (pressed, expected) in
        [(&answer, Some(&answer)), (&instead, Some(&instead)), (&answer, Some(&answer)), (&answer, None)]
    {
        action.press(pressed.clone());
        assert_eq!(action.chosen.as_ref(), expected);
        let kept: ActionDraft = serde_json::from_value(json!(action)).unwrap();
        assert_eq!(kept, action);
    }
    let kept: ActionDraft = serde_json::from_value(json!({ "choice": "edit", "message": "" })).unwrap();
    assert_eq!(kept.answer(), Some(ActionKind::Edit), "what an earlier version kept is still there");
}

#[test]
fn what_goes_for_later_calls_too_stays_approved() {
    let approve = Chosen::Answer(ActionKind::Approve);
    let mut action = ActionDraft::default();
    action.remember(Some(GrantScope::Run));
    assert_eq!(action.chosen, Some(approve.clone()), "it goes with an approval only");
    action.press(approve.clone());
    assert_eq!((action.chosen.as_ref(), action.remember), (Some(&approve), Some(GrantScope::Run)));
    action.remember(None);
    assert_eq!(action.chosen.as_ref(), Some(&approve), "this call stays approved");
    action.press(approve.clone());
    assert_eq!(action.chosen, None);
    action.remember(Some(GrantScope::Flow));
    action.press(Chosen::Answer(ActionKind::Reject));
    assert_eq!(action.remember, None, "nothing else goes for later calls");
}

#[test]
fn an_edit_that_is_taken_back_leaves_no_draft() {
    let review = on(1, "Hello");
    let mut drafts = Drafts::default();
    drafts.change(&review, Timestamp(1), |draft| draft.edit("draft", json!("Hi"), &json!("Hello")));
    drafts.change(&review, Timestamp(2), |draft| draft.edit("draft", json!("Hello"), &json!("Hello")));
    assert_eq!(drafts.review(review.id), None);
}

#[test]
fn a_decision_takes_what_it_sent_and_leaves_the_comment() {
    let review = on(1, "Hello");
    let mut drafts = Drafts::default();
    drafts.change(&review, Timestamp(1), |draft| draft.text = "Shorter".into());
    drafts.change(&review, Timestamp(2), |draft| draft.comment = "Who knows her?".into());
    assert_eq!(drafts.review(review.id).unwrap().to_text(), "Shorter\n\ncomment: Who knows her?");
    drafts.forget_decision(review.id);
    assert_eq!(drafts.review(review.id).unwrap().to_text(), "comment: Who knows her?");
    drafts.change(&review, Timestamp(3), |draft| draft.comment.clear());
    drafts.change(&review, Timestamp(4), |draft| draft.text = "Shorter".into());
    drafts.forget_decision(review.id);
    assert_eq!(drafts.review(review.id), None);
}

#[test]
fn what_may_be_a_password_is_kept_in_memory_only() {
    let mut drafts = Drafts::default();
    let fields = json!({ "properties": { "code": { "type": "string", "format": "password" } } });
    let options = json!([{ "id": "yes", "kind": "accept", "label": "Yes", "fields": fields }]);
    for (number, options, in_memory) in [(1, json!([]), false), (2, options, true)] {
        let review = review(number, 1, json!({ "options": options }));
        drafts.change(&review, Timestamp(1), |draft| draft.text = "x".into());
        assert!(drafts.review(review.id).is_some());
        assert_eq!(drafts.stored(&review.id.into()).is_none(), in_memory);
    }
}

#[test]
fn drafts_are_of_a_person_and_the_oldest_of_too_many_go() {
    let name = |name: &str| name.parse::<Username>().unwrap();
    let (review_id, run) = (on(1, "").id, "01a212e4-4ebb-7001-8983-afd4f45adc71".parse().unwrap());
    let forms = [
        Form::Launch(("article".into(), 3)),
        Form::Feedback(run),
        Form::Delegation(review_id),
        Form::Reassignment(review_id),
        Form::Withdrawal(review_id),
        Form::Selection,
    ];
    let keys = [DraftKey::Review(review_id), DraftKey::Flow(("article".into(), 3))];
    for of in keys.into_iter().chain(forms.map(DraftKey::Form)) {
        let key = of.storage_key(&name("ana.b"));
        assert_eq!(DraftKey::of_storage_key(&key, &name("ana.b")), Some(of));
        for other in ["ana", "tom"] {
            assert!(!key.starts_with(&storage_prefix(&name(other))), "{key}");
            assert_eq!(DraftKey::of_storage_key(&key, &name(other)), None);
        }
    }
    let stored = |at: i64| json!({ "text": "x", "touched": Timestamp(at) }).to_string();
    let number = |n: u8| review(n, 1, json!({})).id;
    let mut drafts = Drafts::default();
    let reviews = (1..=101).map(|n| (DraftKey::from(number(n)), stored(n.into())));
    let flows = (1..=21).map(|version| (DraftKey::from(article(version)), stored(version.into())));
    let kept: Vec<_> = reviews.chain(flows).collect();
    drafts.replace(kept.iter().map(|(of, kept)| (of.clone(), kept.as_str())));
    assert_eq!((drafts.review(number(1)), drafts.review(number(2)).is_some()), (None, true));
    assert_eq!((drafts.flow(&article(1)), drafts.flow(&article(2))), (None, Some("x")));
    let one = review(200, 1, json!({}));
    let touched = drafts.change(&one, Timestamp(500), |draft| draft.text = "y".into());
    assert_eq!(touched, [one.id, number(2)].map(DraftKey::from));
    let touched = drafts.write_flow(&article(1), Some("b".into()), Timestamp(500));
    assert_eq!(touched, [article(1), article(2)].map(DraftKey::from));
}

fn article(version: u32) -> Edited {
    ("article".to_owned(), version)
}

#[test]
fn each_version_of_a_flow_has_a_draft_of_its_own_and_what_is_saved_has_none() {
    let mut drafts = Drafts::default();
    let of = |version| [DraftKey::from(article(version))];
    assert_eq!(drafts.write_flow(&article(1), Some("a".into()), Timestamp(1)), of(1));
    assert_eq!(drafts.write_flow(&article(1), Some("a".into()), Timestamp(2)), [], "nothing new is to be kept");
    assert_eq!(drafts.write_flow(&article(3), Some(String::new()), Timestamp(3)), of(3), "all was deleted");
    assert_eq!(drafts.versions("article").collect::<Vec<_>>(), [1, 3]);
    assert_eq!(drafts.versions("art").count(), 0);
    assert_eq!(drafts.write_flow(&article(3), None, Timestamp(4)), of(3));
    assert_eq!((drafts.flow(&article(1)), drafts.flow(&article(3))), (Some("a"), None));
    assert_eq!(drafts.taken_over(), 0, "all of it was typed here");
}

#[test]
fn what_stands_in_a_form_is_kept_until_it_is_sent_and_a_password_in_memory_only() {
    let (mut drafts, form) = (Drafts::default(), Form::Launch(article(1)));
    let of = [DraftKey::from(form.clone())];
    let typed = |text: &str| json!({ "event": text }).as_object().cloned();
    assert_eq!(drafts.write_form(&form, typed("Fair"), false, Timestamp(1)), of);
    assert_eq!(drafts.write_form(&form, typed("Fair"), false, Timestamp(2)), [], "nothing new is to be kept");
    let kept = drafts.stored(&of[0]).unwrap();
    let mut later = Drafts::default();
    later.replace([(of[0].clone(), kept.as_str())]);
    assert_eq!(later.form(&form).unwrap()["event"], "Fair");
    assert_eq!(drafts.versions("article").count(), 0, "the flow itself is not edited");
    assert_eq!(drafts.write_form(&form, typed("hunter2"), true, Timestamp(3)), of);
    assert_eq!((drafts.form(&form).is_some(), drafts.stored(&of[0])), (true, None));
    assert_eq!(drafts.write_form(&form, None, false, Timestamp(4)), of);
    assert_eq!(drafts.form(&form), None);
}

#[test]
fn what_another_tab_writes_is_told_from_what_is_typed_here() {
    let mut drafts = Drafts::default();
    let kept = json!({ "text": "a", "touched": "2026-11-20T10:00:00Z" }).to_string();
    drafts.take_over(article(1).into(), Some(&kept));
    assert_eq!(drafts.flow(&article(1)), Some("a"));
    drafts.take_over(article(1).into(), None);
    assert_eq!((drafts.flow(&article(1)), drafts.taken_over()), (None, 2));
}

#[test]
fn a_form_that_was_emptied_is_not_untouched() {
    let mut draft = Draft::default();
    draft.fill("later", Some(JsonMap::new()));
    assert!(!draft.is_empty(), "its defaults are not to be sent");
    draft.fill("later", None);
    assert!(draft.is_empty());
}

#[test]
fn text_that_is_not_json_is_a_draft_until_it_is_mended_or_discarded() {
    let (mut drafts, review) = (Drafts::default(), on(1, "Hello"));
    let typed = |draft: &mut Draft| {
        draft.unparsed.insert("/metadata", "{".into());
        draft.unparsed.insert("/edits/offer/extra", "[1, ".into());
    };
    drafts.change(&review, Timestamp(1), typed);
    let kept = drafts.stored(&review.id.into()).unwrap();
    let mut again = Drafts::default();
    again.replace([(review.id.into(), kept.as_str())]);
    assert_eq!(again.review(review.id).unwrap().to_text(), "/edits/offer/extra:\n[1, \n\n/metadata:\n{");
    again.change(&review, Timestamp(2), |draft| drop(draft.unparsed.take("/metadata")));
    again.change(&review, Timestamp(3), |draft| draft.unparsed.set("/edits/offer", Unparsed::default()));
    assert_eq!(again.review(review.id), None);
}
