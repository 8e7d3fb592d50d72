//! What a consumer claims after its leases have ended, while its jobs still run.

use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt as _;
use tokio::sync::Semaphore;

use super::*;
use crate::store::db::Sql;
use crate::store::tests::support::{World, on_both};
use crate::store::{Claimed, Room};

const ROOM: Room = Room { calls: 10, timers: 10, suspects: 1 };
const LEASE: Duration = Duration::from_secs(30);

on_both! {
    what_a_running_job_holds_is_not_claimed_again,
    leases_that_may_have_ended_are_renewed_before_anything_is_claimed,
    a_renewal_that_gets_no_answer_ends_in_time_for_the_next_one,
    a_server_that_starts_after_an_outage_lets_others_renew_their_leases_first,
    after_an_outage_others_may_renew_their_leases_before_anything_is_claimed,
    a_row_with_a_new_attempt_is_claimed_while_the_job_of_the_last_one_runs,
    the_end_of_a_job_is_a_reason_to_look_only_if_the_last_look_found_no_room_for_all,
}

/// A consumer whose jobs never end.
struct Busy {
    store: Store,
    terms: LeaseTerms,
    room: Option<Room>,
}

impl Consumer for Busy {
    const TABLE: WorkTable = WorkTable::Tasks;
    type Room = Room;
    type Work = Claimed;
    type Job = ();

    fn store(&self) -> &Store {
        &self.store
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }

    fn room(&self, _: &Jobs<()>) -> Option<Room> {
        self.room
    }

    async fn claim(&self, room: Room, held: &[Lease]) -> Result<Vec<Claimed>, Error> {
        self.store.claim(&self.terms.owner, room, LEASE, held).await
    }

    async fn next_due(&self, room: Room, held: &[Lease]) -> Result<Option<NextReady>, Error> {
        self.store.next_due(room, held).await
    }

    fn leases(claimed: &Claimed) -> Vec<Lease> {
        vec![claimed.lease()]
    }

    fn start(self: Arc<Self>, _: Claimed, _: CancellationToken) -> ((), BoxFuture<'static, ()>) {
        ((), std::future::pending().boxed())
    }
}

/// Starts a job, and ends its lease. Returns the consumer with that job.
async fn with_ended_lease(world: &World, heartbeat: Duration) -> (Arc<Busy>, Jobs<()>) {
    world.launched_review("hello").await;
    let (owner, poll, grace) = ("busy".to_owned(), Duration::from_secs(5), Duration::ZERO);
    let terms = LeaseTerms { owner, lease: LEASE, heartbeat, poll, grace };
    let (busy, mut jobs) = (Arc::new(Busy { store: world.store.clone(), terms, room: Some(ROOM) }), Jobs::new());
    end_leases(world).await;
    fill(&busy, &mut jobs).await.expect("claims");
    assert_eq!(jobs.count(), 1);
    end_leases(world).await;
    (busy, jobs)
}

/// PostgreSQL uses its own clock for leases, which no test can advance.
async fn end_leases(world: &World) {
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(Sql::new("UPDATE tasks SET ready_at = 0")).await.expect("writes");
    conn.commit().await.expect("writes");
}

async fn what_a_running_job_holds_is_not_claimed_again(world: World) {
    let (busy, mut jobs) = with_ended_lease(&world, Duration::from_hours(1)).await;
    let held = jobs.leases();
    let Filled { wait, .. } = fill(&busy, &mut jobs).await.expect("claims");
    assert_eq!((jobs.leases(), wait), (held.clone(), Some(busy.terms.poll)), "nor is it looked for again");
    let still = world.store.renew(WorkTable::Tasks, "busy", &held, LEASE).await.expect("renews");
    assert_eq!(still, held, "its result still counts");
}

async fn leases_that_may_have_ended_are_renewed_before_anything_is_claimed(world: World) {
    let (busy, mut jobs) = with_ended_lease(&world, Duration::ZERO).await;
    let full = Arc::new(Busy { store: world.store.clone(), terms: busy.terms.clone(), room: None });
    for consumer in [busy, full] {
        end_leases(&world).await;
        fill(&consumer, &mut jobs).await.expect("claims");
        assert_eq!(world.store.claim("other", ROOM, LEASE, &[]).await.expect("claims"), Vec::new());
    }
}

/// Its first try must be over soon enough for another, before other servers claim.
async fn a_renewal_that_gets_no_answer_ends_in_time_for_the_next_one(world: World) {
    if !world.store.inner.db.is_postgres() {
        return;
    }
    let (busy, jobs) = with_ended_lease(&world, Duration::from_secs(5)).await;
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    conn.execute(Sql::new("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE")).await.expect("locks");
    let begun = Instant::now();
    world.store.renew(WorkTable::Tasks, "busy", &jobs.leases(), LEASE).await.expect_err("gets no answer");
    assert!(begun.elapsed() + AFTER_ERROR < busy.terms.heartbeat, "{:?}", begun.elapsed());
    conn.rollback().await.expect("unlocks");
    assert_eq!(
        world.store.renew(WorkTable::Tasks, "busy", &jobs.leases(), LEASE).await.expect("renews"),
        jobs.leases()
    );
}

async fn a_server_that_starts_after_an_outage_lets_others_renew_their_leases_first(world: World) {
    let (busy, jobs) = with_ended_lease(&world, Duration::from_secs(5)).await;
    let start = async || {
        let mut new = Jobs::new();
        fill(&busy, &mut new).await.expect("starts");
        (new.count(), new.claims_from > Instant::now())
    };
    // Only one server uses SQLite, and no lease of another one can come back.
    let waits = world.store.inner.db.is_postgres();
    assert_eq!(start().await, (usize::from(!waits), waits), "all leases have ended");
    if waits {
        world.store.renew(WorkTable::Tasks, "busy", &jobs.leases(), LEASE).await.expect("renews");
        world.launched_review("another").await;
        assert!(!start().await.1, "somebody holds a lease");
    }
}

/// Another server may hold the result of a call that it could not commit.
async fn after_an_outage_others_may_renew_their_leases_before_anything_is_claimed(world: World) {
    let (busy, mut jobs) = with_ended_lease(&world, Duration::from_secs(5)).await;
    world.launched_review("another").await;
    let due = Sql::new("UPDATE tasks SET ready_at = 0 WHERE owner IS NULL");
    assert_eq!(world.store.inner.db.execute(due).await.expect("writes"), 1);
    let held = world.store.claim("other", ROOM, LEASE, &jobs.leases()).await.expect("claims").remove(0).lease();
    end_leases(&world).await;

    let outage = LEASE.saturating_sub(busy.terms.heartbeat) + Duration::from_secs(1);
    jobs.answered = Instant::now().checked_sub(outage);
    let Filled { wait, .. } = fill(&busy, &mut jobs).await.expect("waits");
    assert!(wait.is_some_and(|wait| wait <= busy.terms.heartbeat), "{wait:?}");
    assert_eq!(jobs.count(), 1, "nothing was claimed");
    let renewed = world.store.renew(WorkTable::Tasks, "other", &[held], LEASE).await.expect("renews");
    assert_eq!(renewed, [held]);
    jobs.claims_from = Instant::now();
    fill(&busy, &mut jobs).await.expect("claims");
    assert_eq!(jobs.count(), 1, "the lease holds again");
    end_leases(&world).await;
    fill(&busy, &mut jobs).await.expect("claims");
    assert_eq!(jobs.count(), 2);
}

async fn a_row_with_a_new_attempt_is_claimed_while_the_job_of_the_last_one_runs(world: World) {
    let (busy, mut jobs) = with_ended_lease(&world, Duration::from_hours(1)).await;
    let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
    let retry = "UPDATE tasks SET ready_at = 0, attempt = attempt + 1, owner = NULL";
    conn.execute(Sql::new(retry)).await.expect("writes");
    conn.commit().await.expect("writes");
    fill(&busy, &mut jobs).await.expect("claims");
    let mut attempts: Vec<u32> = jobs.leases().iter().map(|lease| lease.attempt).collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 3]);
}

/// A consumer whose jobs end when they are told to. It counts how often it looks for work.
struct Counting {
    busy: Busy,
    looks: AtomicU32,
    ends: Semaphore,
    slots: u32,
}

impl Consumer for Counting {
    const TABLE: WorkTable = WorkTable::Tasks;
    type Room = u32;
    type Work = Claimed;
    type Job = ();

    fn store(&self) -> &Store {
        &self.busy.store
    }

    fn terms(&self) -> &LeaseTerms {
        &self.busy.terms
    }

    fn room(&self, jobs: &Jobs<()>) -> Option<u32> {
        let running = u32::try_from(jobs.count()).expect("few jobs");
        self.slots.checked_sub(running).filter(|free| *free > 0)
    }

    async fn claim(&self, room: u32, held: &[Lease]) -> Result<Vec<Claimed>, Error> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.busy.claim(Room { calls: room, timers: room, suspects: 0 }, held).await
    }

    async fn next_due(&self, _: u32, _: &[Lease]) -> Result<Option<NextReady>, Error> {
        Ok(None)
    }

    fn knows_all_due(_: u32) -> bool {
        true
    }

    fn leases(claimed: &Claimed) -> Vec<Lease> {
        vec![claimed.lease()]
    }

    fn start(self: Arc<Self>, _: Claimed, _: CancellationToken) -> ((), BoxFuture<'static, ()>) {
        let end = async move { self.ends.acquire().await.expect("open").forget() };
        ((), end.boxed())
    }
}

async fn the_end_of_a_job_is_a_reason_to_look_only_if_the_last_look_found_no_room_for_all(world: World) {
    for (slots, expected) in [(2, 2), (1, 3)] {
        world.launched_review("hello").await;
        end_leases(&world).await;
        let (owner, poll, grace) = ("counts".to_owned(), Duration::from_hours(1), Duration::ZERO);
        let terms = LeaseTerms { owner, lease: LEASE, heartbeat: Duration::from_hours(1), poll, grace };
        let busy = Busy { store: world.store.clone(), terms, room: None };
        let consumer = Arc::new(Counting { busy, looks: AtomicU32::new(0), ends: Semaphore::new(0), slots });
        let (changed, stop) = (watch::Sender::new(()), CancellationToken::new());
        let work = tokio::spawn(consume(Arc::clone(&consumer), changed.subscribe(), stop.clone()));
        let looks = |count: u32| {
            let consumer = Arc::clone(&consumer);
            async move {
                while consumer.looks.load(Ordering::SeqCst) < count {
                    sleep(Duration::from_millis(5)).await;
                }
            }
        };
        looks(1).await;
        // The end of the job comes before the signal: a look because of it would be another one.
        consumer.ends.add_permits(1);
        if slots == 1 {
            looks(2).await;
        } else {
            while consumer.ends.available_permits() > 0 {
                sleep(Duration::from_millis(5)).await;
            }
            sleep(Duration::from_millis(200)).await;
        }
        changed.send_replace(());
        looks(expected).await;
        stop.cancel();
        work.await.expect("ends");
        assert_eq!(consumer.looks.load(Ordering::SeqCst), expected, "with {slots} slots");
        let mut conn = world.store.inner.db.write_on_this_thread().await.expect("writes");
        conn.execute(Sql::new("DELETE FROM tasks")).await.expect("writes");
        conn.commit().await.expect("writes");
    }
}
