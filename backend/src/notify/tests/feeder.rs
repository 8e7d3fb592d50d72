//! The place in the log up to which deliveries were made.

use super::*;
use crate::store::CommitFollower as _;
use crate::store::tests::support::on_both;

on_both! {
    what_notifies_nobody_counts_as_read_after_a_minute,
}

/// Runs are archived only once all their entries have been turned into deliveries.
async fn what_notifies_nobody_counts_as_read_after_a_minute(world: World) {
    let mut feeder = feeder(&world, &settings("")).await;
    let before = world.store.outbox().await.expect("reads");
    world.add_user("kim", &[]).await;
    feeder.advance().await.expect("reads");
    assert_eq!(world.store.outbox().await.expect("reads"), before, "not one statement for each entry");
    world.clock.advance(Duration::from_mins(1));
    feeder.advance().await.expect("reads");
    let head = world.store.head().await.expect("reads");
    assert_eq!(world.store.outbox().await.expect("reads"), Some(head));
}
