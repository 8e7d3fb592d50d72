//! Leases and attempts.

use std::time::Duration;

use serde_json::{Value, json};
use shared::JsonMap;
use shared::error::FlowCode;
use shared::id::{FlowId, RunId, TaskId};
use shared::log::EntryKind;
use shared::time::Timestamp;

use super::support::{World, actor, decide, new_run, on_both, person};
use crate::clock::{Clock as _, Moment};
use crate::engine::{self, Input, Refusal, RunState, Snapshot, TaskFailure, TaskKind};
use crate::flow::Compiled;
use crate::store::{Change, Claimed, CommitError, Committed, NewFlow, Operation, Progress, Room, WorkTable};

const ROOM: Room = Room { calls: 10, timers: 10, suspects: 1 };
const LEASE: Duration = Duration::from_secs(30);

on_both! {
    a_deadline_is_claimed_when_it_is_due_and_by_one_worker,
    a_timer_waits_for_the_clock_of_who_claims_it,
    a_result_of_a_stale_attempt_is_refused,
    a_task_that_cannot_be_read_waits_as_it_was,
    a_task_counts_as_begun_unless_it_was_released_before,
    every_task_of_a_run_has_the_format_in_which_the_run_is_stored,
    a_result_after_the_runs_end_is_recorded_once,
    a_call_of_an_ended_run_is_forgotten_a_day_after_its_worker_fell_silent,
    calls_that_nobody_had_claimed_when_their_map_failed_leave_nothing_in_the_run,
    a_call_that_is_made_and_ended_in_one_commit_leaves_nothing_in_the_run,
}

/// Makes every task due now; PostgreSQL uses its own clock.
async fn make_due(world: &World) {
    let sql = super::super::db::Sql::new("UPDATE tasks SET ready_at = 0");
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(sql).await.expect("writes");
    conn.commit().await.expect("writes");
}

async fn a_deadline_is_claimed_when_it_is_due_and_by_one_worker(world: World) {
    let review = world.launched_review("hello").await;
    let warning = Timestamp(review.expires_at.expect("a deadline").0 - 6 * 60_000_000);
    let next = world.store.next_due(ROOM, &[]).await.expect("reads");
    assert_eq!(next.map(|next| next.at), Some(warning), "one row: the warning comes first");
    assert_eq!(world.store.claim("a", ROOM, LEASE, &[]).await.expect("claims"), Vec::new());
    make_due(&world).await;
    let other = world.another().await;
    let (one, two) = tokio::join!(world.store.claim("a", ROOM, LEASE, &[]), other.claim("b", ROOM, LEASE, &[]));
    let mut claimed = one.expect("claims");
    claimed.extend(two.expect("claims"));
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].task.kind, TaskKind::Deadline { review: review.id });
    assert_eq!((claimed[0].attempt, claimed[0].lost_before), (1, false));
    assert!(world.store.next_due(ROOM, &[]).await.expect("reads").is_some(), "the end of the lease");
    other.close().await;
}

/// A server whose clock is behind would judge that the time has not come, and set the same time again and again.
async fn a_timer_waits_for_the_clock_of_who_claims_it(world: World) {
    world.clock.set_back(Duration::from_hours(48));
    let review = world.launched_review("hello").await;
    let warning = Timestamp(review.expires_at.expect("a deadline").0 - 6 * 60_000_000);
    assert_eq!(world.store.claim("a", ROOM, LEASE, &[]).await.expect("claims"), Vec::new());
    let next = world.store.next_due(ROOM, &[]).await.expect("reads").expect("a timer");
    assert_eq!(next.wait(), warning.since(world.clock.now()), "nor is it looked for before");
    world.clock.advance(next.wait());
    assert_eq!(world.store.claim("a", ROOM, LEASE, &[]).await.expect("claims").len(), 1);
}

async fn a_result_of_a_stale_attempt_is_refused(world: World) {
    let review = world.launched_review("hello").await;
    let run = review.run_id.expect("of a run");
    make_due(&world).await;
    let first = world.store.claim("a", ROOM, LEASE, &[]).await.expect("claims").remove(0);
    let held = [first.lease()];
    let renew = async |worker| world.store.renew(WorkTable::Tasks, worker, &held, LEASE).await.expect("renews");
    assert_eq!((renew("a").await, renew("b").await), (held.to_vec(), Vec::new()));
    make_due(&world).await;
    let second = world.store.claim("b", ROOM, LEASE, &[]).await.expect("claims").remove(0);
    assert_eq!((second.attempt, second.lost_before), (2, true));
    assert_eq!(renew("a").await, Vec::new());
    let failure = TaskFailure { retryable: true, ..TaskFailure::new(FlowCode::ToolFailed, "late") };
    let input = Input::TaskFailed { task: first.task.id, attempt: first.attempt, failure };
    let stale = world.store.commit(Change::by_server(Operation::Run { run, input: Box::new(input) })).await;
    assert!(matches!(stale, Err(CommitError::Refused(Refusal::TaskOver))), "{stale:?}");
}

/// A newer version may have written it. A server that cannot read the task has not begun it, no matter how often it
/// tries.
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
    let others = world.store.claim("old", ROOM, LEASE, &[]).await.expect("claims");
    assert_eq!(others.len(), 1, "it holds up no other");
    for _ in 0..3 {
        assert_eq!(world.store.claim("old", ROOM, LEASE, &[]).await.expect("claims"), Vec::new(), "it is deferred");
        set_body("of a later version", "of a later version").await;
        assert_eq!(world.store.claim("old", ROOM, LEASE, &[]).await.expect("claims"), Vec::new());
    }
    set_body(&body, "of a later version").await;
    let read = world.store.claim("new", ROOM, LEASE, &[]).await.expect("claims").remove(0);
    assert_eq!((read.attempt, read.lost, read.lost_before), (1, 0, false));

    // The worker that was lost with it is counted once, by the server that can read it.
    set_body("of a later version", &body).await;
    assert_eq!(world.store.claim("old", ROOM, LEASE, &[read.lease()]).await.expect("claims"), Vec::new(), "it is held");
    for _ in 0..2 {
        assert_eq!(world.store.claim("old", ROOM, LEASE, &[]).await.expect("claims"), Vec::new());
        set_body("of a later version", "of a later version").await;
    }
    set_body(&body, "of a later version").await;
    let read = world.store.claim("new", ROOM, LEASE, &[]).await.expect("claims").remove(0);
    assert_eq!((read.attempt, read.lost, read.lost_before), (2, 1, true));
}

/// Launches a run with two calls of a tool, side by side.
async fn launched_calls(world: &World) -> RunId {
    let node = json!({ "tool": "send", "arguments": {} });
    let flow = json!({
        "id": "calls",
        "tools": { "send": { "http": { "url": "https://x" }, "idempotent": true } },
        "nodes": { "fork": { "set": { "forked": true }, "next": ["a", "b"] }, "a": node, "b": node },
    });
    launched(world, &flow).await
}

async fn launched(world: &World, flow: &Value) -> RunId {
    save(world, flow).await;
    let (run, id) = (new_run(), flow["id"].as_str().expect("a name").parse().expect("an id"));
    world.store.commit(launch(run, id)).await.expect("it starts");
    run
}

async fn save(world: &World, flow: &Value) {
    let source = flow.to_string();
    let flow = serde_json::from_value(flow.clone()).expect("the flow is well-formed");
    let new = NewFlow { digest: crate::flow::digest(&source), flow, source };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");
}

fn launch(run: RunId, flow: FlowId) -> Change {
    let operation = Operation::launch(run, flow, JsonMap::new());
    Change { by: Some(actor("dev")), key: None, operation }
}

async fn return_from(world: &World, claimed: &Claimed) -> Result<Committed, CommitError> {
    let Claimed { task, attempt, .. } = claimed;
    let input = Input::ToolReturned { task: task.id, attempt: *attempt, result: json!("sent") };
    world.store.commit(Change::by_server(Operation::Run { run: task.run, input: Box::new(input) })).await
}

async fn cancel(world: &World, run: RunId) {
    world.store.commit(cancelling(run)).await.expect("it ends");
}

fn cancelling(run: RunId) -> Change {
    let input = Box::new(Input::Cancel { by: person("dev"), reason: None });
    Change { by: Some(actor("dev")), key: None, operation: Operation::Run { run, input } }
}

async fn a_task_counts_as_begun_unless_it_was_released_before(world: World) {
    world.launched_review("hello").await;
    for (progress, lost_before) in [(Progress::NotBegun, false), (Progress::Begun, true)] {
        make_due(&world).await;
        let held = world.store.claim("a", ROOM, LEASE, &[]).await.expect("claims").remove(0);
        let released = world.store.release(WorkTable::Tasks, "a", &[held.lease()], progress, Duration::ZERO).await;
        released.expect("is released");
        make_due(&world).await;
        let again = world.store.claim("b", ROOM, LEASE, &[]).await.expect("claims").remove(0);
        assert_eq!((again.lost_before, again.lost), (lost_before, 0), "{progress:?}");
        let back = world.store.release(WorkTable::Tasks, "b", &[again.lease()], Progress::NotBegun, LEASE).await;
        back.expect("is released");
    }
}

/// An older server must claim none of them, since it could not commit their results.
async fn every_task_of_a_run_has_the_format_in_which_the_run_is_stored(world: World) {
    let node = json!({ "tool": "send", "arguments": {} });
    let asks = json!({ "human": {
        "prompt": "Go on?", "options": [{ "id": "yes", "label": "Yes" }], "timeout": "1h", "on_timeout": "approve",
    } });
    let flow = json!({
        "id": "calls",
        "tools": { "send": { "http": { "url": "https://x" }, "idempotent": true } },
        "nodes": {
            "fork": { "set": { "forked": true }, "next": ["a", "b", "ask"] }, "a": node, "b": node, "ask": asks,
        },
    });
    let run = launched(&world, &flow).await;
    let held = world.store.claim("a", ROOM, LEASE, &[]).await.expect("claims").remove(0);
    // As an earlier version has stored it.
    let stored = serde_json::to_string(&RunState { format: RunState::FORMAT - 1, ..state(&world, run).await });
    let sql = super::super::db::Sql::new("UPDATE runs SET state = ").bind(stored.expect("JSON").as_str());
    assert_eq!(world.store.inner.db.execute(sql).await.expect("writes"), 1);
    let older = format!("UPDATE tasks SET format = {}", RunState::FORMAT - 1);
    world.database.execute(&older).await.expect("writes");
    return_from(&world, &held).await.expect("it is committed");
    let sql = super::super::db::Sql::new("SELECT format FROM tasks");
    let rows = world.store.inner.db.read().await.expect("reads").fetch(sql).await.expect("reads");
    let formats: Vec<_> = rows.iter().map(|row| row.int(0).expect("a number")).collect();
    assert_eq!(formats, [i64::from(RunState::FORMAT); 2], "the other call, and the timer");
}

async fn a_result_after_the_runs_end_is_recorded_once(world: World) {
    let run = launched_calls(&world).await;
    let one = Room { calls: 1, timers: 0, suspects: 1 };
    let lost = world.store.claim("lost", one, LEASE, &[]).await.expect("claims").remove(0);
    // Of the two calls, one is held in its second attempt, and the other is not claimed.
    let sql = super::super::db::Sql::new("UPDATE tasks SET ready_at = 0 WHERE owner IS NOT NULL");
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(sql).await.expect("writes");
    conn.commit().await.expect("writes");
    let held = world.store.claim("holder", one, LEASE, &[]).await.expect("claims").remove(0);
    assert_eq!((held.task.id, held.attempt), (lost.task.id, 2));

    cancel(&world, run).await;
    let leases = [held.lease()];
    let renewed = world.store.renew(WorkTable::Tasks, "holder", &leases, LEASE).await.expect("renews");
    assert_eq!(renewed, leases, "a call that is under way goes on");
    make_due(&world).await;
    assert_eq!(world.store.claim("other", ROOM, LEASE, &[]).await.expect("claims"), Vec::new());
    assert_eq!(world.store.next_due(ROOM, &[]).await.expect("reads"), None);

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
    let held = world.store.claim("silent", ROOM, LEASE, &[]).await.expect("claims").remove(0);
    cancel(&world, run).await;
    assert_eq!(world.store.counts().await.expect("reads")["tasks"], 2);
    world.clock.advance(Duration::from_hours(25));
    // Expired rows are removed after a commit.
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

async fn state(world: &World, run: RunId) -> RunState {
    world.store.run(run).await.expect("reads").expect("is there")
}

/// Replays the recorded inputs of a run, and returns the state that results.
async fn replayed(world: &World, run: RunId, flow: &Value) -> RunState {
    let flow = serde_json::from_value(flow.clone()).expect("the flow is well-formed");
    let flow = Compiled::new(flow, 1).expect("the flow can be run");
    let mut snapshot: Option<Snapshot> = None;
    let mut rows = world.store.whole_run(run).await.expect("reads").expect("is there").rows;
    while let Some(row) = rows.next().await.expect("reads") {
        for recorded in row.inputs.as_array().expect("inputs") {
            let mut seed = [0; 16];
            hex::decode_to_slice(recorded["seed"].as_str().expect("a seed"), &mut seed).expect("hexadecimal");
            let now = recorded.get("at").map_or(row.at, |at| serde_json::from_value(at.clone()).expect("a time"));
            let (moment, recorded) = (Moment { now, seed }, |name: &str| recorded.get(name).cloned());
            let transition = match (snapshot.clone(), recorded("launch")) {
                (None, Some(launch)) => {
                    engine::launch(&flow, serde_json::from_value(launch).expect("a launch"), Vec::new(), moment)
                }
                (Some(before), None) => {
                    let input = recorded("input").expect("an input");
                    engine::apply(&flow, before, serde_json::from_value(input).expect("an input"), moment)
                }
                other => panic!("{other:?}"),
            };
            let transition = transition.expect("it was taken");
            let snapshot = snapshot.get_or_insert_with(|| Snapshot::new(transition.state.clone(), []));
            snapshot.fold(transition.state, transition.reviews);
            let forgotten = recorded("forgotten").unwrap_or_else(|| json!([]));
            let forgotten: Vec<TaskId> = serde_json::from_value(forgotten).expect("tasks");
            snapshot.state.forget_unanswered(|task| !forgotten.contains(&task));
        }
    }
    snapshot.expect("it has begun").state
}

async fn calls_that_nobody_had_claimed_when_their_map_failed_leave_nothing_in_the_run(world: World) {
    let names: Vec<_> = (0..151).map(|n| format!("name {n}")).collect();
    let flow = json!({
        "id": "batch",
        "input": { "type": "object", "properties": { "names": { "default": names } } },
        "tools": { "send": { "http": { "url": "https://x" }, "idempotent": true } },
        "nodes": {
            "each": { "map": { "over": "names", "as": "one", "node": "send" }, "failure": { "then": { "goto": "ask" } } },
            "send": { "tool": "send", "arguments": { "to": "{{ one }}" } },
            "ask": { "human": { "prompt": "What now?", "options": [{ "id": "yes", "label": "Go on" }] } },
        },
    });
    let run = launched(&world, &flow).await;
    let slots = Room { calls: 16, timers: 0, suspects: 1 };
    let mut held = world.store.claim("worker", slots, LEASE, &[]).await.expect("claims");
    let failed = held.remove(0);
    let failure = TaskFailure::new(FlowCode::ToolFailed, "no such address");
    let input = Box::new(Input::TaskFailed { task: failed.task.id, attempt: failed.attempt, failure });
    world.store.commit(Change::by_server(Operation::Run { run, input })).await.expect("the map fails");
    let unanswered: Vec<_> = state(&world, run).await.unanswered.into_keys().collect();
    let mut under_way: Vec<_> = held.iter().map(|claimed| claimed.task.id).collect();
    under_way.sort_unstable();
    assert_eq!(unanswered, under_way, "only of these can there be word");
    assert_eq!(world.store.counts().await.expect("reads")["tasks"], 15);

    return_from(&world, &held.remove(0)).await.expect("it is recorded");
    assert_eq!(state(&world, run).await.unanswered.len(), 14);
    assert_eq!(replayed(&world, run, &flow).await, state(&world, run).await);
    // The other workers were silent for too long.
    world.database.execute("DELETE FROM tasks WHERE lane = 'over'").await.expect("writes");
    let review = world.review_of(run).await;
    world.store.commit(decide(&review, "ana", "yes")).await.expect("it is decided");
    assert_eq!(state(&world, run).await.unanswered.len(), 0);
    assert_eq!(replayed(&world, run, &flow).await, state(&world, run).await);
}

async fn a_call_that_is_made_and_ended_in_one_commit_leaves_nothing_in_the_run(world: World) {
    let flow = json!({
        "id": "call",
        "tools": { "send": { "http": { "url": "https://x" } } },
        "nodes": { "send": { "tool": "send", "arguments": {} } },
    });
    save(&world, &flow).await;
    // Otherwise the launches would wait for it, but not what cancels the runs.
    world.store.compiled("call", 1).await.expect("reads").expect("it is there");
    // Changes that arrive while the writer is busy are written as one group.
    let mut busy = Vec::new();
    let runs: Vec<_> = (0..20).map(|_| new_run()).collect();
    for run in &runs {
        busy.push(world.store.commit(launch(*run, "call".parse().expect("an id"))));
        busy.push(world.store.commit(cancelling(*run)));
    }
    for answer in futures::future::join_all(busy).await {
        answer.expect("it is made");
    }
    for run in runs {
        assert_eq!(state(&world, run).await.unanswered.len(), 0);
        assert_eq!(replayed(&world, run, &flow).await, state(&world, run).await);
    }
    assert_eq!(world.store.counts().await.expect("reads")["tasks"], 0);
}
