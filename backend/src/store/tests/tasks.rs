//! Leases and attempts.

use std::time::Duration;

use serde_json::json;
use shared::JsonMap;
use shared::id::RunId;
use shared::log::EntryKind;
use shared::time::Timestamp;

use super::support::{World, actor, new_run, on_both, person};
use crate::clock::Clock as _;
use crate::engine::{Input, Refusal, TaskFailure, TaskKind};
use crate::store::{Change, Claimed, CommitError, Committed, NewFlow, Operation, Room, WorkTable};

const ROOM: Room = Room { calls: 10, timers: 10, suspects: 1 };
const LEASE: Duration = Duration::from_secs(30);

on_both! {
    a_deadline_is_claimed_when_it_is_due_and_by_one_worker,
    a_timer_waits_for_the_clock_of_who_claims_it,
    a_result_of_a_stale_attempt_is_refused,
    a_task_that_cannot_be_read_waits_as_it_was,
    a_result_after_the_runs_end_is_recorded_once,
    a_call_of_an_ended_run_is_forgotten_a_day_after_its_worker_fell_silent,
}

/// Makes every task due now: PostgreSQL has a clock of its own.
async fn make_due(world: &World) {
    let sql = super::super::db::Sql::new("UPDATE tasks SET ready_at = 0");
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(sql).await.expect("writes");
    conn.commit().await.expect("writes");
}

async fn a_deadline_is_claimed_when_it_is_due_and_by_one_worker(world: World) {
    let review = world.launched_review("hello").await;
    let warning = Timestamp(review.expires_at.expect("a deadline").0 - 6 * 60_000_000);
    let next = world.store.next_due(ROOM).await.expect("reads");
    assert_eq!(next.map(|next| next.at), Some(warning), "one row: the warning comes first");
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

/// It would judge that the time has not come, and set the same time again, and again.
async fn a_timer_waits_for_the_clock_of_who_claims_it(world: World) {
    world.clock.set_back(Duration::from_hours(48));
    let review = world.launched_review("hello").await;
    let warning = Timestamp(review.expires_at.expect("a deadline").0 - 6 * 60_000_000);
    assert_eq!(world.store.claim("a", ROOM, LEASE).await.expect("claims"), Vec::new());
    let next = world.store.next_due(ROOM).await.expect("reads").expect("a timer");
    assert_eq!(next.wait(), warning.since(world.clock.now()), "nor is it looked for before");
    world.clock.advance(next.wait());
    assert_eq!(world.store.claim("a", ROOM, LEASE).await.expect("claims").len(), 1);
}

async fn a_result_of_a_stale_attempt_is_refused(world: World) {
    let review = world.launched_review("hello").await;
    let run = review.run_id.expect("of a run");
    make_due(&world).await;
    let first = world.store.claim("a", ROOM, LEASE).await.expect("claims").remove(0);
    let held = [first.lease()];
    let renew = async |worker| world.store.renew(WorkTable::Tasks, worker, &held, LEASE).await.expect("renews");
    assert_eq!((renew("a").await, renew("b").await), (held.to_vec(), Vec::new()));
    make_due(&world).await;
    let second = world.store.claim("b", ROOM, LEASE).await.expect("claims").remove(0);
    assert_eq!((second.attempt, second.lost_before), (2, true));
    assert_eq!(renew("a").await, Vec::new());
    let failure = TaskFailure {
        code: shared::error::FlowCode::ToolFailed,
        message: "late".to_owned(),
        retryable: true,
        uncertain: false,
        retry_after: None,
    };
    let input = Input::TaskFailed { task: first.task.id, attempt: first.attempt, failure };
    let stale = world.store.commit(Change::by_server(Operation::Run { run, input: Box::new(input) })).await;
    assert!(matches!(stale, Err(CommitError::Refused(Refusal::TaskOver))), "{stale:?}");
}

/// A newer version may have written it: a server that cannot read it has not begun it, however often it tries.
async fn a_task_that_cannot_be_read_waits_as_it_was(world: World) {
    launched_calls(&world).await;
    let set_body = async |body: &str, of: &str| {
        let sql =
            super::super::db::Sql::new("UPDATE tasks SET ready_at = 0, body = ").bind(body).push(" WHERE body = ");
        assert_eq!(world.store.inner.db.execute(sql.bind(of)).await.expect("writes"), 1);
    };
    let sql = super::super::db::Sql::new("SELECT body FROM tasks ORDER BY id LIMIT 1");
    let row = world.store.inner.db.read().await.expect("reads").fetch_one(sql).await.expect("reads").expect("a task");
    let body = row.text(0).expect("a text");
    set_body("of a later version", &body).await;
    for _ in 0..3 {
        assert_eq!(world.store.claim("old", ROOM, LEASE).await.expect("claims"), Vec::new());
        set_body("of a later version", "of a later version").await;
    }
    world.store.claim("old", ROOM, LEASE).await.expect("claims");
    let others = world.store.claim("old", ROOM, LEASE).await.expect("claims");
    assert_eq!(others.len(), 1, "it holds up no other");
    set_body(&body, "of a later version").await;
    let read = world.store.claim("new", ROOM, LEASE).await.expect("claims").remove(0);
    assert_eq!((read.attempt, read.lost, read.lost_before), (1, 0, false));
}

/// A run of two calls of a tool, side by side.
async fn launched_calls(world: &World) -> RunId {
    let node = json!({ "tool": "send", "arguments": {} });
    let flow = json!({
        "id": "calls",
        "tools": { "send": { "http": { "url": "https://x" }, "idempotent": true } },
        "nodes": { "fork": { "set": { "forked": true }, "next": ["a", "b"] }, "a": node, "b": node },
    });
    let source = flow.to_string();
    let flow = serde_json::from_value(flow).expect("the flow is well-formed");
    let new = NewFlow { flow, source, digest: "sha256:calls".to_owned() };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
    let (run, flow) = (new_run(), "calls".parse().expect("an id"));
    let context = shared::run::Context::default();
    let launch = Operation::Launch { run, flow, version: None, input: JsonMap::new(), context };
    world.store.commit(Change { by: Some(actor("dev")), key: None, operation: launch }).await.expect("it starts");
    run
}

async fn return_from(world: &World, claimed: &Claimed) -> Result<Committed, CommitError> {
    let Claimed { task, attempt, .. } = claimed;
    let input = Input::ToolReturned { task: task.id, attempt: *attempt, result: json!("sent") };
    world.store.commit(Change::by_server(Operation::Run { run: task.run, input: Box::new(input) })).await
}

async fn cancel(world: &World, run: RunId) {
    let input = Box::new(Input::Cancel { by: person("dev"), reason: None });
    let change = Change { by: Some(actor("dev")), key: None, operation: Operation::Run { run, input } };
    world.store.commit(change).await.expect("it ends");
}

async fn a_result_after_the_runs_end_is_recorded_once(world: World) {
    let run = launched_calls(&world).await;
    let one = Room { calls: 1, timers: 0, suspects: 1 };
    let lost = world.store.claim("lost", one, LEASE).await.expect("claims").remove(0);
    // Of the two calls, one is held in its second attempt, and the other by nobody.
    let sql = super::super::db::Sql::new("UPDATE tasks SET ready_at = 0 WHERE owner IS NOT NULL");
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(sql).await.expect("writes");
    conn.commit().await.expect("writes");
    let held = world.store.claim("holder", one, LEASE).await.expect("claims").remove(0);
    assert_eq!((held.task.id, held.attempt), (lost.task.id, 2));

    cancel(&world, run).await;
    let leases = [held.lease()];
    let renewed = world.store.renew(WorkTable::Tasks, "holder", &leases, LEASE).await.expect("renews");
    assert_eq!(renewed, leases, "a call that is under way goes on");
    make_due(&world).await;
    assert_eq!(world.store.claim("other", ROOM, LEASE).await.expect("claims"), Vec::new());
    assert_eq!(world.store.next_due(ROOM).await.expect("reads"), None);

    let before = world.store.run(run).await.expect("reads").expect("is there");
    let stale = return_from(&world, &lost).await;
    assert!(matches!(stale, Err(CommitError::Refused(Refusal::TaskOver))), "{stale:?}");
    return_from(&world, &held).await.expect("it is recorded");
    let again = return_from(&world, &held).await;
    assert!(matches!(again, Err(CommitError::Refused(Refusal::TaskOver))), "{again:?}");

    let after = world.store.run(run).await.expect("reads").expect("is there");
    assert_eq!((&after.outcome, &after.keys), (&before.outcome, &before.keys));
    let entries = world.told(EntryKind::ToolExecuted).await;
    let told: Vec<_> = entries.iter().filter(|entry| entry.event.kind == EntryKind::ToolExecuted).collect();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0].event.data["late"], &told[0].event.data["result"]), (&json!(true), &json!("sent")));
    let counts = world.store.counts().await.expect("reads");
    assert_eq!(counts["tasks"], 0, "the call that nobody held went with the run, the other with its result");
}

async fn a_call_of_an_ended_run_is_forgotten_a_day_after_its_worker_fell_silent(world: World) {
    let run = launched_calls(&world).await;
    let held = world.store.claim("silent", ROOM, LEASE).await.expect("claims").remove(0);
    cancel(&world, run).await;
    assert_eq!(world.store.counts().await.expect("reads")["tasks"], 2);
    world.clock.advance(Duration::from_hours(25));
    // What has expired is removed after a commit.
    world.add_user("eve", &[]).await;
    let forgotten = async {
        while world.store.counts().await.expect("reads")["tasks"] > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), forgotten).await.expect("the tasks go");
    let late = return_from(&world, &held).await;
    assert!(matches!(late, Err(CommitError::Refused(Refusal::TaskOver))), "{late:?}");
}
