//! The tasks that a worker holds, and the leases under which it does.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use shared::id::TaskId;
use tokio::task::{Id, JoinError};
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::store::{Claimed, Room, SUSPECT};

/// How many timers are fired at once: firing one is a commit and no more.
const TIMERS: usize = 64;

/// What a worker holds, by the job that works on it.
#[derive(Default)]
pub(super) struct Leases(HashMap<Id, Lease>);

pub(super) struct Lease {
    task: TaskId,
    attempt: u32,
    /// Whether it takes one of the slots for calls.
    is_call: bool,
    /// Whether it may be what ends the process.
    is_suspect: bool,
    /// Tells the call that somebody else may have the task.
    lost: CancellationToken,
    /// Tells the call that nobody waits for its result any more.
    abandoned: CancellationToken,
}

impl Lease {
    /// That of a task that was just claimed.
    pub(super) fn of(claimed: &Claimed, lost: CancellationToken, abandoned: CancellationToken) -> Self {
        let Claimed { task, attempt, .. } = claimed;
        let is_suspect = claimed.lost >= SUSPECT;
        Self { task: task.id, attempt: *attempt, is_call: task.kind.is_call(), is_suspect, lost, abandoned }
    }
}

impl Leases {
    /// A task has begun.
    pub(super) fn began(&mut self, job: Id, lease: Lease) {
        self.0.insert(job, lease);
    }

    /// How many calls are under way.
    pub(super) fn calls(&self) -> usize {
        self.0.values().filter(|lease| lease.is_call).count()
    }

    /// What more there is room for.
    pub(super) fn room(&self, slots: usize) -> Room {
        let calls = self.calls();
        let free = |of: usize, held: usize| u32::try_from(of.saturating_sub(held)).unwrap_or(u32::MAX);
        let suspects = u32::from(!self.0.values().any(|lease| lease.is_suspect));
        Room { calls: free(slots, calls), timers: free(TIMERS, self.0.len() - calls), suspects }
    }

    /// A task has ended, however it did.
    pub(super) fn ended(&mut self, task: Result<(Id, ()), JoinError>) {
        let id = match task {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a task was not answered; it is tried again when its lease has run out");
                error.id()
            }
        };
        self.0.remove(&id);
    }

    /// Renews all leases, breaks off the calls of tasks that are held no longer, and tells those for whose results nobody
    /// waits.
    pub(super) async fn beat(&self, options: &Options) {
        let Some(still) = self.renew(options).await else { return };
        for lease in self.0.values().filter(|lease| !still.contains(&lease.task)) {
            lease.lost.cancel();
        }
        let calls: Vec<_> = self.0.values().filter(|lease| lease.is_call).map(|lease| lease.task).collect();
        match options.store.abandoned(&calls).await {
            Ok(abandoned) => {
                for lease in self.0.values().filter(|lease| abandoned.contains(&lease.task)) {
                    lease.abandoned.cancel();
                }
            }
            Err(error) => tracing::warn!(%error, "calls whose runs have ended are not known; they go on"),
        }
    }

    /// Ends all leases.
    pub(super) async fn give_back(&self, options: &Options) {
        if let Err(error) = options.store.release(&options.name, &self.tasks(), Duration::ZERO).await {
            tracing::warn!(%error, tasks = self.0.len(), "leases could not be ended; they run out");
        }
    }

    fn tasks(&self) -> Vec<(TaskId, u32)> {
        self.0.values().map(|lease| (lease.task, lease.attempt)).collect()
    }

    async fn renew(&self, options: &Options) -> Option<HashSet<TaskId>> {
        let tasks = self.tasks();
        if tasks.is_empty() {
            return None;
        }
        match options.store.heartbeat(&options.name, &tasks, options.lease).await {
            Ok(still) => Some(still.into_iter().collect()),
            // The leases may run out; the store will then refuse the answers of calls that others have taken over.
            Err(error) => {
                tracing::warn!(%error, tasks = tasks.len(), "leases could not be renewed");
                None
            }
        }
    }
}
