//! Tasks: claimed under a lease by one worker at a time, on the clock of the database (in SQLite, which has none of its
//! own, on the injected one).
//!
//! `ready_at` is when a task may be claimed: its own time, or the end of the lease that somebody has. Every claim raises
//! `attempt`, and so does every new time for the same task, so that a result names exactly one piece of work.
//!
//! Calls and timers wait in lanes of their own: a call may take minutes, a timer never waits for one.

use std::time::Duration;

use shared::id::TaskId;
use shared::time::Timestamp;

use super::db::{Conn, Db, Row, Sql};
use super::{Claimed, Error, Store};
use crate::engine::{RunState, Task};

/// The clock of PostgreSQL, in microseconds.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// From how many lost workers on a task may be what ended them. A server carries out one such task at a time, so that
/// the task that ends the process is found, and no other is taken for it.
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
    /// Tasks of either kind that may be what ends their workers, beside the others: 0 or 1.
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
    /// Takes due tasks under a lease on the database's clock.
    pub async fn claim(&self, worker: &str, room: Room, lease: Duration) -> Result<Vec<Claimed>, Error> {
        let lease = micros(lease);
        match &self.inner.db {
            Db::Postgres { .. } => self.claim_skipping_locked(worker, room, lease).await,
            Db::Sqlite { .. } => self.claim_in_turn(worker, room, lease).await,
        }
    }

    async fn claim_skipping_locked(&self, worker: &str, room: Room, lease: i64) -> Result<Vec<Claimed>, Error> {
        let due = Sql::new("WITH due AS (");
        let due =
            first(due, "id, owner", room, |sql| sql.push(" AND ready_at <= ").push(NOW), " FOR UPDATE SKIP LOCKED");
        let sql = due
            .push(") UPDATE tasks t SET attempt = t.attempt + 1, owner = ")
            .bind(worker)
            .push(", lost = t.lost + CASE WHEN due.owner IS NULL THEN 0 ELSE 1 END, ready_at = ")
            .push(NOW)
            .push(" + ")
            .bind(lease)
            .push(" FROM due WHERE t.id = due.id RETURNING t.attempt, due.owner, t.body, t.lost, t.id");
        let store = self.clone();
        let claim = async move |mut conn: Conn| {
            let rows = conn.fetch(sql).await?;
            let claimed = store.readable_tasks(&mut conn, &rows).await?;
            conn.commit().await?;
            Ok(claimed)
        };
        self.inner.db.write(claim).await
    }

    async fn claim_in_turn(&self, worker: &str, room: Room, lease: i64) -> Result<Vec<Claimed>, Error> {
        let now = self.inner.clock.now().0;
        let due = move |columns: &str| {
            first(Sql::default(), columns, room, |sql| sql.push(" AND ready_at <= ").bind(now), "")
        };
        // Looking first keeps an idle worker off the write lock.
        if self.inner.db.read().await?.fetch_one(due("1")).await?.is_none() {
            return Ok(Vec::new());
        }
        let (store, worker) = (self.clone(), worker.to_owned());
        let claim = async move |mut conn: Conn| {
            // One more worker is lost where one is still named.
            let rows = conn.fetch(due("attempt + 1, owner, body, lost + (owner IS NOT NULL), id")).await?;
            let ids = rows.iter().map(|row| row.uuid(4)).collect::<Result<Vec<_>, _>>()?;
            if !ids.is_empty() {
                let sql =
                    Sql::new("UPDATE tasks SET attempt = attempt + 1, lost = lost + (owner IS NOT NULL), owner = ")
                        .bind(worker.as_str())
                        .push(", ready_at = ")
                        .bind(now.saturating_add(lease))
                        .push(" WHERE id IN (")
                        .list(ids)
                        .push(")");
                conn.execute(sql).await?;
            }
            let claimed = store.readable_tasks(&mut conn, &rows).await?;
            conn.commit().await?;
            Ok(claimed)
        };
        self.inner.db.write(claim).await
    }

    /// The tasks of claimed rows. One that cannot be read keeps no other from being carried out: it is put aside.
    async fn readable_tasks(&self, conn: &mut Conn, rows: &[Row]) -> Result<Vec<Claimed>, Error> {
        let mut tasks = Vec::with_capacity(rows.len());
        for row in rows {
            match claimed(row) {
                Ok(claimed) => tasks.push(claimed),
                Err(error) => {
                    let task = row.uuid(4)?;
                    tracing::error!(%error, %task, "a task cannot be read; it is looked at again in an hour");
                    let sql = self.ready_in(Sql::new("UPDATE tasks SET "), Duration::from_hours(1));
                    conn.execute(sql.push(" WHERE id = ").bind(task)).await?;
                }
            }
        }
        Ok(tasks)
    }

    /// Adds `ready_at = ` so much from now on the clock of leases.
    fn ready_in(&self, sql: Sql, delay: Duration) -> Sql {
        let sql = sql.push("ready_at = ");
        match &self.inner.db {
            Db::Postgres { .. } => sql.push(NOW).push(" + ").bind(micros(delay)),
            Db::Sqlite { .. } => sql.bind(self.inner.clock.now().0.saturating_add(micros(delay))),
        }
    }

    /// Ends leases of tasks that were not carried out: others may claim them after a delay. The worker that held them
    /// does not count as lost.
    pub async fn release(&self, worker: &str, held: &[(TaskId, u32)], delay: Duration) -> Result<(), Error> {
        if held.is_empty() {
            return Ok(());
        }
        // The next claim counts the owner that stands there.
        let sql = self.ready_in(Sql::new("UPDATE tasks SET lost = lost - 1, "), delay);
        let sql = sql.push(" WHERE id IN (SELECT id FROM tasks WHERE owner = ").bind(worker);
        let held = held.iter().map(|(task, attempt)| vec![task.0.into(), (*attempt).into()]);
        let sql = sql.push(" AND (id, attempt) IN (").values(held);
        let sql = sql.push(if self.inner.db.is_postgres() { ") FOR UPDATE SKIP LOCKED)" } else { "))" });
        self.inner.db.execute(sql).await?;
        Ok(())
    }

    /// Lengthens leases; answers with the tasks that are still held.
    pub async fn heartbeat(&self, worker: &str, held: &[(TaskId, u32)], lease: Duration) -> Result<Vec<TaskId>, Error> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let (store, worker, held) = (self.clone(), worker.to_owned(), held.to_vec());
        let lengthen = async move |mut conn: Conn| {
            let mine = |sql: Sql, ids: &[TaskId]| {
                let sql = sql.push(" WHERE owner = ").bind(worker.as_str());
                sql.push(" AND id IN (").list(ids.iter().map(|id| id.0)).push(")")
            };
            let ids: Vec<TaskId> = held.iter().map(|(id, _)| *id).collect();
            let mut still = Vec::new();
            for row in conn.fetch(mine(Sql::new("SELECT id, attempt FROM tasks"), &ids)).await? {
                let (id, attempt) = (TaskId(row.uuid(0)?), row.int(1)?);
                if held.iter().any(|(known, at)| *known == id && i64::from(*at) == attempt) {
                    still.push(id);
                }
            }
            if still.is_empty() {
                conn.rollback().await?;
                return Ok(still);
            }
            let update = store.ready_in(Sql::new("UPDATE tasks SET "), lease);
            let update = if conn.is_postgres() {
                // A row that a writer holds is left alone: waiting for it while holding others could be a deadlock.
                mine(update.push(" WHERE id IN (SELECT id FROM tasks"), &still).push(" FOR UPDATE SKIP LOCKED)")
            } else {
                mine(update, &still)
            };
            conn.execute(update).await?;
            conn.commit().await?;
            Ok(still)
        };
        self.inner.db.write(lengthen).await
    }

    /// Those of these tasks for whose results nobody waits any more: the run, or the map that they belong to, is over.
    pub async fn abandoned(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>, Error> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let sql = Sql::new("SELECT id FROM tasks WHERE lane = 'over' AND id IN (");
        let sql = sql.list(tasks.iter().map(|id| id.0)).push(")");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(|row| Ok(TaskId(row.uuid(0)?))).collect()
    }

    /// When the next task that there is room for is due, or its lease runs out.
    pub async fn next_due(&self, room: Room) -> Result<Option<Timestamp>, Error> {
        let one = Room { calls: room.calls.min(1), timers: room.timers.min(1), ..room };
        let rows = self.inner.db.read().await?.fetch(first(Sql::default(), "ready_at", one, |sql| sql, "")).await?;
        let times = rows.iter().map(|row| row.int(0)).collect::<Result<Vec<_>, _>>()?;
        Ok(times.into_iter().min().map(Timestamp))
    }
}

/// Of each lane the tasks that come first, as many as there is room for; and beside them suspects.
fn first(mut sql: Sql, columns: &str, room: Room, which: impl Fn(Sql) -> Sql, lock: &str) -> Sql {
    let lanes = [("call", room.calls), ("timer", room.timers)];
    for (lane, limit) in lanes {
        sql = sql.push("SELECT * FROM (SELECT ").push(columns).push(" FROM tasks WHERE lane = '").push(lane);
        sql = which(sql.push("' AND lost < ").push(SUSPECTED).push(" AND format <= ").bind(RunState::FORMAT));
        sql = sql.push(" ORDER BY ready_at LIMIT ").bind(limit).push(lock).push(") AS ").push(lane).push(" UNION ALL ");
    }
    sql = sql.push("SELECT * FROM (SELECT ").push(columns).push(" FROM tasks WHERE lost >= ").push(SUSPECTED);
    sql = sql.push(" AND lane IN (").list(lanes.iter().filter(|(_, limit)| *limit > 0).map(|(lane, _)| *lane));
    sql = which(sql.push(") AND format <= ").bind(RunState::FORMAT));
    sql.push(" ORDER BY ready_at LIMIT ").bind(room.suspects).push(lock).push(") AS suspects")
}

fn claimed(row: &Row) -> Result<Claimed, Error> {
    let task: Task = serde_json::from_str(&row.text(2)?).map_err(|error| Error::Stored(format!("a task: {error}")))?;
    let attempt = u32::try_from(row.int(0)?).map_err(|error| Error::Stored(format!("task {}: {error}", task.id)))?;
    Ok(Claimed {
        task,
        attempt,
        lost_before: row.text_opt(1)?.is_some(),
        lost: u32::try_from(row.int(3)?).unwrap_or(0),
    })
}

pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 2)
}
