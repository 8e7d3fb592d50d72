//! What the tail of the log reads while nobody listens, and what it cannot read.

use shared::decision::Via;

use super::super::hub::Tail;
use super::*;
use crate::engine::Input;
use crate::store::tests::support::{World, on_both, on_review, person};
use crate::store::{CommitFollower as _, Resume};

on_both! {
    only_rows_of_no_run_are_a_reason_to_read_without_listeners,
    a_review_that_cannot_be_read_does_not_stop_the_tail,
}

async fn only_rows_of_no_run_are_a_reason_to_read_without_listeners(world: World) {
    let tail = Tail::at_end(HubOptions::new(world.store.clone(), world.clock.clone(), Streams::default())).await;
    let mut tail = tail.expect("the log can be read");
    let hub = tail.hub.clone();
    let beside_runs = || world.store.commits().borrow().beside_runs;
    loop {
        let (begun, seen) = (Instant::now(), beside_runs());
        assert_eq!(tail.advance().await.expect("reads"), Resume::OnCommit);
        let before = hub.head();
        world.launch("hello").await;
        assert_eq!(tail.advance().await.expect("reads"), Resume::OnCommit);
        // The store polls the database, and does not know whose rows it finds, so they may be of no run.
        if begun.elapsed() < Duration::from_millis(900) && beside_runs() == seen {
            assert_eq!(hub.head(), before, "the row of a run is left for later");
            break;
        }
    }
    world.add_user("eve", &["reviewer"]).await;
    assert_eq!(tail.advance().await.expect("reads"), Resume::OnCommit);
    assert_eq!(hub.head(), world.store.head().await.expect("reads"), "a change of rights is read at once");
    let before = hub.head();
    world.launch("hello").await;
    tokio::time::sleep(Tail::POLL).await;
    assert_eq!(tail.advance().await.expect("reads"), Resume::OnCommit);
    assert_ne!(hub.head(), before, "the tail does not stay behind");
    let _listening = hub.listen();
    let before = hub.head();
    world.launch("hello").await;
    assert_eq!(tail.advance().await.expect("reads"), Resume::OnCommit);
    assert_ne!(hub.head(), before, "whoever listens hears of it at once");
}

async fn a_review_that_cannot_be_read_does_not_stop_the_tail(world: World) {
    // The first row may come from a later version. Of the second, not even a replacement can be made.
    for columns in ["kind = 'poll', severity = 'dire'", "requested_by = '?'"] {
        let review = world.launched_review("hello").await;
        let tail = Tail::at_end(HubOptions::new(world.store.clone(), world.clock.clone(), Streams::default())).await;
        let mut tail = tail.expect("the log can be read");
        let hub = tail.hub.clone();
        let _listening = hub.listen();
        let claim = Input::Claim { review: review.id, by: person("ana"), via: Via::Human };
        world.store.commit(on_review(review.id, "ana", claim)).await.expect("it is claimed");
        let sql = format!("UPDATE reviews SET body = '{{}}', {columns}");
        world.database.execute(&sql).await.expect("runs");
        assert_eq!(tail.advance().await.expect("goes on"), Resume::OnCommit);
        assert_eq!(hub.head(), world.store.head().await.expect("reads"));
    }
}
