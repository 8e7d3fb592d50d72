//! The loop that processes a table of leased rows: it claims due rows while there is room, processes them in jobs,
//! renews the leases of running jobs, and stops cleanly. The consumer defines the jobs and their number.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::leases::{Lease, NextReady, Progress, WorkTable};
use super::{Error, Store};

/// The shortest sleep, so that rows held by others do not make this server spin.
const MIN_WAIT: Duration = Duration::from_millis(20);
/// The wait after a database error.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The terms under which a consumer holds leases.
#[derive(Debug, Clone)]
pub struct LeaseTerms {
    /// The name that marks its leases; no two consumers may share it.
    pub owner: String,
    /// The time for which a row stays claimed after the last heartbeat.
    pub lease: Duration,
    /// The interval between heartbeats.
    pub heartbeat: Duration,
    /// The longest sleep if nothing is known to be due, since another server may have added rows.
    pub poll: Duration,
    /// How long a stopping consumer waits for its jobs.
    pub grace: Duration,
}

/// A consumer of a table of work.
pub trait Consumer: Send + Sync + 'static {
    /// The table whose rows are claimed.
    const TABLE: WorkTable;
    /// How much more work the consumer can take.
    type Room: Copy + Send + Sync;
    /// The unit of work of one job.
    type Work: Send;
    /// What the consumer keeps about a running job.
    type Job: Send + Sync;

    /// The store that has the table.
    fn store(&self) -> &Store;

    /// The terms of the leases.
    fn terms(&self) -> &LeaseTerms;

    /// The room for more work beside these jobs. `None` if there is none.
    fn room(&self, jobs: &Jobs<Self::Job>) -> Option<Self::Room>;

    /// Claims work that is due, as much as there is room for, except what running jobs have `held`.
    fn claim(&self, room: Self::Room, held: &[Lease]) -> impl Future<Output = Result<Vec<Self::Work>, Error>> + Send;

    /// When the next work is due that there is room for, beside what is `held`. `None` if none is known.
    fn next_due(
        &self,
        room: Self::Room,
        held: &[Lease],
    ) -> impl Future<Output = Result<Option<NextReady>, Error>> + Send;

    /// Whether a claim that leaves this room has found all rows that are due, and `changed` signals when more are, also
    /// rows of running jobs that get a new time. The end of a job is then no reason to look again. Where the end of a
    /// job makes room, or sets the time of its row, it is.
    fn knows_all_due(_room: Self::Room) -> bool {
        false
    }

    /// The leases on the rows of a unit of work.
    fn leases(work: &Self::Work) -> Vec<Lease>;

    /// Starts the job for a unit of work. `lost` is cancelled when the lease on one of its rows is lost.
    fn start(self: Arc<Self>, work: Self::Work, lost: CancellationToken) -> (Self::Job, BoxFuture<'static, ()>);

    /// Called at every heartbeat, after leases were renewed.
    fn beat(&self, _jobs: &Jobs<Self::Job>) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// The running jobs of a consumer.
pub struct Jobs<J> {
    set: JoinSet<()>,
    held: HashMap<Id, Held<J>>,
    /// When all leases that are older were last renewed.
    renewed: Instant,
    /// When the database last answered; `None` at the start.
    answered: Option<Instant>,
    /// Nothing is claimed before.
    claims_from: Instant,
}

struct Held<J> {
    leases: Vec<Lease>,
    lost: CancellationToken,
    job: J,
}

impl<J> Jobs<J> {
    fn new() -> Self {
        let now = Instant::now();
        Self { set: JoinSet::new(), held: HashMap::new(), renewed: now, answered: None, claims_from: now }
    }

    /// The number of running jobs.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// Iterates over what the consumer keeps about each job.
    pub fn iter(&self) -> impl Iterator<Item = &J> {
        self.held.values().map(|held| &held.job)
    }

    fn start<C: Consumer<Job = J>>(&mut self, consumer: &Arc<C>, work: C::Work) {
        let (leases, lost) = (C::leases(&work), CancellationToken::new());
        let (job, future) = Arc::clone(consumer).start(work, lost.clone());
        let id = self.set.spawn(future).id();
        self.held.insert(id, Held { leases, lost, job });
    }

    /// Removes a job that has ended or panicked. Returns whether it has ended by itself.
    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) -> bool {
        let (id, by_itself) = match ended {
            Ok((id, ())) => (id, true),
            Err(error) => {
                tracing::error!(%error, "a job panicked; it is retried when its lease expires");
                (error.id(), false)
            }
        };
        self.held.remove(&id);
        by_itself
    }

    /// Whether the database has not answered for so long that leases of other servers may have ended.
    fn is_cut_off(&self, terms: &LeaseTerms) -> bool {
        // Without work, it is asked only at every poll.
        let longest = terms.lease.saturating_sub(terms.heartbeat).max(terms.poll * 2);
        self.answered.is_some_and(|answered| answered.elapsed() > longest)
    }

    /// Records that the database has answered, perhaps after an outage.
    fn answered(&mut self, terms: &LeaseTerms) {
        if self.is_cut_off(terms) {
            self.let_others_renew(terms);
        }
        self.answered = Some(Instant::now());
    }

    /// After an outage, other servers may hold results that they could not commit: they get the time of a heartbeat to
    /// renew their leases, before anything is claimed.
    fn let_others_renew(&mut self, terms: &LeaseTerms) {
        self.claims_from = Instant::now() + terms.heartbeat;
    }

    fn leases(&self) -> Vec<Lease> {
        self.held.values().flat_map(|held| &held.leases).copied().collect()
    }
}

/// Processes a table until the stop. `changed` signals that rows may have been added.
pub async fn consume<C: Consumer, T: Send + Sync>(
    consumer: Arc<C>,
    mut changed: watch::Receiver<T>,
    stop: CancellationToken,
) {
    let terms = consumer.terms();
    let mut jobs = Jobs::new();
    let mut beats = interval_at(Instant::now() + terms.heartbeat, terms.heartbeat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Once the sender is dropped, the store is closed: due rows are then found by polling.
    let mut is_signalled = true;
    'work: loop {
        // Marked as seen before the table is read, so that rows added meanwhile are not missed.
        changed.borrow_and_update();
        let Filled { wait, knows_all_due } = match fill(&consumer, &mut jobs).await {
            Ok(filled) => filled,
            Err(error) => {
                tracing::warn!(%error, table = ?C::TABLE, "no work could be claimed");
                Filled { wait: Some(AFTER_ERROR), knows_all_due: false }
            }
        };
        let has_room = wait.is_some();
        let until = Instant::now() + wait.unwrap_or(terms.poll);
        loop {
            tokio::select! {
                () = stop.cancelled() => break 'work,
                signal = changed.changed(), if has_room && is_signalled => is_signalled = signal.is_ok(),
                () = sleep_until(until), if has_room => {}
                Some(ended) = jobs.set.join_next_with_id() => {
                    if jobs.ended(ended) && knows_all_due {
                        continue;
                    }
                }
                _ = beats.tick() => beat(&*consumer, &mut jobs).await,
            }
            break;
        }
    }
    drain(&*consumer, jobs, beats).await;
}

/// The state of a table after a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Filled {
    /// How long to wait for more work. `None` if there is no room for any.
    wait: Option<Duration>,
    /// Whether the end of a job is no reason to look for more.
    knows_all_due: bool,
}

/// Claims as much work as there is room for.
async fn fill<C: Consumer>(consumer: &Arc<C>, jobs: &mut Jobs<C::Job>) -> Result<Filled, Error> {
    let full = Filled { wait: None, knows_all_due: false };
    // After an outage, the leases of running jobs may be over. They come first, before another server claims them, and
    // even if there is no room for more.
    if jobs.renewed.elapsed() > consumer.terms().heartbeat {
        renew(&**consumer, jobs).await?;
    }
    let Some(room) = consumer.room(jobs) else { return Ok(full) };
    if jobs.answered.is_none() {
        // A server that starts cannot know of an outage, but all leases have ended after one.
        let ended = consumer.store().have_all_leases_ended(C::TABLE, consumer.terms().lease).await?;
        jobs.answered(consumer.terms());
        if ended {
            jobs.let_others_renew(consumer.terms());
        }
    } else if jobs.is_cut_off(consumer.terms()) {
        consumer.next_due(room, &jobs.leases()).await?;
        jobs.answered(consumer.terms());
    }
    let wait = jobs.claims_from.saturating_duration_since(Instant::now());
    if !wait.is_zero() {
        return Ok(Filled { wait: Some(wait), knows_all_due: false });
    }
    for work in consumer.claim(room, &jobs.leases()).await? {
        jobs.start(consumer, work);
    }
    jobs.answered(consumer.terms());
    let Some(room) = consumer.room(jobs) else { return Ok(full) };
    let (next, longest) = (consumer.next_due(room, &jobs.leases()).await?, consumer.terms().poll);
    // Measured by the database: a wrong clock of this server would make it look too often or too late.
    let wait = next.map_or(longest, NextReady::wait).clamp(MIN_WAIT, longest);
    Ok(Filled { wait: Some(wait), knows_all_due: C::knows_all_due(room) })
}

/// Renews all leases, and notifies the jobs that have lost one.
async fn renew<C: Consumer>(consumer: &C, jobs: &mut Jobs<C::Job>) -> Result<(), Error> {
    let (terms, held, begun) = (consumer.terms(), jobs.leases(), Instant::now());
    let still = consumer.store().renew(C::TABLE, &terms.owner, &held, terms.lease).await?;
    let is_lost = |job: &&Held<C::Job>| job.leases.iter().any(|lease| !still.contains(lease));
    jobs.held.values().filter(is_lost).for_each(|job| job.lost.cancel());
    jobs.renewed = begun;
    if !held.is_empty() {
        jobs.answered(terms);
    }
    Ok(())
}

async fn beat<C: Consumer>(consumer: &C, jobs: &mut Jobs<C::Job>) {
    if jobs.held.is_empty() {
        return;
    }
    if let Err(error) = renew(consumer, jobs).await {
        // The leases may expire; the store then refuses results of work that others have taken over.
        tracing::warn!(%error, table = ?C::TABLE, rows = jobs.held.len(), "leases could not be renewed");
        return;
    }
    consumer.beat(jobs).await;
}

/// Waits for running jobs. Those that take too long are aborted, and their leases released, so that others can take
/// over.
async fn drain<C: Consumer>(consumer: &C, mut jobs: Jobs<C::Job>, mut beats: Interval) {
    let terms = consumer.terms();
    let patience = sleep(terms.grace);
    tokio::pin!(patience);
    loop {
        tokio::select! {
            ended = jobs.set.join_next_with_id() => match ended {
                Some(ended) => {
                    jobs.ended(ended);
                }
                None => return,
            },
            _ = beats.tick() => beat(consumer, &mut jobs).await,
            () = &mut patience => break,
        }
    }
    jobs.set.shutdown().await;
    let held = jobs.leases();
    let released = consumer.store().release(C::TABLE, &terms.owner, &held, Progress::Begun, Duration::ZERO).await;
    if let Err(error) = released {
        tracing::warn!(%error, table = ?C::TABLE, rows = held.len(), "leases could not be released; they will expire");
    }
}
