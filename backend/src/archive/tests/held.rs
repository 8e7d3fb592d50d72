//! Runs that are still needed stay in the database, and each flow has its own retention.

use std::time::Duration;

use serde_json::json;
use shared::id::{ReviewId, RunId};
use shared::log::{Cursor, EntryKind};

use super::support::{DAY, RETENTION, World, key, launch};
use crate::clock::{Clock as _, Moment, SystemClock};
use crate::engine::Carrier;
use crate::store::tests::support::{actor, decide, on_both};
use crate::store::{Change, Committed, NewUserRecord, Operation};

on_both! {
    what_is_not_sealed_stays,
    a_run_with_an_answer_under_a_key_stays,
    a_run_with_a_pending_review_stays,
    each_flow_says_for_how_long,
    a_rejected_run_stands_in_no_list_once_it_is_archived,
    a_review_leads_to_its_archived_run,
    what_a_message_tells_of_is_found_where_the_run_before_it_is_archived,
}

async fn what_is_not_sealed_stays(mut world: World) {
    world.finished(2).await;
    world.record.clock.advance(RETENTION + DAY);
    assert_eq!(world.archiver().pass().await.expect("looks"), 0);
    world.record.seal_all().await;
    assert_eq!(world.archiver().pass().await.expect("archives"), 2);
}

async fn a_run_with_an_answer_under_a_key_stays(mut world: World) {
    world.launch("note", "without a key").await;
    world.record.clock.advance(Duration::from_secs(1));
    let key = key();
    let run = launch(world.store(), "note", "with a key", Some(key.clone())).await;
    world.record.seal_all().await;
    world.record.clock.advance(Duration::from_mins(10));
    let mut archiver = world.archiver_of(Some(Duration::from_mins(5)));
    assert_eq!(archiver.pass().await.expect("archives"), 1);
    assert!(world.store().find_run(run).await.expect("reads").is_some());
    // The same request still gets the same answer.
    launch(world.store(), "note", "with a key", Some(key)).await;
    world.record.behind_its_back("DELETE FROM idempotency").await;
    assert_eq!(archiver.pass().await.expect("archives"), 1);
}

async fn a_run_with_a_pending_review_stays(mut world: World) {
    let run = world.launch("ask", "may it?").await;
    world.record.seal_all().await;
    // A finished run with a handoff that nobody has taken yet.
    let of_run = if world.record.is_postgres() { format!("'{run}'") } else { format!("x'{}'", run.0.simple()) };
    world.record.behind_its_back(&format!("UPDATE runs SET status = 'completed' WHERE id = {of_run}")).await;
    world.record.clock.advance(RETENTION + DAY);
    assert_eq!(world.archiver().pass().await.expect("looks"), 0);
    world.record.behind_its_back(&format!("UPDATE reviews SET status = 'resolved' WHERE run_id = {of_run}")).await;
    assert_eq!(world.archiver().pass().await.expect("archives"), 1);
}

async fn each_flow_says_for_how_long(mut world: World) {
    world.save(json!({"id": "short", "retention": "7d", "nodes": {"keep": {"set": {"note": "x"}}}})).await;
    world.save(json!({"id": "long", "retention": "365d", "nodes": {"keep": {"set": {"note": "x"}}}})).await;
    for flow in ["short", "note", "long"] {
        world.launch(flow, "text").await;
    }
    world.record.seal_all().await;
    for (days, without_setting, with_setting) in [(6, 0, 0), (2, 1, 0), (83, 0, 1), (280, 1, 0)] {
        world.record.clock.advance(DAY * days);
        assert_eq!(world.archiver_of(None).pass().await.expect("archives"), without_setting, "after {days} days more");
        assert_eq!(world.archiver().pass().await.expect("archives"), with_setting, "after {days} days more");
    }
}

/// Asks people a question without a flow.
async fn ask(world: &World) -> ReviewId {
    let asked = json!({"kind": "handoff", "to": "reviewer", "reason": "Not mine."});
    let question = Carrier::of(&serde_json::from_value(asked).expect("a question")).expect("it can be asked");
    let run = RunId(Moment::of(&SystemClock).ids().uuid());
    let operation = Operation::Ask { run, question: Box::new(question) };
    let asked = world.store().commit(Change { by: Some(actor("dev")), key: None, operation }).await;
    let Ok(Committed::Review { review }) = asked else { panic!("{asked:?}") };
    review.id
}

/// Returns the position before the next entry.
async fn end_of_the_log(world: &World) -> Cursor {
    let origin = world.store().origin();
    let page = world.store().log(&origin, None, 1000).await.expect("reads").expect("of this log");
    page.entries.last().expect("an entry").cursor.clone()
}

/// Adds the reviewer ana.
async fn add_reviewer(world: &World) {
    let user = json!({"username": "ana", "roles": ["reviewer"], "created_at": world.record.clock.now()});
    let record = NewUserRecord { user: serde_json::from_value(user).expect("a person"), password_hash: None };
    let added = Change::by_server(Operation::CreateUser(Box::new(record)));
    world.store().commit(added).await.expect("a person is added");
}

async fn a_rejected_run_stands_in_no_list_once_it_is_archived(mut world: World) {
    add_reviewer(&world).await;
    let human = json!({"prompt": "May it go out?", "options": [{"id": "no", "kind": "stop", "label": "No"}]});
    world.save(json!({"id": "strict", "nodes": {"check": {"human": human}}})).await;
    let run = world.launch("strict", "may it?").await;
    let review = world.store().run_reviews(run).await.expect("reads").pop().expect("it asks");
    world.store().commit(decide(&review, "ana", "no")).await.expect("it is decided");
    world.grow_old().await;
    assert_eq!(world.archiver().pass().await.expect("archives"), 1);
    let left = "DELETE FROM runs_by_status WHERE status IN ('failed', 'rejected')";
    assert_eq!(world.record.database.execute(left).await.expect("runs"), 0);
}

async fn a_review_leads_to_its_archived_run(mut world: World) {
    add_reviewer(&world).await;
    let run = world.launch("ask", "may it?").await;
    let review = world.store().run_reviews(run).await.expect("reads").pop().expect("it asks");
    world.store().commit(decide(&review, "ana", "yes")).await.expect("it is decided");
    world.grow_old().await;
    assert_eq!(world.store().archived_run_of(review.id).await.expect("reads"), None);
    assert_eq!(world.archiver().pass().await.expect("archives"), 1);
    assert_eq!(world.store().review(review.id).await.expect("reads"), None);
    let archived = world.store().archived_run_of(review.id).await.expect("reads").expect("it is archived");
    assert_eq!((archived.id, archived.requested_by.as_str()), (run, "dev"));
}

async fn what_a_message_tells_of_is_found_where_the_run_before_it_is_archived(mut world: World) {
    add_reviewer(&world).await;
    let human = json!({"prompt": "May it go out?", "options": [{"id": "yes", "kind": "accept", "label": "Yes"}]});
    world.save(json!({"id": "long", "retention": "365d", "nodes": {"check": {"human": human}}})).await;
    let run = world.launch("long", "may it?").await;
    let review = world.store().run_reviews(run).await.expect("reads").pop().expect("it asks");
    world.launch("note", "one").await;
    let before_question = end_of_the_log(&world).await;
    let question = ask(&world).await;
    world.launch("note", "two").await;
    let before_decision = end_of_the_log(&world).await;
    world.store().commit(decide(&review, "ana", "yes")).await.expect("it is decided");
    world.launch("note", "three").await;
    world.grow_old().await;
    assert_eq!(world.archiver().pass().await.expect("archives"), 3);

    // A server that has not read any of it before.
    let store = world.record.another_store().await;
    let told = [
        (before_question, question, EntryKind::ReviewRequested),
        (before_decision, review.id, EntryKind::ReviewResolved),
    ];
    for (place, review, kind) in told {
        assert!(store.log(&place, None, 1).await.expect("reads").is_none(), "{kind:?}: too old for who reads all");
        let entry = store.entry_of_review(review, &place).await.expect("reads").expect("it is there");
        assert_eq!((entry.event.kind, entry.event.review_id), (kind, Some(review)));
    }
    let nothing = store.entry_of_review(review.id, &end_of_the_log(&world).await).await.expect("reads");
    assert_eq!(nothing, None);
    store.close().await;
}
