//! Workers: claim due tasks, call models and tools, and store their answers.
//!
//! The loop, its leases and its heartbeats are those of every consumer ([`store::consume`]). The store decides whether
//! an answer still counts, so it is safe if a worker is wrong about what it holds.

mod call;
mod job;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::agent::Model;
use crate::background::BackgroundTask;
use crate::clock::SharedClock;
use crate::handler::{NoPrograms, Programs};
use crate::store::{self, Claimed, Consumer, Error, Jobs, Lease, LeaseTerms, NextReady, Room, Store, WorkTable};
use crate::token_stream::Streams;
use crate::tool::Tool;
use job::Job;

/// The dependencies of a worker.
#[derive(Clone)]
pub struct WorkerOptions {
    /// The source of tasks, which also stores the answers.
    pub store: Store,
    /// The models, which carry out agents' turns.
    pub models: Arc<dyn Model>,
    /// The tools, which execute calls.
    pub tools: Arc<dyn Tool>,
    /// The programs that act as handlers.
    pub programs: Arc<dyn Programs>,
    /// The receiver of agents' text while it is written.
    pub streams: Streams,
    /// The clock that measures how long calls take.
    pub clock: SharedClock,
    /// The number of concurrent model and tool calls. Timers need none of these: they never wait for calls.
    pub slots: usize,
    /// The settings of its leases.
    pub terms: LeaseTerms,
}

impl WorkerOptions {
    /// Returns the default settings, with a unique owner name and without programs to ask.
    pub fn new(
        store: Store,
        models: Arc<dyn Model>,
        tools: Arc<dyn Tool>,
        streams: Streams,
        clock: SharedClock,
    ) -> Self {
        let terms = LeaseTerms {
            owner: format!("worker-{}", hex::encode(&clock.random()[..6])),
            // After a crash, tasks in progress wait this long before they are claimed again.
            lease: Duration::from_secs(15),
            heartbeat: Duration::from_secs(5),
            poll: Duration::from_secs(5),
            grace: Duration::from_secs(10),
        };
        Self { store, models, tools, programs: Arc::new(NoPrograms), streams, clock, slots: 16, terms }
    }
}

/// Starts a worker. When it stops, it claims no more tasks, waits a while for those in progress, and releases the rest.
pub fn start(options: WorkerOptions) -> BackgroundTask {
    let (background, due) = (options.store.background().clone(), options.store.tasks_due());
    background.start("worker", |stop| store::consume(Arc::new(options), due, stop))
}

impl Consumer for WorkerOptions {
    const TABLE: WorkTable = WorkTable::Tasks;
    type Room = Room;
    type Work = Claimed;
    type Job = Job;

    fn store(&self) -> &Store {
        &self.store
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }

    fn room(&self, jobs: &Jobs<Job>) -> Option<Room> {
        job::room(jobs, self.slots)
    }

    async fn claim(&self, room: Room, held: &[Lease]) -> Result<Vec<Claimed>, Error> {
        self.store.claim(&self.terms.owner, room, self.terms.lease, held).await
    }

    async fn next_due(&self, room: Room, held: &[Lease]) -> Result<Option<NextReady>, Error> {
        self.store.next_due(room, held).await
    }

    /// Every commit that makes a task or gives it a new time is signalled, and a new time comes with a new attempt.
    /// Tasks that others held, or that this worker has put off, are found by polling and by the ends of their leases.
    fn knows_all_due(room: Room) -> bool {
        room.calls > 0 && room.timers > 0 && room.suspects > 0
    }

    fn leases(claimed: &Claimed) -> Vec<Lease> {
        vec![claimed.lease()]
    }

    fn start(self: Arc<Self>, claimed: Claimed, lost: CancellationToken) -> (Job, BoxFuture<'static, ()>) {
        let task = &claimed.task;
        let span = tracing::info_span!(
            "task",
            run = %task.run,
            step = %task.step,
            task = %task.id,
            node = %task.node,
            attempt = claimed.attempt,
        );
        let job = Job::of(&claimed);
        let work = call::handle(self, claimed, lost, job.abandoned.clone());
        (job, work.instrument(span).boxed())
    }

    /// Cancels the calls whose results are no longer needed.
    async fn beat(&self, jobs: &Jobs<Job>) {
        let calls: Vec<_> = jobs.iter().filter(|job| job.is_call).map(|job| job.task).collect();
        match self.store.abandoned(&calls).await {
            Ok(abandoned) => {
                jobs.iter().filter(|job| abandoned.contains(&job.task)).for_each(|job| job.abandoned.cancel());
            }
            Err(error) => tracing::warn!(%error, "could not find the calls whose runs have ended; they continue"),
        }
    }
}
