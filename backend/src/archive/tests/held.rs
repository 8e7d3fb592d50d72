//! What somebody still needs stays, and each flow says for how long.

use std::time::Duration;

use serde_json::json;

use super::support::{DAY, KEPT, World, key, launch};
use crate::store::tests::support::on_both;

on_both! {
    what_is_not_sealed_stays,
    a_run_with_an_answer_under_a_key_stays,
    a_run_with_a_pending_review_stays,
    each_flow_says_for_how_long,
}

async fn what_is_not_sealed_stays(mut world: World) {
    world.finished(2).await;
    world.record.clock.advance(KEPT + DAY);
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
    // The same request is still answered the same.
    launch(world.store(), "note", "with a key", Some(key)).await;
    world.record.behind_its_back("DELETE FROM idempotency").await;
    assert_eq!(archiver.pass().await.expect("archives"), 1);
}

async fn a_run_with_a_pending_review_stays(mut world: World) {
    let run = world.launch("ask", "may it?").await;
    world.record.seal_all().await;
    // A run that is over, and has handed something over that nobody has taken yet.
    let of_run = if world.record.is_postgres() { format!("'{run}'") } else { format!("x'{}'", run.0.simple()) };
    world.record.behind_its_back(&format!("UPDATE runs SET status = 'completed' WHERE id = {of_run}")).await;
    world.record.clock.advance(KEPT + DAY);
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
