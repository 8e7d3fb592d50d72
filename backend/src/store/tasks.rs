//! Tasks: claimed under a lease by one worker at a time, on the clock of the database (in SQLite, which has none of its
//! own, on the injected one).
//!
//! `ready_at` is when a task may be claimed: its own time, or the end of the lease that somebody has. Every claim raises
//! `attempt`, and so does every new time for the same task, so that a result names exactly one piece of work.

use std::time::Duration;

use shared::id::TaskId;
use shared::time::Timestamp;

use super::db::{Db, Row, Sql};
use super::{Claimed, Error, Store};
use crate::engine::{RunState, Task};

/// The clock of PostgreSQL, in microseconds.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

impl Store {
    /// Takes due tasks under a lease on the database's clock.
    pub async fn claim(&self, worker: &str, limit: u32, lease: Duration) -> Result<Vec<Claimed>, Error> {
        let lease = micros(lease);
        match &self.inner.db {
            Db::Postgres { .. } => self.claim_skipping_locked(worker, limit, lease).await,
            Db::Sqlite { .. } => self.claim_in_turn(worker, limit, lease).await,
        }
    }

    async fn claim_skipping_locked(&self, worker: &str, limit: u32, lease: i64) -> Result<Vec<Claimed>, Error> {
        let sql = Sql::new("WITH due AS (SELECT id, owner FROM tasks WHERE ready_at <= ")
            .push(NOW)
            .push(" AND format <= ")
            .bind(RunState::FORMAT)
            .push(" ORDER BY ready_at LIMIT ")
            .bind(limit)
            .push(" FOR UPDATE SKIP LOCKED) UPDATE tasks t SET attempt = t.attempt + 1, owner = ")
            .bind(worker)
            .push(", ready_at = ")
            .push(NOW)
            .push(" + ")
            .bind(lease)
            .push(" FROM due WHERE t.id = due.id RETURNING t.attempt, due.owner, t.body");
        let mut conn = self.inner.db.write().await?;
        let rows = conn.fetch(sql).await?;
        let claimed = rows.iter().map(claimed).collect();
        conn.commit().await?;
        claimed
    }

    async fn claim_in_turn(&self, worker: &str, limit: u32, lease: i64) -> Result<Vec<Claimed>, Error> {
        let now = self.inner.clock.now().0;
        let due = |columns: &str| {
            Sql::new("SELECT ")
                .push(columns)
                .push(" FROM tasks WHERE ready_at <= ")
                .bind(now)
                .push(" AND format <= ")
                .bind(RunState::FORMAT)
                .push(" ORDER BY ready_at LIMIT ")
                .bind(limit)
        };
        // Looking first keeps an idle worker off the write lock.
        if self.inner.db.read().await?.fetch_one(due("1")).await?.is_none() {
            return Ok(Vec::new());
        }
        let mut conn = self.inner.db.write().await?;
        let rows = conn.fetch(due("attempt + 1, owner, body, id")).await?;
        let ids = rows.iter().map(|row| row.uuid(3)).collect::<Result<Vec<_>, _>>()?;
        if !ids.is_empty() {
            let sql = Sql::new("UPDATE tasks SET attempt = attempt + 1, owner = ")
                .bind(worker)
                .push(", ready_at = ")
                .bind(now.saturating_add(lease))
                .push(" WHERE id IN (")
                .list(ids)
                .push(")");
            conn.execute(sql).await?;
        }
        let claimed = rows.iter().map(claimed).collect();
        conn.commit().await?;
        claimed
    }

    /// Lengthens leases; answers with the tasks that are still held.
    pub async fn heartbeat(&self, worker: &str, held: &[(TaskId, u32)], lease: Duration) -> Result<Vec<TaskId>, Error> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let mine = |sql: Sql, ids: &[TaskId]| {
            sql.push(" WHERE owner = ").bind(worker).push(" AND id IN (").list(ids.iter().map(|id| id.0)).push(")")
        };
        let ids: Vec<TaskId> = held.iter().map(|(id, _)| *id).collect();
        let mut conn = self.inner.db.write().await?;
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
        let update = Sql::new("UPDATE tasks SET ready_at = ");
        let update = match &self.inner.db {
            // A row that a writer holds is left alone: waiting for it while holding others could be a deadlock.
            Db::Postgres { .. } => {
                let update =
                    update.push(NOW).push(" + ").bind(micros(lease)).push(" WHERE id IN (SELECT id FROM tasks");
                mine(update, &still).push(" FOR UPDATE SKIP LOCKED)")
            }
            Db::Sqlite { .. } => mine(update.bind(self.inner.clock.now().0.saturating_add(micros(lease))), &still),
        };
        conn.execute(update).await?;
        conn.commit().await?;
        Ok(still)
    }

    /// When the next task is due or the next lease runs out.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        let sql = Sql::new("SELECT ready_at FROM tasks WHERE format <= ")
            .bind(RunState::FORMAT)
            .push(" ORDER BY ready_at LIMIT 1");
        let row = self.inner.db.read().await?.fetch_one(sql).await?;
        Ok(row.map(|row| row.int(0)).transpose()?.map(Timestamp))
    }
}

fn claimed(row: &Row) -> Result<Claimed, Error> {
    let task: Task = serde_json::from_str(&row.text(2)?).map_err(|error| Error::Stored(format!("a task: {error}")))?;
    let attempt = u32::try_from(row.int(0)?).map_err(|error| Error::Stored(format!("task {}: {error}", task.id)))?;
    Ok(Claimed { task, attempt, lost_before: row.text_opt(1)?.is_some() })
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 2)
}
