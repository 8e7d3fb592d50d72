//! Leases and attempts.

use std::time::Duration;

use super::support::{World, on_both};
use crate::engine::{Input, Refusal, TaskFailure, TaskKind};
use crate::store::{Change, CommitError, Operation, Room};

const ROOM: Room = Room { calls: 10, timers: 10 };
const LEASE: Duration = Duration::from_secs(30);

on_both! {
    a_deadline_is_claimed_when_it_is_due_and_by_one_worker,
    a_result_of_a_stale_attempt_is_refused,
}

/// Makes every task due now: PostgreSQL has a clock of its own.
async fn make_due(world: &World) {
    let sql = super::super::db::Sql::new("UPDATE tasks SET ready_at = 0");
    let mut conn = world.store.inner.db.write().await.expect("writes");
    conn.execute(sql).await.expect("writes");
    conn.commit().await.expect("writes");
}

async fn a_deadline_is_claimed_when_it_is_due_and_by_one_worker(world: World) {
    let review = world.launched_review("hello").await;
    assert_eq!(world.store.next_due(ROOM).await.expect("reads"), review.expires_at);
    assert_eq!(world.store.claim("a", ROOM, LEASE).await.expect("claims"), Vec::new());
    make_due(&world).await;
    let other = world.another().await;
    let (one, two) = tokio::join!(world.store.claim("a", ROOM, LEASE), other.claim("b", ROOM, LEASE));
    let mut claimed = one.expect("claims");
    claimed.extend(two.expect("claims"));
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].task.kind, TaskKind::Deadline { review: review.id });
    assert_eq!((claimed[0].attempt, claimed[0].lost_before), (1, false));
    assert!(world.store.next_due(ROOM).await.expect("reads").is_some(), "the end of the lease");
    other.close().await;
}

async fn a_result_of_a_stale_attempt_is_refused(world: World) {
    let review = world.launched_review("hello").await;
    let run = review.run_id.expect("of a run");
    make_due(&world).await;
    let first = world.store.claim("a", ROOM, LEASE).await.expect("claims").remove(0);
    let held = [(first.task.id, first.attempt)];
    assert_eq!(world.store.heartbeat("a", &held, LEASE).await.expect("beats"), vec![first.task.id]);
    assert_eq!(world.store.heartbeat("b", &held, LEASE).await.expect("beats"), Vec::new());
    make_due(&world).await;
    let second = world.store.claim("b", ROOM, LEASE).await.expect("claims").remove(0);
    assert_eq!((second.attempt, second.lost_before), (2, true));
    assert_eq!(world.store.heartbeat("a", &held, LEASE).await.expect("beats"), Vec::new());
    let failure =
        TaskFailure { code: shared::error::FlowCode::ToolFailed, message: "late".to_owned(), retryable: true };
    let input = Input::TaskFailed { task: first.task.id, attempt: first.attempt, failure };
    let stale = world.store.commit(Change::by_server(Operation::Run { run, input: Box::new(input) })).await;
    assert!(matches!(stale, Err(CommitError::Refused(Refusal::TaskOver))), "{stale:?}");
}
