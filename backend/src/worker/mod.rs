//! Workers: claim tasks that are due, call models and tools, and put what they answer in at the top of the house.
//!
//! A worker holds its tasks under leases that it keeps renewing; a task that it no longer holds is given up at once. The
//! store decides whether an answer still counts, so the worker never has to be right about what it holds.
//!
//! Imports `shared`, `crate::clock`, `crate::token_stream`, `crate::flow`, `crate::engine`, `crate::store`, `crate::agent`,
//! `crate::tool` and `crate::handler` only.

mod call;
mod leases;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

use crate::agent::Model;
use crate::clock::SharedClock;
use crate::handler::{NoPrograms, Programs};
use crate::store::{Claimed, Store};
use crate::token_stream::Streams;
use crate::tool::Tool;
use leases::{Lease, Leases};

/// The longest sleep when nothing is known to be due: another node may have made tasks.
const POLL: Duration = Duration::from_secs(5);
/// The shortest sleep, so that a task that others hold on to does not keep this worker spinning.
const MIN_WAIT: Duration = Duration::from_millis(20);
/// The wait after the database failed.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// What a worker needs.
#[derive(Clone)]
pub struct Options {
    /// Where tasks come from, and where answers go.
    pub store: Store,
    /// What takes agents' turns.
    pub models: Arc<dyn Model>,
    /// What makes tool calls.
    pub tools: Arc<dyn Tool>,
    /// What asks handlers that are programs.
    pub programs: Arc<dyn Programs>,
    /// Where agents' text goes while it is written.
    pub streams: Streams,
    /// For durations, and for the time until the next task.
    pub clock: SharedClock,
    /// Tells this worker's leases from others': no two workers may share it.
    pub name: String,
    /// How many calls of models and tools are under way at once. Timers take none of these: they never wait for calls.
    pub slots: usize,
    /// How long a task stays taken after the last sign of life.
    pub lease: Duration,
    /// How often there is one.
    pub heartbeat: Duration,
    /// How long a stopping worker waits for what it has begun.
    pub grace: Duration,
}

impl Options {
    /// The usual settings, with a name that nobody else has; no program is asked.
    pub fn new(
        store: Store,
        models: Arc<dyn Model>,
        tools: Arc<dyn Tool>,
        streams: Streams,
        clock: SharedClock,
    ) -> Self {
        let name = format!("worker-{}", hex::encode(&clock.random()[..6]));
        Self {
            store,
            models,
            tools,
            programs: Arc::new(NoPrograms),
            streams,
            clock,
            name,
            slots: 16,
            // After a crash, what was under way waits this long before it is taken up again.
            lease: Duration::from_secs(15),
            heartbeat: Duration::from_secs(5),
            grace: Duration::from_secs(10),
        }
    }
}

/// A worker that is not running yet.
pub struct Worker(Options);

impl Worker {
    /// A worker with these settings.
    pub fn new(options: Options) -> Self {
        Self(options)
    }

    /// Starts it.
    pub fn run(self) -> Handle {
        let stop = CancellationToken::new();
        let background = self.0.store.background().clone();
        let serving = serve(Arc::new(self.0), stop.clone());
        let task = tokio::spawn(background.watch("worker", &stop, serving));
        Handle { stop: stop.drop_guard(), task }
    }
}

/// A running worker. It stops when this is dropped.
pub struct Handle {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Handle {
    /// Takes no more tasks, waits a while for those that were begun, and gives back the rest.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the worker did not stop in order");
        }
    }
}

async fn serve(options: Arc<Options>, stop: CancellationToken) {
    let mut due = options.store.tasks_due();
    let mut jobs = JoinSet::new();
    let mut held = Leases::default();
    let mut beat = tokio::time::interval_at(Instant::now() + options.heartbeat, options.heartbeat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // When this was closed, the store is: what is due is then found by looking.
    let mut hears = true;
    loop {
        // Seen before looking, so that what becomes due meanwhile is not missed.
        due.borrow_and_update();
        let wait = match claim(&options, &mut jobs, &mut held).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(%error, "no tasks could be claimed");
                Some(AFTER_ERROR)
            }
        };
        metrics::gauge!("countersign_worker_slots_used").set(u32::try_from(held.calls()).unwrap_or(u32::MAX));
        let free = wait.is_some();
        tokio::select! {
            () = stop.cancelled() => break,
            heard = due.changed(), if free && hears => hears = heard.is_ok(),
            () = tokio::time::sleep(wait.unwrap_or(POLL)), if free => {}
            Some(ended) = jobs.join_next_with_id() => held.ended(ended),
            _ = beat.tick() => held.beat(&options).await,
        }
    }
    drain(&options, jobs, held, beat).await;
}

/// Takes what there is room for, and says how long there is nothing to do; none where there is no room left.
async fn claim(
    options: &Arc<Options>,
    jobs: &mut JoinSet<()>,
    held: &mut Leases,
) -> Result<Option<Duration>, crate::store::Error> {
    let room = held.room(options.slots);
    if room.is_none() {
        return Ok(None);
    }
    for claimed in options.store.claim(&options.name, room, options.lease).await? {
        begin(options, claimed, jobs, held);
    }
    let room = held.room(options.slots);
    if room.is_none() {
        return Ok(None);
    }
    let next = options.store.next_due(room).await?;
    let until = next.map_or(POLL, |next| next.since(options.clock.now()));
    Ok(Some(until.clamp(MIN_WAIT, POLL)))
}

fn begin(options: &Arc<Options>, claimed: Claimed, jobs: &mut JoinSet<()>, held: &mut Leases) {
    let task = &claimed.task;
    let span = tracing::info_span!(
        "task",
        run = %task.run,
        step = %task.step,
        task = %task.id,
        node = %task.node,
        attempt = claimed.attempt,
    );
    let lost = CancellationToken::new();
    let abandoned = CancellationToken::new();
    let lease = Lease::of(&claimed, lost.clone(), abandoned.clone());
    let job = jobs.spawn(call::handle(Arc::clone(options), claimed, lost, abandoned).instrument(span));
    held.began(job.id(), lease);
}

/// Waits for what was begun; what takes too long is broken off, and its lease ended, so that another takes it over.
async fn drain(options: &Options, mut jobs: JoinSet<()>, mut held: Leases, mut beat: tokio::time::Interval) {
    let patience = tokio::time::sleep(options.grace);
    tokio::pin!(patience);
    loop {
        tokio::select! {
            ended = jobs.join_next_with_id() => match ended {
                Some(ended) => held.ended(ended),
                None => return,
            },
            _ = beat.tick() => held.beat(options).await,
            () = &mut patience => break,
        }
    }
    jobs.shutdown().await;
    held.give_back(options).await;
}
