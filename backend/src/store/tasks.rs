//! Tasks, and the order in which workers claim them. Their leases are in `store/leases.rs`. Each time that a task is
//! given a new due time, its `attempt` increases, as with a claim.
//!
//! Calls and timers wait in separate lanes: a call may take minutes, and a timer never waits for one.

use std::time::Duration;

use shared::id::TaskId;

use super::db::{Row, Sql};
use super::leases::{Lease, NextReady, Readiness, Selection, WorkTable};
use super::{Claimed, Error, Store};
use crate::engine::{RunState, Task};

/// After this many lost workers, a task is suspected of killing them. A server carries out one suspect at a time, so
/// that the guilty task is found, and innocent ones that ran beside it are not blamed.
pub const SUSPECT: u32 = 2;

/// [`SUSPECT`] in SQL, as the index of suspects has it.
const SUSPECTED: &str = "2";

/// The number of tasks that a worker has room for, by lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Tasks that call models and tools.
    pub calls: u32,
    /// Timers: deadlines, sleeps and waits before retries.
    pub timers: u32,
    /// Suspects of either lane, in addition to the others: 0 or 1.
    pub suspects: u32,
}

impl Room {
    /// Whether there is no room in any lane.
    pub fn is_none(self) -> bool {
        self.calls == 0 && self.timers == 0
    }
}

pub(super) fn lane(task: &Task) -> &'static str {
    if task.kind.is_call() { "call" } else { "timer" }
}

impl Store {
    /// Claims due tasks, as many as there is room for. Leaves out those that the worker still has `held`.
    pub async fn claim(
        &self,
        worker: &str,
        room: Room,
        lease: Duration,
        held: &[Lease],
    ) -> Result<Vec<Claimed>, Error> {
        let first = move |of: &Selection<'_>| first(room, of);
        let columns = "id, body, attempt, lost, owner";
        self.claim_rows(WorkTable::Tasks, columns, (worker, lease), held, first, claimed).await
    }

    /// Returns when the next task that there is room for is due, or its lease ends, beside those that are `held`.
    /// `None` if there is no such task.
    pub async fn next_due(&self, room: Room, held: &[Lease]) -> Result<Option<NextReady>, Error> {
        let one = Room { calls: room.calls.min(1), timers: room.timers.min(1), ..room };
        self.next_ready(held, |of| first(one, of)).await
    }

    /// Returns those of these tasks whose results are no longer needed, because their run or their map is over.
    pub async fn abandoned(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>, Error> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let sql = Sql::new("SELECT id FROM tasks WHERE lane = 'over' AND id").among(tasks.iter().map(|id| id.0));
        Ok(self.inner.db.read().await?.all(sql, Row::uuid).await?.into_iter().map(TaskId).collect())
    }
}

impl Claimed {
    /// The lease under which the task is held.
    pub fn lease(&self) -> Lease {
        Lease { id: self.task.id.0, attempt: self.attempt }
    }
}

/// Selects the first tasks of each lane, as many as there is room for, and suspects.
fn first(room: Room, of: &Selection<'_>) -> Sql {
    let lanes = [("call", room.calls, Readiness::Lease), ("timer", room.timers, Readiness::Timer)];
    let mut sql = Sql::default();
    for (lane, limit, by) in lanes {
        sql = of.columns(sql.push("SELECT * FROM (SELECT "), by).push(" FROM tasks WHERE lane = '").push(lane);
        sql = of.ready(sql.push("' AND lost < ").push(SUSPECTED).push(" AND format <= ").bind(RunState::FORMAT), by);
        sql = sql.push(" ORDER BY ready_at LIMIT ").bind(limit).push(of.lock);
        sql = sql.push(") AS ").push(lane).push(" UNION ALL ");
    }
    let by = Readiness::OfLane;
    sql = of.columns(sql.push("SELECT * FROM (SELECT "), by).push(" FROM tasks WHERE lost >= ").push(SUSPECTED);
    sql = sql.push(" AND lane IN (").list(lanes.iter().filter(|(_, limit, _)| *limit > 0).map(|(lane, ..)| *lane));
    sql = of.ready(sql.push(") AND format <= ").bind(RunState::FORMAT), by);
    sql.push(" ORDER BY ready_at LIMIT ").bind(room.suspects).push(of.lock).push(") AS suspects")
}

/// Reads a task, with the values that the claim gives it.
fn claimed(row: &Row) -> Result<Claimed, Error> {
    let task: Task = serde_json::from_str(&row.text(1)?).map_err(|error| Error::Stored(format!("a task: {error}")))?;
    let attempt =
        u32::try_from(row.int(2)? + 1).map_err(|error| Error::Stored(format!("task {}: {error}", task.id)))?;
    let lost_before = row.text_opt(4)?.is_some();
    let lost = u32::try_from(row.int(3)? + i64::from(lost_before)).unwrap_or(0);
    Ok(Claimed { task, attempt, lost_before, lost })
}
