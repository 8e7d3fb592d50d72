//! The tasks that a worker holds, and the leases under which it does.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use shared::id::TaskId;
use tokio::task::{Id, JoinError};
use tokio_util::sync::CancellationToken;

use super::Options;

/// What a worker holds, by the call that works on it.
#[derive(Default)]
pub(super) struct Held(HashMap<Id, Lease>);

struct Lease {
    task: TaskId,
    attempt: u32,
    /// Tells the call that somebody else may have the task.
    lost: CancellationToken,
}

impl Held {
    /// A call has begun.
    pub(super) fn began(&mut self, call: Id, task: TaskId, attempt: u32, lost: CancellationToken) {
        self.0.insert(call, Lease { task, attempt, lost });
    }

    /// A call has ended, however it did.
    pub(super) fn ended(&mut self, call: Result<(Id, ()), JoinError>) {
        let id = match call {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a task was not answered; it is tried again when its lease has run out");
                error.id()
            }
        };
        self.0.remove(&id);
    }

    /// Renews all leases, and breaks off the calls of tasks that are held no longer.
    pub(super) async fn beat(&self, options: &Options) {
        let Some(still) = self.renew(options, options.lease).await else { return };
        for lease in self.0.values().filter(|lease| !still.contains(&lease.task)) {
            lease.lost.cancel();
        }
    }

    /// Ends all leases.
    pub(super) async fn give_back(&self, options: &Options) {
        self.renew(options, Duration::ZERO).await;
    }

    async fn renew(&self, options: &Options, lease: Duration) -> Option<HashSet<TaskId>> {
        if self.0.is_empty() {
            return None;
        }
        let tasks: Vec<(TaskId, u32)> = self.0.values().map(|lease| (lease.task, lease.attempt)).collect();
        match options.store.heartbeat(&options.name, &tasks, lease).await {
            Ok(still) => Some(still.into_iter().collect()),
            // The leases may run out; the store will then refuse the answers of calls that others have taken over.
            Err(error) => {
                tracing::warn!(%error, tasks = tasks.len(), "leases could not be renewed");
                None
            }
        }
    }
}
