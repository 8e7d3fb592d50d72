//! Tasks: the order in which workers claim them. Their leases are in `store/leases.rs`. Every new time of a task
//! increases its `attempt`, like a claim.
//!
//! Calls and timers wait in separate lanes: a call may take minutes, and a timer never waits for one.

use std::time::Duration;

use shared::id::TaskId;

use super::db::{Row, Sql};
use super::leases::{Lease, NextReady, Readiness, Selection, WorkTable};
use super::{Claimed, Error, Store};
use crate::engine::{RunState, Task};

/// With so many lost workers, a task is suspected of ending them. A server carries out one such task at a time, so that
/// the one that does is found, and no other is taken for it.
pub const SUSPECT: u32 = 2;

/// The same in SQL, where the index of suspects names it.
const SUSPECTED: &str = "2";

/// How many tasks of each lane a worker has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Calls of models and tools.
    pub calls: u32,
    /// Deadlines and sleeps.
    pub timers: u32,
    /// Suspects of either kind, beside the others: 0 or 1.
    pub suspects: u32,
}

impl Room {
    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self.calls == 0 && self.timers == 0
    }
}

/// The lane in which a task waits.
pub(super) fn lane(task: &Task) -> &'static str {
    if task.kind.is_call() { "call" } else { "timer" }
}

impl Store {
    /// Claims due tasks.
    pub async fn claim(&self, worker: &str, room: Room, lease: Duration) -> Result<Vec<Claimed>, Error> {
        let first = move |of: &Selection<'_>| first(room, of);
        self.claim_rows(WorkTable::Tasks, "id, body, attempt, lost, owner", (worker, lease), first, claimed).await
    }

    /// When the next task that there is room for is due, or its lease runs out.
    pub async fn next_due(&self, room: Room) -> Result<Option<NextReady>, Error> {
        let one = Room { calls: room.calls.min(1), timers: room.timers.min(1), ..room };
        self.next_ready(|of| first(one, of)).await
    }

    /// The tasks among these whose results are not needed any more, since their run or their map is over.
    pub async fn abandoned(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>, Error> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let sql = Sql::new("SELECT id FROM tasks WHERE lane = 'over' AND id IN (");
        let sql = sql.list(tasks.iter().map(|id| id.0)).push(")");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(|row| Ok(TaskId(row.uuid(0)?))).collect()
    }
}

impl Claimed {
    /// The lease under which it is held.
    pub fn lease(&self) -> Lease {
        Lease { id: self.task.id.0, attempt: self.attempt }
    }
}

/// Of each lane the tasks that come first, as many as there is room for; and beside them suspects.
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

/// A task as it is once it is claimed.
fn claimed(row: &Row) -> Result<Claimed, Error> {
    let task: Task = serde_json::from_str(&row.text(1)?).map_err(|error| Error::Stored(format!("a task: {error}")))?;
    let attempt =
        u32::try_from(row.int(2)? + 1).map_err(|error| Error::Stored(format!("task {}: {error}", task.id)))?;
    let lost_before = row.text_opt(4)?.is_some();
    let lost = u32::try_from(row.int(3)?).unwrap_or(0) + u32::from(lost_before);
    Ok(Claimed { task, attempt, lost_before, lost })
}
