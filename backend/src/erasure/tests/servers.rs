//! Erasure by several servers.

use std::time::Duration;

use super::support::{NAME, REMARK, World, whole_pass};
use crate::audit::{Explained, numbers};
use crate::erasure::Eraser;
use crate::erasure::eraser::Reached;
use crate::store::tests::support::on_both;

on_both! {
    of_several_servers_one_erases,
    servers_that_erase_at_the_same_time_take_nothing_for_changed,
    what_is_erased_after_it_was_explained_is_numbered_too,
}

impl World {
    /// The person is named in this many runs, and may no longer log in. All runs are over and sealed.
    async fn named_in(&mut self, runs: usize) {
        for _ in 0..runs {
            self.finished("zoe", NAME, REMARK).await;
        }
        self.deactivate().await;
        self.record.seal_all().await;
    }
}

async fn of_several_servers_one_erases(mut world: World) {
    world.named_in(3).await;
    world.erase().await.expect("they are erased");
    let (mut one, mut other) = (world.eraser(), world.eraser());
    for eraser in [&mut one, &mut other] {
        assert_eq!(eraser.pass(0).await.expect("looks"), Reached::Stopped);
    }
    assert_eq!(one.pass(1).await.expect("erases"), Reached::Stopped);
    assert_eq!(other.pass(u64::MAX).await.expect("looks"), Reached::Elsewhere);
    // The first server ends, so nothing has changed when the other looks again.
    drop(one);
    assert_eq!(whole_pass(&mut other).await, Reached::End);
    assert_eq!(world.traces().await, [""; 0]);
    assert!(world.record.check(None).await.valid);
}

/// Erases until nothing is left.
async fn erase_all(mut eraser: Eraser) {
    loop {
        match whole_pass(&mut eraser).await {
            Reached::End => return,
            Reached::Elsewhere => tokio::time::sleep(Duration::from_millis(5)).await,
            reached => panic!("{reached:?}"),
        }
    }
}

async fn servers_that_erase_at_the_same_time_take_nothing_for_changed(mut world: World) {
    world.named_in(12).await;
    world.erase().await.expect("they are erased");
    tokio::join!(erase_all(world.eraser()), erase_all(world.eraser()), erase_all(world.eraser()));
    assert_eq!(world.traces().await, [""; 0]);
    assert!(world.record.check(None).await.valid);
}

async fn what_is_erased_after_it_was_explained_is_numbered_too(mut world: World) {
    let run = world.finished("zoe", NAME, REMARK).await;
    world.named_in(0).await;
    let mut explained = Explained::read(world.store()).await.expect("reads");
    world.erase().await.expect("they are erased");
    world.erase_all().await;
    let rows = world.store().rows_of_runs(&[run]).await.expect("reads");
    let numbers = numbers(world.store(), &world.record.trusted, &mut explained, &rows).await.expect("all is explained");
    assert_eq!(numbers.len(), rows.len());
    assert!(explained.last_erasure() > 0);
}
