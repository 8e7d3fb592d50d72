//! The tasks that a worker is executing, and its remaining capacity.

use shared::id::TaskId;
use tokio_util::sync::CancellationToken;

use crate::store::{Claimed, Jobs, Room, SUSPECT};

/// The number of timers fired concurrently. Firing one is only a commit.
const TIMERS: usize = 64;

pub struct Job {
    pub(super) task: TaskId,
    /// Whether it occupies one of the slots for calls.
    pub(super) is_call: bool,
    /// Whether the task has lost so many workers that it may be the cause.
    is_suspect: bool,
    /// Cancelled when the result is no longer needed.
    pub(super) abandoned: CancellationToken,
}

impl Job {
    /// The job for a task that was just claimed.
    pub fn of(claimed: &Claimed) -> Self {
        let Claimed { task, lost, .. } = claimed;
        let (is_call, is_suspect) = (task.kind.is_call(), *lost >= SUSPECT);
        Self { task: task.id, is_call, is_suspect, abandoned: CancellationToken::new() }
    }
}

/// Returns the free capacity, `None` if there is none. Also reports the number of used slots as a metric.
pub(super) fn room(jobs: &Jobs<Job>, slots: usize) -> Option<Room> {
    let calls = jobs.iter().filter(|job| job.is_call).count();
    metrics::gauge!("countersign_worker_slots_used").set(u32::try_from(calls).unwrap_or(u32::MAX));
    let free = |of: usize, held: usize| u32::try_from(of.saturating_sub(held)).unwrap_or(u32::MAX);
    let suspects = u32::from(!jobs.iter().any(|job| job.is_suspect));
    let room = Room { calls: free(slots, calls), timers: free(TIMERS, jobs.count() - calls), suspects };
    (!room.is_none()).then_some(room)
}
