//! What the tail of the log reads while nobody listens.

use super::super::hub::Tail;
use super::*;
use crate::store::tests::support::{World, on_both};
use crate::store::{CommitFollower as _, Resume};

on_both! { only_rows_of_no_run_are_a_reason_to_read_without_listeners }

async fn only_rows_of_no_run_are_a_reason_to_read_without_listeners(world: World) {
    let tail = Tail::at_end(Options::new(world.store.clone(), world.clock.clone(), Streams::default())).await;
    let mut tail = tail.expect("the log can be read");
    let hub = tail.handle();
    loop {
        let begun = Instant::now();
        assert_eq!(tail.advance().await.expect("reads"), Resume::OnCommit);
        let before = hub.head();
        world.launch("hello").await;
        assert_eq!(tail.advance().await.expect("reads"), Resume::OnCommit);
        if begun.elapsed() < Duration::from_millis(900) {
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
