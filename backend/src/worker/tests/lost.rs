//! Tasks that keep losing their workers: they are given up after some attempts, and told apart from tasks that were
//! lost beside them. What was left to others on purpose is not lost.

use std::path::PathBuf;

use shared::error::FlowCode;
use shared::log::EntryKind;

use super::*;
use crate::store::Progress;
use crate::worker::call::{self, MOST_LOST};

/// A flow with a call whose failure is handled.
fn forgiving() -> Value {
    let mut flow = flow(&json!({ "tool": "publish", "arguments": { "title": "A", "text": "B" } }), true);
    flow["nodes"]["draft"]["failure"] = json!({ "then": { "goto": "told" } });
    flow["nodes"]["told"] = json!({ "set": { "told": true } });
    flow
}

/// Claims tasks as workers that die at once. Returns the number of tasks that the last of them held.
async fn die(house: &House, times: u32) -> usize {
    let mut held = 0;
    for n in 0..times {
        held = house.store.claim(&format!("dead-{n}"), ROOM, Duration::ZERO, &[]).await.unwrap().len();
    }
    held
}

#[tokio::test]
async fn a_task_whose_workers_keep_dying_fails_its_step_and_the_failure_policy_applies() {
    let house = House::with(forgiving()).await;
    let run = house.launch().await;
    assert_eq!(die(&house, MOST_LOST).await, 1);
    let calls = Counting::default();
    let worker = start(house.worker(demo(), calls.clone()));
    let state = house.ended(run).await;
    assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);
    assert_eq!(state.keys.get("told"), Some(&json!(true)));
    assert_eq!(calls.0.load(Ordering::SeqCst), 0, "it is not tried once more");
    let steps = house.store.steps(run).await.unwrap();
    let error = steps.iter().find_map(|step| step.error.as_ref()).expect("a failed step");
    assert_eq!(error.code, FlowCode::TaskAbandoned);
    worker.stop().await;
}

#[tokio::test]
async fn a_timer_or_a_failure_that_also_ends_the_process_fails_the_run() {
    let house = House::with(forgiving()).await;
    let run = house.launch().await;
    die(&house, MOST_LOST + 2).await;
    let worker = start(house.worker(demo(), tools()));
    let state = house.ended(run).await;
    let Some(RunOutcome::Failed { error, .. }) = &state.outcome else { panic!("{:?}", state.outcome) };
    assert_eq!(error.code, FlowCode::TaskAbandoned);
    worker.stop().await;
}

#[tokio::test]
async fn those_who_may_be_to_blame_are_tried_one_at_a_time_and_a_stop_is_no_loss() {
    let house = House::with(forgiving()).await;
    for _ in 0..3 {
        house.launch().await;
    }
    assert_eq!(die(&house, 3).await, 3, "all three were held when two workers died");
    let suspect = house.store.claim("one", ROOM, Duration::from_mins(1), &[]).await.unwrap();
    assert_eq!(suspect.len(), 1);
    assert_eq!(suspect[0].lost, 3);
    let none = Room { suspects: 0, ..ROOM };
    assert_eq!(house.store.claim("one", none, Duration::from_mins(1), &[]).await.unwrap(), Vec::new());
    // A worker that stops releases its tasks.
    house.store.release(WorkTable::Tasks, "one", &[suspect[0].lease()], Progress::Begun, Duration::ZERO).await.unwrap();
    let again = house.store.claim("two", ROOM, Duration::from_mins(1), &[]).await.unwrap();
    assert_eq!((again.len(), again[0].lost <= 3), (1, true), "{again:?}");
}

/// A tool that counts its calls, and returns from them when it is told to.
#[derive(Clone, Default)]
struct Slow {
    calls: Arc<AtomicUsize>,
    returns: CancellationToken,
}

impl Slow {
    async fn called(&self, house: &House, times: usize) {
        house.until(async || (self.calls.load(Ordering::SeqCst) == times).then_some(())).await;
    }
}

#[async_trait]
impl Tool for Slow {
    async fn call(&self, _: &ToolRequest) -> Result<Value, TaskFailure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.returns.cancelled().await;
        Ok(json!("called"))
    }
}

#[tokio::test]
async fn a_call_is_not_lost_when_its_lease_ends_while_its_worker_still_makes_it() {
    let clock = ManualClock::now();
    let publish = json!({ "tool": "publish", "arguments": { "title": "A", "text": "B" } });
    let house = House::at(clock.clone(), flow(&publish, false)).await;
    let tool = Slow::default();
    let worker = start(house.worker(demo(), tool.clone()));
    let first = house.launch().await;
    tool.called(&house, 1).await;
    // As after an outage of the database: no heartbeat came through, and the lease is over.
    clock.advance(Duration::from_mins(1));
    let second = house.launch().await;
    tool.called(&house, 2).await;
    tool.returns.cancel();
    for run in [first, second] {
        assert_eq!(house.ended(run).await.keys.get("draft"), Some(&json!("called")));
    }
    assert_eq!(tool.calls.load(Ordering::SeqCst), 2);
    worker.stop().await;
}

/// A tool during whose calls a newer server continues all runs, in a form that this one cannot read.
struct Upgrading(PathBuf);

impl Upgrading {
    fn upgrade(&self) {
        let sql = format!("UPDATE runs SET format = {}, state = '{{}}'", RunState::FORMAT + 1);
        rusqlite::Connection::open(&self.0).unwrap().execute(&sql, []).unwrap();
    }
}

#[async_trait]
impl Tool for Upgrading {
    async fn call(&self, _: &ToolRequest) -> Result<Value, TaskFailure> {
        self.upgrade();
        Ok(json!("called"))
    }
}

#[tokio::test]
async fn a_call_whose_run_a_newer_server_continues_is_left_to_it_and_counts_no_worker_as_lost() {
    let node = json!({ "tool": "publish", "arguments": { "title": "A", "text": "B" } });
    for (before, lost_before) in [(true, false), (false, true)] {
        let house = House::with(flow(&node, true)).await;
        house.launch().await;
        let file = house.folder.path().join("test.db");
        let options = Arc::new(house.worker(demo(), Upgrading(file.clone())));
        let claim = async || house.store.claim(&options.terms.owner, ROOM, options.terms.lease, &[]).await.unwrap();
        let claimed = claim().await.remove(0);
        if before {
            Upgrading(file).upgrade();
        }
        call::handle(Arc::clone(&options), claimed, CancellationToken::new(), CancellationToken::new()).await;
        let again: Vec<_> = claim().await.iter().map(|next| (next.lost, next.lost_before)).collect();
        assert_eq!(again, [(0, lost_before)]);
    }
}

#[tokio::test]
async fn a_call_that_is_made_again_after_its_worker_was_lost_says_so_in_the_log_of_the_run() {
    let house = House::with(forgiving()).await;
    let run = house.launch().await;
    assert_eq!(die(&house, 1).await, 1);
    let calls = Counting::default();
    let worker = start(house.worker(demo(), calls.clone()));
    house.ended(run).await;
    assert_eq!(calls.0.load(Ordering::SeqCst), 1);
    let log = house.store.log(&house.store.origin(), Some(run), 100).await.unwrap().expect("of this log");
    let again = log.entries.iter().filter(|entry| entry.event.kind == EntryKind::StepRetrying);
    let again: Vec<_> = again.map(|entry| (&entry.event.data["error"], &entry.event.data["step"]["tries"])).collect();
    let message = "the worker of attempt 1 was lost or stopped without a result";
    let error = json!({ "code": "TOOL_FAILED", "message": message, "node": "draft" });
    assert_eq!(again, [(&error, &json!(2))]);
    worker.stop().await;
}
