//! What a consumer claims after its leases have ended, while its jobs still run.

use futures::FutureExt as _;

use super::*;
use crate::store::db::Sql;
use crate::store::tests::support::{World, on_both};
use crate::store::{Claimed, Room};

const ROOM: Room = Room { calls: 10, timers: 10, suspects: 1 };
const LEASE: Duration = Duration::from_secs(30);

on_both! {
    what_a_running_job_holds_is_not_claimed_again,
    leases_that_may_have_ended_are_renewed_before_anything_is_claimed,
}

/// A consumer whose jobs never end.
struct Busy {
    store: Store,
    terms: LeaseTerms,
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
        Some(ROOM)
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
    let (busy, mut jobs) = (Arc::new(Busy { store: world.store.clone(), terms }), Jobs::new());
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
    let wait = fill(&busy, &mut jobs).await.expect("claims");
    assert_eq!((jobs.leases(), wait), (held.clone(), Some(busy.terms.poll)), "nor is it looked for again");
    let still = world.store.renew(WorkTable::Tasks, "busy", &held, LEASE).await.expect("renews");
    assert_eq!(still, held, "its result still counts");
}

async fn leases_that_may_have_ended_are_renewed_before_anything_is_claimed(world: World) {
    let (busy, mut jobs) = with_ended_lease(&world, Duration::ZERO).await;
    fill(&busy, &mut jobs).await.expect("claims");
    assert_eq!(world.store.claim("other", ROOM, LEASE, &[]).await.expect("claims"), Vec::new());
}
