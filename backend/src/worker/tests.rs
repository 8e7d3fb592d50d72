//! The worker on a real store: calls, leases, timers, shutdown.

mod approved;
mod asked;
mod guardrail_programs;
mod limits;
mod lost;

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use shared::JsonMap;
use shared::access::Principal;
use shared::api::User;
use shared::decision::{DecisionRequest, Via};
use shared::definition::Flow;
use shared::id::{RunId, Username};
use shared::review::{Review, ReviewStatus};
use shared::run::RunStatus;

use super::*;
use crate::agent::{Demo, OnText};
use crate::clock::{Moment, SystemClock};
use crate::engine::{self, Input, ModelAnswer, ModelRequest, RunOutcome, RunState, TaskFailure, ToolRequest};
use crate::store::testing::ManualClock;
use crate::store::{self, Actor, Change, NewFlow, NewUserRecord, Operation, Room, StoreOptions};
use crate::tool::{ToolOptions, Tools};

const ROOM: Room = Room { calls: 10, timers: 10, suspects: 1 };

/// A store with a flow and a person who may do everything.
struct House {
    store: Store,
    clock: SharedClock,
    ana: Principal,
    folder: tempfile::TempDir,
}

impl House {
    async fn with(flow: Value) -> Self {
        Self::at(Arc::new(SystemClock), flow).await
    }

    async fn at(clock: SharedClock, flow: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("test.db").display());
        let store = Store::open(StoreOptions::new(url, Arc::clone(&clock))).await.unwrap();
        let username: Username = "ana".parse().unwrap();
        let roles = ["reviewer", "developer"].map(str::to_owned);
        let user = User::new(username.clone(), roles.to_vec(), clock.now());
        let user = Box::new(NewUserRecord { user, password_hash: None });
        store.commit(Change::by_server(Operation::CreateUser(user))).await.unwrap();
        let source = flow.to_string();
        let flow: Flow = serde_json::from_value(flow).unwrap();
        let flow = Box::new(NewFlow { flow, digest: format!("sha256:{}", source.len()), source });
        store.commit(Change::by_server(Operation::SaveFlow(flow))).await.unwrap();
        let ana = Principal::new(username, roles.into_iter().collect());
        Self { store, clock, ana, folder }
    }

    async fn launch(&self) -> RunId {
        let run = RunId(Moment::of(&*self.clock).ids().uuid());
        let flow = "test".parse().unwrap();
        self.commit(Operation::launch(run, flow, JsonMap::new())).await;
        run
    }

    async fn commit(&self, operation: Operation) {
        let by = Some(Actor::of(self.ana.clone()));
        self.store.commit(Change { by, key: None, operation }).await.unwrap();
    }

    async fn decide(&self, review: &Review, verdict: Value) {
        let request: DecisionRequest =
            serde_json::from_value(json!({ "revision": review.revision, "digest": review.digest, "verdict": verdict }))
                .unwrap();
        let input = Input::decide(review.id, self.ana.clone(), Via::Human, request);
        self.commit(Operation::Review { review: review.id, input: Box::new(input) }).await;
    }

    /// Waits until `look` finds something in the store.
    async fn until<T, F: Future<Output = Option<T>>>(&self, look: impl Fn() -> F) -> T {
        let found = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), found).await.expect("it should have come in 20 s")
    }

    async fn pending(&self, run: RunId) -> Review {
        let look = async || {
            let reviews = self.store.run_reviews(run).await.unwrap();
            reviews.into_iter().find(|review| review.status == ReviewStatus::Pending)
        };
        self.until(look).await
    }

    async fn ended(&self, run: RunId) -> RunState {
        self.until(async || self.store.run(run).await.unwrap().filter(|state| state.outcome.is_some())).await
    }

    fn worker(&self, models: impl Model + 'static, tools: impl Tool + 'static) -> WorkerOptions {
        let (models, tools) = (Arc::new(models), Arc::new(tools));
        WorkerOptions::new(self.store.clone(), models, tools, Streams::default(), Arc::clone(&self.clock))
    }
}

fn flow(node: &Value, idempotent: bool) -> Value {
    let call = json!({ "tool": "publish", "arguments": { "title": "The Ocean", "text": "Blue and deep." } });
    json!({
        "id": "test",
        "agents": { "writer": {
            "model": "demo/writer",
            "tools": ["publish"],
            "demo": { "tool_calls": [call], "replies": ["Published."] },
        } },
        "tools": { "publish": { "builtin": "demo_publish", "idempotent": idempotent } },
        "nodes": { "draft": node },
    })
}

fn agent_flow() -> Value {
    flow(&json!({ "agent": "writer", "prompt": "Write and publish." }), true)
}

fn demo() -> Demo {
    Demo::new(Duration::ZERO)
}

fn tools() -> Tools {
    Tools::new(ToolOptions::default()).unwrap()
}

/// A model that never answers, and counts its calls.
#[derive(Clone, Default)]
struct Silent(Arc<AtomicUsize>);

impl Silent {
    async fn called(&self, house: &House, times: usize) {
        house.until(async || (self.0.load(Ordering::SeqCst) == times).then_some(())).await;
    }
}

#[async_trait]
impl Model for Silent {
    async fn call(&self, _: &ModelRequest, _: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

/// A model that panics.
struct Broken;

#[async_trait]
impl Model for Broken {
    async fn call(&self, _: &ModelRequest, _: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        panic!("this model is broken")
    }
}

/// A tool that counts its calls.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

#[async_trait]
impl Tool for Counting {
    async fn call(&self, _: &ToolRequest) -> Result<Value, TaskFailure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(json!("called"))
    }
}

#[tokio::test]
async fn an_agent_with_a_gated_tool_runs_from_launch_to_end() {
    let mut flow = agent_flow();
    flow["gates"] = json!({ "before_tool": { "publish": true } });
    let house = House::with(flow).await;
    let calls = Counting::default();
    let worker = start(house.worker(demo(), calls.clone()));
    let run = house.launch().await;

    let review = house.pending(run).await;
    assert_eq!(review.actions.len(), 1);
    assert_eq!(
        review.actions[0].arguments,
        json!({ "title": "The Ocean", "text": "Blue and deep." }).as_object().unwrap().clone()
    );
    assert_eq!(calls.0.load(Ordering::SeqCst), 0, "nothing is called before somebody gave leave");

    let decisions = json!({ review.actions[0].id.clone(): { "type": "approve" } });
    house.decide(&review, json!({ "type": "actions", "decisions": decisions })).await;
    let state = house.ended(run).await;
    assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);
    assert_eq!(state.keys.get("draft"), Some(&json!("Published.")));
    assert_eq!(calls.0.load(Ordering::SeqCst), 1);
    assert_eq!(engine::summary(&state).status, RunStatus::Completed);
    worker.stop().await;
}

#[tokio::test]
async fn an_agents_text_is_streamed_while_it_is_written() {
    let mut flow = agent_flow();
    flow["agents"]["writer"] = json!({ "model": "demo/writer" });
    let house = House::with(flow).await;
    let options = house.worker(Demo::new(Duration::from_millis(1)), tools());
    let mut chunks = options.streams.subscribe();
    let worker = start(options);
    let run = house.launch().await;
    let state = house.ended(run).await;
    let mut text = String::new();
    while let Ok(chunk) = chunks.try_recv() {
        assert_eq!((chunk.run, chunk.attempt, chunk.offset), (run, 1, text.len() as u64));
        text.push_str(&chunk.text);
    }
    assert_eq!(state.keys.get("draft"), Some(&Value::String(text)));
    worker.stop().await;
}

#[tokio::test]
async fn two_workers_share_the_tasks_and_no_call_is_made_twice() {
    let house = House::with(agent_flow()).await;
    let calls = Counting::default();
    let workers = [(); 2].map(|()| start(house.worker(demo(), calls.clone())));
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(house.launch().await);
    }
    for run in runs {
        let state = house.ended(run).await;
        assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);
    }
    assert_eq!(calls.0.load(Ordering::SeqCst), 20);
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_deadline_comes_by_itself() {
    let human = json!({
        "prompt": "Go on?",
        "options": [{ "id": "yes", "label": "Yes" }],
        "timeout": "300ms",
        "on_timeout": "approve",
    });
    let house = House::with(json!({ "id": "test", "nodes": { "ask": { "human": human } } })).await;
    let worker = start(house.worker(demo(), tools()));
    let run = house.launch().await;
    let state = house.ended(run).await;
    assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);
    let review = house.store.run_reviews(run).await.unwrap().pop().unwrap();
    assert_eq!(review.status, ReviewStatus::Expired);
    worker.stop().await;
}

#[tokio::test]
async fn a_timer_fires_on_its_time_while_every_slot_is_held_by_a_call() {
    let human = json!({
        "prompt": "Go on?",
        "options": [{ "id": "yes", "label": "Yes" }],
        "timeout": "1h",
        "on_timeout": "approve",
    });
    let mut flow = agent_flow();
    let nodes = json!({
        "fork": { "set": { "forked": true }, "next": ["draft", "ask"] },
        "ask": { "human": human },
        "draft": { "agent": "writer", "prompt": "Write." },
    });
    flow["nodes"] = nodes;
    let clock = ManualClock::now();
    let house = House::at(clock.clone(), flow).await;
    let model = Silent::default();
    let mut options = house.worker(model.clone(), tools());
    (options.slots, options.terms.grace) = (1, Duration::ZERO);
    let worker = start(options);
    let run = house.launch().await;
    model.called(&house, 1).await;
    let asked = house.pending(run).await;

    clock.advance(Duration::from_hours(1));
    // Wakes the worker, and occupies its only slot.
    house.launch().await;
    let look = async || {
        let reviews = house.store.run_reviews(run).await.unwrap();
        reviews.into_iter().find_map(|review| review.resolution)
    };
    let resolution = house.until(look).await;
    assert_eq!((resolution.status, Some(resolution.at)), (ReviewStatus::Expired, asked.expires_at));
    assert_eq!(model.0.load(Ordering::SeqCst), 1, "the only slot is still held");
    worker.stop().await;
}

#[tokio::test]
async fn what_a_lost_worker_held_is_done_by_another() {
    let house = House::with(agent_flow()).await;
    let run = house.launch().await;
    let lost = house.store.claim("lost", ROOM, Duration::from_millis(50), &[]).await.unwrap();
    assert_eq!(lost.len(), 1);
    let worker = start(house.worker(demo(), tools()));
    let state = house.ended(run).await;
    assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);

    // An answer of the lost worker changes nothing.
    let answer = ModelAnswer { text: "too late".to_owned(), ..ModelAnswer::default() };
    let input = Input::ModelAnswered { task: lost[0].task.id, attempt: lost[0].attempt, answer };
    let late = Change::by_server(Operation::Run { run, input: Box::new(input) });
    assert!(house.store.commit(late).await.is_err());
    assert_eq!(house.store.run(run).await.unwrap(), Some(state));
    worker.stop().await;
}

#[tokio::test]
async fn a_call_that_may_not_be_repeated_asks_a_person_when_its_worker_was_lost() {
    let house =
        House::with(flow(&json!({ "tool": "publish", "arguments": { "title": "A", "text": "B" } }), false)).await;
    let run = house.launch().await;
    assert_eq!(house.store.claim("lost", ROOM, Duration::from_millis(50), &[]).await.unwrap().len(), 1);
    let calls = Counting::default();
    let worker = start(house.worker(demo(), calls.clone()));
    let review = house.pending(run).await;
    assert_eq!(calls.0.load(Ordering::SeqCst), 0, "{}", review.prompt);

    let decisions = json!({ review.actions[0].id.clone(): { "type": "approve" } });
    house.decide(&review, json!({ "type": "actions", "decisions": decisions })).await;
    let state = house.ended(run).await;
    assert_eq!(state.keys.get("draft"), Some(&json!("called")));
    assert_eq!(calls.0.load(Ordering::SeqCst), 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_call_whose_task_was_taken_away_is_broken_off() {
    let house = House::with(agent_flow()).await;
    // The lease is shorter than the heartbeat, so the task is claimed again while the worker still runs it.
    let model = Silent::default();
    let mut options = house.worker(model.clone(), tools());
    (options.terms.lease, options.terms.heartbeat) = (Duration::from_millis(50), Duration::from_millis(300));
    (options.slots, options.terms.grace) = (1, Duration::ZERO);
    let worker = start(options);
    let first = house.launch().await;
    model.called(&house, 1).await;
    let thief =
        async || house.store.claim("thief", ROOM, Duration::from_mins(1), &[]).await.unwrap().into_iter().next();
    assert_eq!(house.until(thief).await.task.run, first);
    // The only slot is free again, so the worker claims the next task.
    house.launch().await;
    model.called(&house, 2).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_call_that_breaks_down_fails_its_step_and_nothing_else() {
    let house = House::with(agent_flow()).await;
    let worker = start(house.worker(Broken, tools()));
    let state = house.ended(house.launch().await).await;
    let Some(RunOutcome::Failed { error, .. }) = &state.outcome else { panic!("{:?}", state.outcome) };
    assert_eq!(error.code, shared::error::FlowCode::ModelFailed);
    assert!(matches!(house.ended(house.launch().await).await.outcome, Some(RunOutcome::Failed { .. })));
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_stops_gives_back_what_it_cannot_finish() {
    let house = House::with(agent_flow()).await;
    let model = Silent::default();
    let mut options = house.worker(model.clone(), tools());
    options.terms.grace = Duration::from_millis(50);
    let stopping = start(options);
    let run = house.launch().await;
    model.called(&house, 1).await;
    stopping.stop().await;
    let worker = start(house.worker(demo(), tools()));
    let state =
        tokio::time::timeout(Duration::from_secs(10), house.ended(run)).await.expect("without waiting for the lease");
    assert!(matches!(state.outcome, Some(RunOutcome::Completed { .. })), "{:?}", state.outcome);
    worker.stop().await;
}
