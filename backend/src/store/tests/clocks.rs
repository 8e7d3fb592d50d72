//! Servers on one PostgreSQL whose machines disagree about the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::json;
use shared::JsonMap;
use shared::review::ReviewStatus;
use shared::time::Timestamp;

use super::support::{World, actor, decide, decided, hours, launch, new_run};
use crate::clock::{Clock, ServerClock, SystemClock};
use crate::store::{Change, Committed, NewFlow, Operation, Room, Store, StoreOptions, database_clock};

/// A machine whose clock is wrong by so many microseconds.
struct Machine(AtomicI64);

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now().0 + self.0.load(Ordering::Acquire))
    }

    fn uptime(&self) -> Duration {
        SystemClock.uptime()
    }

    fn random(&self) -> [u8; 16] {
        SystemClock.random()
    }
}

/// Opens the store as a server on a machine whose clock is wrong by so much.
async fn server(world: &World, wrong: i64) -> (Store, Arc<Machine>, Arc<ServerClock>) {
    let machine = Arc::new(Machine(AtomicI64::new(wrong)));
    let clock = Arc::new(ServerClock::new(machine.clone()));
    let options = StoreOptions { index_log: false, ..world.database.options(clock.clone()) };
    (Store::open(options).await.expect("the store opens"), machine, clock)
}

fn wrong_by(clock: &ServerClock) -> Duration {
    Duration::from_micros((clock.now().0 - SystemClock.now().0).unsigned_abs())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_made_by_a_server_that_is_ahead_is_claimed_at_once_by_another() {
    let Some(world) = World::postgres().await else { return };
    let flow = json!({
        "id": "calls",
        "tools": { "send": { "http": { "url": "https://x" } } },
        "nodes": { "send": { "tool": "send", "arguments": {} } },
    });
    let source = flow.to_string();
    let flow = serde_json::from_value(flow).expect("the flow is well-formed");
    let new = NewFlow { flow, digest: crate::flow::digest(&source), source };
    world.store.commit(Change::by_server(Operation::SaveFlow(Box::new(new)))).await.expect("the flow is saved");

    let ((ahead, ..), (right, ..)) = (server(&world, hours(2)).await, server(&world, 0).await);
    let (flow, input) = ("calls".parse().expect("an id"), JsonMap::new());
    let operation = Operation::launch(new_run(), flow, input);
    ahead.commit(Change { by: Some(actor("dev")), key: None, operation }).await.expect("it starts");
    let room = Room { calls: 10, timers: 10, suspects: 1 };
    assert_eq!(right.claim("w", room, Duration::from_secs(30), &[]).await.expect("claims").len(), 1);
    tokio::join!(ahead.close(), right.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_in_time_on_a_server_that_is_ahead_of_the_one_that_set_the_deadline() {
    let Some(world) = World::postgres().await else { return };
    let ((behind, ..), (ahead, ..)) = (server(&world, hours(-2)).await, server(&world, hours(2)).await);
    let Committed::Run { run } = behind.commit(launch("within an hour")).await.expect("the run starts") else {
        panic!("a launch answers a run")
    };
    let review = world.review_of(run.summary.id).await;
    let answer = decided(ahead.commit(decide(&review, "ana", "yes")).await).expect("it is in time");
    assert_eq!(answer.review.status, ReviewStatus::Resolved);
    tokio::join!(behind.close(), ahead.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_is_corrected_again_and_stays_so_while_the_database_is_away() {
    let Some(world) = World::postgres().await else { return };
    let (store, machine, clock) = server(&world, hours(2)).await;
    machine.0.store(hours(-1), Ordering::Release);
    assert!(wrong_by(&clock) > Duration::from_hours(2));
    database_clock::correct(&store.inner.db, &*clock).await.expect("it is measured");
    assert!(wrong_by(&clock) < Duration::from_secs(1));
    store.close().await;
    assert!(database_clock::correct(&store.inner.db, &*clock).await.is_err());
    assert!(wrong_by(&clock) < Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_the_clock_is_the_machines() {
    let world = World::sqlite().await;
    let (store, _, clock) = server(&world, hours(2)).await;
    assert_eq!(clock.offset().map(|offset| offset.load(Ordering::Acquire)), Some(0));
    store.close().await;
}
