//! The loop that processes a table of leased rows: it claims due rows while there is room, processes them in jobs,
//! renews the leases of running jobs, and stops cleanly. The consumer defines the jobs and their number.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::leases::{Lease, NextReady, WorkTable};
use super::{Error, Store};

/// The shortest sleep, so that a row that others hold does not keep this server spinning.
const MIN_WAIT: Duration = Duration::from_millis(20);
/// The wait after the database failed.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Under which terms a consumer holds rows.
#[derive(Debug, Clone)]
pub struct LeaseTerms {
    /// Tells its leases from those of others: no two consumers may share it.
    pub owner: String,
    /// How long a row stays claimed after the last sign of life.
    pub lease: Duration,
    /// How often there is one.
    pub heartbeat: Duration,
    /// The longest sleep when nothing is known to be due: another server may have added rows.
    pub poll: Duration,
    /// How long it waits for jobs when it stops.
    pub grace: Duration,
}

/// What works off a table.
pub trait Consumer: Send + Sync + 'static {
    /// The table whose rows it claims.
    const TABLE: WorkTable;
    /// How much more it can take on.
    type Room: Copy + Send + Sync;
    /// What one job works on.
    type Work: Send;
    /// What the consumer remembers of a job that is under way.
    type Job: Send + Sync;

    /// Where the table is.
    fn store(&self) -> &Store;

    /// Under which terms it holds rows.
    fn terms(&self) -> &LeaseTerms;

    /// How much room there is beside these jobs; `None` where there is none.
    fn room(&self, jobs: &Jobs<Self::Job>) -> Option<Self::Room>;

    /// Claims what is due and fits.
    fn claim(&self, room: Self::Room) -> impl Future<Output = Result<Vec<Self::Work>, Error>> + Send;

    /// When more is due that fits.
    fn next_due(&self, room: Self::Room) -> impl Future<Output = Result<Option<NextReady>, Error>> + Send;

    /// The rows that a piece of work has.
    fn leases(work: &Self::Work) -> Vec<Lease>;

    /// The job for a piece of work. `lost` is cancelled when it no longer holds one of its rows.
    fn start(self: Arc<Self>, work: Self::Work, lost: CancellationToken) -> (Self::Job, BoxFuture<'static, ()>);

    /// Called at every heartbeat, after leases were renewed.
    fn beat(&self, _jobs: &Jobs<Self::Job>) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// The jobs of a consumer that are under way.
pub struct Jobs<J> {
    set: JoinSet<()>,
    held: HashMap<Id, Held<J>>,
}

struct Held<J> {
    leases: Vec<Lease>,
    lost: CancellationToken,
    job: J,
}

impl<J> Jobs<J> {
    fn new() -> Self {
        Self { set: JoinSet::new(), held: HashMap::new() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// What is remembered of each.
    pub fn iter(&self) -> impl Iterator<Item = &J> {
        self.held.values().map(|held| &held.job)
    }

    fn start<C: Consumer<Job = J>>(&mut self, consumer: &Arc<C>, work: C::Work) {
        let (leases, lost) = (C::leases(&work), CancellationToken::new());
        let (job, future) = Arc::clone(consumer).start(work, lost.clone());
        let id = self.set.spawn(future).id();
        self.held.insert(id, Held { leases, lost, job });
    }

    /// A job has ended, however it did.
    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a job panicked; it is retried when its lease expires");
                error.id()
            }
        };
        self.held.remove(&id);
    }

    fn leases(&self) -> Vec<Lease> {
        self.held.values().flat_map(|held| &held.leases).copied().collect()
    }
}

/// Works off a table until the stop. `changed` says that rows may have been added.
pub async fn consume<C: Consumer, T: Send + Sync>(
    consumer: Arc<C>,
    mut changed: watch::Receiver<T>,
    stop: CancellationToken,
) {
    let terms = consumer.terms();
    let mut jobs = Jobs::new();
    let mut beats = interval_at(Instant::now() + terms.heartbeat, terms.heartbeat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Once the sender is gone, the store is closed: what is due is then found by polling.
    let mut is_signalled = true;
    loop {
        // Seen before looking, so that what is added meanwhile is not missed.
        changed.borrow_and_update();
        let wait = match fill(&consumer, &mut jobs).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(%error, table = ?C::TABLE, "no work could be claimed");
                Some(AFTER_ERROR)
            }
        };
        let has_room = wait.is_some();
        tokio::select! {
            () = stop.cancelled() => break,
            signal = changed.changed(), if has_room && is_signalled => is_signalled = signal.is_ok(),
            () = sleep(wait.unwrap_or(terms.poll)), if has_room => {}
            Some(ended) = jobs.set.join_next_with_id() => jobs.ended(ended),
            _ = beats.tick() => beat(&*consumer, &jobs).await,
        }
    }
    drain(&*consumer, jobs, beats).await;
}

/// Claims what there is room for; says how long there is nothing more to do, or `None` where there is no room left.
async fn fill<C: Consumer>(consumer: &Arc<C>, jobs: &mut Jobs<C::Job>) -> Result<Option<Duration>, Error> {
    let Some(room) = consumer.room(jobs) else { return Ok(None) };
    for work in consumer.claim(room).await? {
        jobs.start(consumer, work);
    }
    let Some(room) = consumer.room(jobs) else { return Ok(None) };
    let (next, longest) = (consumer.next_due(room).await?, consumer.terms().poll);
    // Not on this server's clock: one that is wrong would have it look too often, or too late.
    let until = next.map_or(longest, NextReady::wait);
    Ok(Some(until.clamp(MIN_WAIT, longest)))
}

/// Renews all leases, and tells the jobs that have lost one.
async fn beat<C: Consumer>(consumer: &C, jobs: &Jobs<C::Job>) {
    let (terms, held) = (consumer.terms(), jobs.leases());
    if held.is_empty() {
        return;
    }
    match consumer.store().renew(C::TABLE, &terms.owner, &held, terms.lease).await {
        Ok(still) => {
            let is_lost = |job: &&Held<C::Job>| job.leases.iter().any(|lease| !still.contains(lease));
            jobs.held.values().filter(is_lost).for_each(|job| job.lost.cancel());
        }
        // The leases may run out; the store then refuses the outcome of work that others have taken over.
        Err(error) => {
            tracing::warn!(%error, table = ?C::TABLE, rows = held.len(), "leases could not be renewed");
            return;
        }
    }
    consumer.beat(jobs).await;
}

/// Waits for jobs that are under way; those that take too long are broken off, and their leases ended, so that others can
/// take over.
async fn drain<C: Consumer>(consumer: &C, mut jobs: Jobs<C::Job>, mut beats: Interval) {
    let terms = consumer.terms();
    let patience = sleep(terms.grace);
    tokio::pin!(patience);
    loop {
        tokio::select! {
            ended = jobs.set.join_next_with_id() => match ended {
                Some(ended) => jobs.ended(ended),
                None => return,
            },
            _ = beats.tick() => beat(consumer, &jobs).await,
            () = &mut patience => break,
        }
    }
    jobs.set.shutdown().await;
    let held = jobs.leases();
    if let Err(error) = consumer.store().release(C::TABLE, &terms.owner, &held, Duration::ZERO).await {
        tracing::warn!(%error, table = ?C::TABLE, rows = held.len(), "leases could not be released; they will expire");
    }
}
