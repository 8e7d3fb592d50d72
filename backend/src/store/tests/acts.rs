//! Acts on reviews, as the audit log finds them, and the content on which votes with changes were cast.

use std::time::Duration;

use serde_json::{Value, json};
use shared::api::AuditQuery;
use shared::decision::{DecisionRequest, Via};
use shared::log::Entry;
use shared::reassignment::Assignee;
use shared::review::Review;

use super::support::{World, decide, decided, on_both, on_review, person};
use super::votes::committee;
use crate::engine::Input;
use crate::store::{Change, Form, Operation};

on_both! {
    each_act_is_found_by_its_name,
    whoever_waits_for_a_comment_is_told_of_it,
    the_record_tells_what_a_vote_with_changes_was_on,
    a_secret_vote_with_changes_is_told_whole_after_the_resolution,
}

async fn acts(world: &World, acts: &str) -> Vec<Entry> {
    let query = AuditQuery { act: Some(acts.to_owned()), limit: Some(200), ..AuditQuery::default() };
    let mut found = world.store.audit(&query, Form::Whole).await.expect("reads").items;
    // The sealed form differs, but the same entries are found.
    let sealed = world.store.audit(&query, Form::Sealed).await.expect("reads").items;
    assert_eq!(
        found.iter().map(|entry| &entry.cursor).collect::<Vec<_>>(),
        sealed.iter().map(|entry| &entry.cursor).collect::<Vec<_>>()
    );
    found.reverse();
    found
}

/// The actor and the change of each entry.
fn told(entries: &[Entry]) -> Vec<(String, String)> {
    let words = entries.iter().map(|entry| {
        let change = entry.event.data.get("change").and_then(Value::as_str);
        let actor = entry.event.actor.as_ref().map(ToString::to_string).unwrap_or_default();
        (actor, change.unwrap_or(entry.event.kind.as_str()).to_owned())
    });
    words.collect()
}

fn words(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(actor, change)| ((*actor).to_owned(), (*change).to_owned())).collect()
}

async fn whoever_waits_for_a_comment_is_told_of_it(world: World) {
    let review = world.launched_review("one").await;
    let news = async |seen| world.store.over_or_commented_among(&[(review.id, seen)]).await.expect("reads");
    assert_eq!(news(0).await, []);
    let comment = Input::Comment { review: review.id, by: person("tom"), via: Via::Human, text: "Why?".to_owned() };
    world.store.commit(on_review(review.id, "tom", comment)).await.expect("it is commented on");
    assert_eq!((news(0).await, news(1).await), (vec![(review.id, 0)], vec![]));
    decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decides");
    assert_eq!(news(1).await, [(review.id, 1)], "the end is news too");
}

async fn each_act_is_found_by_its_name(world: World) {
    let via = Via::Human;
    let review = world.launched_review("one").await;
    let tom = || person("tom");
    for input in [
        Input::Claim { review: review.id, by: tom(), via },
        Input::Comment { review: review.id, by: tom(), via, text: "Hm.".to_owned() },
        Input::Release { review: review.id, by: tom(), via },
        Input::Delegate { review: review.id, by: tom(), via, to: "ana".parse().expect("a name"), person: None },
    ] {
        world.store.commit(on_review(review.id, "tom", input)).await.expect("done");
    }
    decided(world.store.commit(decide(&review, "ana", "yes")).await).expect("decided");
    let given = world.launched_review("given").await;
    let to = Assignee::User(tom().username);
    let reassign =
        Input::Reassign { review: given.id, by: person("boss"), via, from: None, to, reason: "away".to_owned() };
    world.store.commit(on_review(given.id, "boss", reassign)).await.expect("reassigned");
    decided(world.store.commit(decide(&given, "tom", "yes")).await).expect("decided");
    let taken_back = world.launched_review("two").await;
    let withdraw = Input::Withdraw { review: taken_back.id, by: person("dev"), via, reason: None };
    world.store.commit(on_review(taken_back.id, "dev", withdraw)).await.expect("withdrawn");
    let late = world.launched_review("three").await;
    world.clock.advance(Duration::from_hours(1));
    decided(world.store.commit(decide(&late, "ana", "yes")).await).expect_err("the timer has won");
    let votes = committee(&world, json!({})).await;
    for name in ["eva", "ed"] {
        world.clock.advance(Duration::from_secs(1));
        decided(world.store.commit(decide(&votes, name, "yes")).await).expect("counted");
    }
    for (act, expected) in [
        ("claim", &[("tom", "claim"), ("tom", "release")][..]),
        ("comment", &[("tom", "comment")]),
        ("delegation", &[("tom", "delegated")]),
        ("reassignment", &[("boss", "reassigned")]),
        ("withdrawal", &[("dev", "review.resolved")]),
        ("timeout", &[("", "review.resolved")]),
        ("vote", &[("eva", "vote"), ("ed", "review.resolved")]),
        ("decision", &[("ana", "review.resolved"), ("tom", "review.resolved"), ("ed", "review.resolved")]),
        ("comment,withdrawal", &[("tom", "comment"), ("dev", "review.resolved")]),
        ("nonsense", &[]),
    ] {
        assert_eq!(told(&acts(&world, act).await), words(expected), "{act}");
    }
}

/// A decision for a text that it changes.
pub fn decide_with_edit(review: &Review, who: &str) -> Change {
    let mut change = decide(review, who, "yes");
    if let Change { operation: Operation::Review { input, .. }, .. } = &mut change
        && let Input::Decide { request, .. } = &mut **input
    {
        let DecisionRequest { edits, comment, .. } = &mut **request;
        edits.insert("text".to_owned(), json!("a better text"));
        *comment = Some("Clearer.".to_owned());
    }
    change
}

/// A committee is asked about a text, which the second vote changes after the first.
async fn edited(world: &World, more: Value) -> (Review, Review) {
    let mut rules = json!({ "review_keys": ["text"], "edit_keys": ["text"] });
    rules.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    let before = committee(world, rules).await;
    decided(world.store.commit(decide(&before, "eva", "yes")).await).expect("counted");
    let after = decided(world.store.commit(decide_with_edit(&before, "ed")).await).expect("counted").review;
    (before, after)
}

async fn the_record_tells_what_a_vote_with_changes_was_on(world: World) {
    let (before, after) = edited(&world, json!({})).await;
    let entries = acts(&world, "vote").await;
    assert_eq!(told(&entries), words(&[("eva", "vote"), ("ed", "content")]));
    let entry = &entries[1].event;
    assert_eq!((&entry.data["vote"], &entry.data["voided"]), (&json!(true), &json!(["eva"])));
    let vote = &entry.data["review"]["decisions"][0];
    let shown =
        json!({ "revision": before.revision, "digest": before.digest, "values": { "text": before.items[0].value } });
    assert_eq!(vote["shown"], shown, "what was on the voter's screen");
    assert_eq!((&vote["edits"], &vote["comment"]), (&json!({ "text": "a better text" }), &json!("Clearer.")));
    assert_eq!(
        (&vote["revision"], &vote["digest"]),
        (&json!(after.revision), &json!(after.digest)),
        "on what it stands"
    );
    assert_ne!(before.digest, after.digest);
}

async fn a_secret_vote_with_changes_is_told_whole_after_the_resolution(world: World) {
    let (before, after) = edited(&world, json!({ "blind": true })).await;
    let entries = acts(&world, "vote").await;
    assert_eq!(told(&entries), words(&[("", "vote"), ("", "content")]), "somebody voted, and nobody is named");
    assert_eq!(entries[1].event.data["review"]["decisions"], json!([]));
    decided(world.store.commit(decide(&after, "eva", "yes")).await).expect("counted");
    let resolved = acts(&world, "decision").await;
    let votes = &resolved[0].event.data["review"]["decisions"];
    assert_eq!((&votes[0]["by"], &votes[0]["shown"]["digest"]), (&json!("ed"), &json!(before.digest)));
    assert_eq!(votes[1].get("shown"), None, "who changed nothing saw what the vote names");
}
