//! Workers: claim tasks that are due, call models and tools, and put their answers into the store.
//!
//! The loop, its leases and its heartbeats are those of every consumer ([`store::consume`]). The store decides whether an
//! answer still counts, so a worker never has to be right about what it holds.
//!
//! Imports `shared`, `crate::background`, `crate::clock`, `crate::token_stream`, `crate::flow`, `crate::engine`, `crate::store`, `crate::agent`,
//! `crate::tool` and `crate::handler` only.

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
    /// The clock that measures how long calls take.
    pub clock: SharedClock,
    /// How many calls of models and tools are under way at once. Timers take none of these: they never wait for calls.
    pub slots: usize,
    /// How it holds tasks.
    pub terms: LeaseTerms,
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
        let terms = LeaseTerms {
            owner: format!("worker-{}", hex::encode(&clock.random()[..6])),
            // After a crash, what was under way waits this long before it is taken up again.
            lease: Duration::from_secs(15),
            heartbeat: Duration::from_secs(5),
            poll: Duration::from_secs(5),
            grace: Duration::from_secs(10),
        };
        Self { store, models, tools, programs: Arc::new(NoPrograms), streams, clock, slots: 16, terms }
    }
}

/// Starts a worker. When it stops, it takes no more tasks, waits a while for those that were begun, and gives back the rest.
pub fn start(options: Options) -> BackgroundTask {
    let (background, due) = (options.store.background().clone(), options.store.tasks_due());
    background.start("worker", |stop| store::consume(Arc::new(options), due, stop))
}

impl Consumer for Options {
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

    async fn claim(&self, room: Room) -> Result<Vec<Claimed>, Error> {
        self.store.claim(&self.terms.owner, room, self.terms.lease).await
    }

    async fn next_due(&self, room: Room) -> Result<Option<NextReady>, Error> {
        self.store.next_due(room).await
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

    /// Tells the calls for whose results nobody waits any more.
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
