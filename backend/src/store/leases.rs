//! Leases: rows of work (tasks, deliveries) that are claimed by one server at a time. This module owns claiming,
//! renewing and releasing. The tables (`store/tasks.rs`, `store/deliveries.rs`) define the work of a row, the order of
//! rows, and their outcome; the loop that processes them is [`consume`](super::consume).
//!
//! A table of work has the columns `id`, `ready_at` (when a row may be claimed: its own time, or the end of its lease),
//! `attempt` and `owner`. Every claim raises `attempt`, so an outcome names exactly one claim, and is refused once
//! another server has claimed the row. Leases use the clock of the database; SQLite has none, so its leases use the
//! injected clock. Timers, which the engine judges by the server's clock, are ready only when they are on both clocks
//! ([`Readiness`]), which differ by what a measurement cannot tell (`database_clock`), or while one of them was set.
//!
//! Handling failures is not part of this module, because it differs on purpose. A failed task is an input for its run,
//! whose retry policy sets the task's next time in the same commit. A failed delivery belongs to no run: its sender
//! decides when to retry, and when to give up.

use std::time::Duration;

use shared::time::Timestamp;
use uuid::Uuid;

use super::db::{Conn, Db, Row, Sql, on_blocking_thread};
use super::log_index::padded;
use super::{Error, Store};

/// How long a row that this server cannot read is deferred. A newer server may be able to read it.
const UNREADABLE_FOR: Duration = Duration::from_hours(1);

/// The time limit for a renewal in PostgreSQL. After an outage, others wait for a heartbeat before they claim: a renewal
/// whose connection was lost must leave time for the next one.
const RENEWAL: Duration = Duration::from_secs(2);

/// A table of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkTable {
    /// Tasks of runs.
    Tasks,
    /// Deliveries of notifications.
    Deliveries,
}

impl WorkTable {
    fn name(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Deliveries => "deliveries",
        }
    }

    /// The condition for rows whose work is not over.
    fn is_open(self) -> &'static str {
        match self {
            Self::Tasks => "lane IN ('call', 'timer')",
            Self::Deliveries => "status = 'waiting'",
        }
    }

    /// The columns that a claim also sets. If the row still names an owner, that attempt was lost, and is counted.
    fn on_claim(self) -> &'static str {
        match self {
            Self::Tasks => ", lost = lost + CASE WHEN owner IS NULL THEN 0 ELSE 1 END",
            Self::Deliveries => ", failures = failures + CASE WHEN owner IS NULL THEN 0 ELSE 1 END",
        }
    }

    /// The columns that are also set if a claim is undone that has counted a lost attempt.
    fn on_put_back(self) -> &'static str {
        match self {
            Self::Tasks => ", lost = lost - 1",
            Self::Deliveries => ", failures = failures - 1",
        }
    }

    /// The columns that a release also sets. A task that was begun keeps its owner, so that the next worker knows it.
    /// The next claim will count that owner as lost, so one is subtracted here.
    fn on_release(self, progress: Progress) -> &'static str {
        match (self, progress) {
            (Self::Tasks, Progress::Begun) => ", lost = lost - 1",
            (Self::Tasks, Progress::NotBegun) | (Self::Deliveries, _) => ", owner = NULL",
        }
    }
}

/// Whether the work of a claimed row may have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It was begun.
    Begun,
    /// Nothing was done.
    NotBegun,
}

/// A claim on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The id of the task or delivery.
    pub id: Uuid,
    /// The number of the claim, which distinguishes this lease from others on the same row.
    pub attempt: u32,
}

/// The time at which the next row is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextReady {
    /// When the row is ready, or its lease ends.
    pub at: Timestamp,
    /// The present time, on the same clock.
    now: Timestamp,
}

impl NextReady {
    /// The time from now until the row is ready.
    pub fn wait(self) -> Duration {
        self.at.since(self.now)
    }
}

/// The SQL for the present time in PostgreSQL, in microseconds.
pub(super) const POSTGRES_NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The clock by which a row is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    /// The clock of leases.
    Lease,
    /// The clock of leases and the server's clock: the engine of a server whose clock is behind would only set the same
    /// time again.
    Timer,
    /// `Timer` for the lane of timers, otherwise `Lease`, by the column `lane`.
    OfLane,
}

/// A selection of the first rows of a table, for a claim or for the time of the next row.
pub(super) struct Selection<'a> {
    store: &'a Store,
    wanted: Wanted<'a>,
    /// The leases of the jobs that still run here. Their rows are left out even if the leases are over: a claim would
    /// take them from these jobs. A row with another attempt is no longer theirs.
    held: &'a [Lease],
    /// The locking clause at the end of each SELECT.
    pub lock: &'static str,
}

/// The columns that a selection reads.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// These columns, of rows that are ready.
    Ready(&'a str),
    /// When a row is ready, and the present time.
    Times,
}

impl Selection<'_> {
    /// Adds the columns to a SELECT.
    pub fn columns(&self, sql: Sql, by: Readiness) -> Sql {
        match self.wanted {
            Wanted::Ready(columns) => sql.push(columns),
            Wanted::Times => self.store.now_by(sql.push("ready_at, "), by).push(" AS now"),
        }
    }

    /// Adds the conditions that a row is not held, and is ready, unless only times are read.
    pub fn ready(&self, sql: Sql, by: Readiness) -> Sql {
        let held = || padded(self.held).into_iter().map(|lease| vec![lease.id.into(), lease.attempt.into()]);
        let sql =
            if self.held.is_empty() { sql } else { sql.push(" AND (id, attempt) NOT IN (").values(held()).push(")") };
        match self.wanted {
            Wanted::Ready(_) => self.store.now_by(sql.push(" AND ready_at <= "), by),
            Wanted::Times => sql,
        }
    }
}

impl Store {
    /// Claims the rows that `first` selects, except those that are `held`. `columns` are read by `read`, with their
    /// values before the claim; the first of them must be the id. If a row cannot be read, its claim is undone, and it
    /// is deferred so that it does not block others.
    pub(super) async fn claim_rows<T: Send + 'static>(
        &self,
        table: WorkTable,
        columns: &'static str,
        (owner, lease): (&str, Duration),
        held: &[Lease],
        first: impl Fn(&Selection<'_>) -> Sql + Send + 'static,
        read: fn(&Row) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let held = held.to_vec();
        // A read first keeps an idle server off SQLite's write lock.
        if !self.inner.db.is_postgres() {
            let probe = first(&Selection { store: self, wanted: Wanted::Ready("1"), held: &held, lock: "" });
            if self.inner.db.read().await?.fetch_one(probe).await?.is_none() {
                return Ok(Vec::new());
            }
        }
        let (store, owner) = (self.clone(), owner.to_owned());
        let claim = async move |mut conn: Conn| {
            let lock = if conn.is_postgres() { " FOR UPDATE SKIP LOCKED" } else { "" };
            let (at, columns) = (columns.split(',').count(), format!("{columns}, attempt AS tried, owner AS tried_by"));
            let due = first(&Selection { store: &store, wanted: Wanted::Ready(&columns), held: &held, lock });
            let update = |sql: Sql| {
                let sql = sql.push("UPDATE ").push(table.name()).push(" SET attempt = attempt + 1, owner = ");
                let sql = sql.bind(owner.as_str()).push(table.on_claim()).push(", ready_at = ");
                store.time_in(sql, lease).push(" WHERE id")
            };
            let rows = if conn.is_postgres() {
                let sql = update(due.around("WITH due AS (").push("), claimed AS ("));
                conn.fetch(sql.push(" IN (SELECT id FROM due)) SELECT * FROM due")).await?
            } else {
                let rows = conn.fetch(due).await?;
                let ids = rows.iter().map(|row| row.uuid(0)).collect::<Result<Vec<_>, _>>()?;
                conn.execute(update(Sql::default()).among(ids)).await?;
                rows
            };
            let mut claimed = Vec::with_capacity(rows.len());
            for row in &rows {
                match read(row) {
                    Ok(item) => claimed.push(item),
                    Err(error) => {
                        let (id, before) = (row.uuid(0)?, (row.int(at)?, row.text_opt(at + 1)?));
                        tracing::error!(%error, table = table.name(), %id, "a row cannot be read, and is deferred");
                        // The others are claimed by now.
                        if let Err(error) = conn.execute(store.put_back(table, id, before, &owner)).await {
                            tracing::error!(%error, table = table.name(), %id, "a row that was claimed could not be deferred");
                        }
                    }
                }
            }
            conn.commit().await?;
            Ok(claimed)
        };
        self.inner.db.write_statements(claim).await
    }

    /// Undoes the claim of a row that this server cannot read, and defers it. `before` are its attempt and owner before
    /// the claim.
    fn put_back(&self, table: WorkTable, row: Uuid, before: (i64, Option<String>), owner: &str) -> Sql {
        let (attempt, owner_before) = before;
        let uncounted = if owner_before.is_some() { table.on_put_back() } else { "" };
        let sql = Sql::new("UPDATE ").push(table.name()).push(" SET attempt = ").bind(attempt).push(", owner = ");
        let sql = sql.bind(owner_before).push(uncounted).push(", ready_at = ");
        let sql = self.time_in(sql, UNREADABLE_FOR).push(" WHERE id = ").bind(row).push(" AND owner = ").bind(owner);
        sql.push(" AND attempt = ").bind(attempt + 1)
    }

    /// Returns when the first of the rows that `first` selects is ready, or its lease ends. Leaves out those that are
    /// `held`.
    pub(super) async fn next_ready(
        &self,
        held: &[Lease],
        first: impl Fn(&Selection<'_>) -> Sql,
    ) -> Result<Option<NextReady>, Error> {
        let sql = first(&Selection { store: self, wanted: Wanted::Times, held, lock: "" });
        let mut next: Option<NextReady> = None;
        for row in self.inner.db.read().await?.fetch(sql).await? {
            let ready = NextReady { at: Timestamp(row.int(0)?), now: Timestamp(row.int(1)?) };
            next = Some(next.filter(|next| next.wait() <= ready.wait()).unwrap_or(ready));
        }
        Ok(next)
    }

    /// Renews leases. Returns those that are still held.
    pub async fn renew(
        &self,
        table: WorkTable,
        owner: &str,
        held: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Lease>, Error> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let (store, owner, held) = (self.clone(), owner.to_owned(), held.to_vec());
        let renew = async move |mut conn: Conn| {
            let owned = |sql: Sql, leases: &[Lease]| {
                let sql = sql.push(table.name()).push(" WHERE owner = ").bind(owner.as_str());
                sql.push(" AND id").among(leases.iter().map(|lease| lease.id))
            };
            let mut still = Vec::new();
            for row in conn.fetch(owned(Sql::new("SELECT id, attempt FROM "), &held)).await? {
                let (id, attempt) = (row.uuid(0)?, row.int(1)?);
                still.extend(held.iter().find(|lease| lease.id == id && i64::from(lease.attempt) == attempt));
            }
            if still.is_empty() {
                conn.rollback().await?;
                return Ok(still);
            }
            let update = Sql::new("UPDATE ").push(table.name()).push(" SET ready_at = ");
            let update = store.time_in(update, lease).push(" WHERE id IN (");
            // A row that is locked by a writer is skipped: waiting for it while holding others could deadlock.
            let lock = if conn.is_postgres() { " FOR UPDATE SKIP LOCKED)" } else { ")" };
            conn.execute(owned(update.push("SELECT id FROM "), &still).push(lock)).await?;
            conn.commit().await?;
            Ok(still)
        };
        let db = self.inner.db.clone();
        on_blocking_thread(async move || renew(db.write_on_this_thread_within(RENEWAL).await?).await).await
    }

    /// Whether there are leases, and all of them have ended: nobody could renew them, or nobody is left who could. Never
    /// so on SQLite, which only one server uses.
    pub async fn have_all_leases_ended(&self, table: WorkTable, lease: Duration) -> Result<bool, Error> {
        if !self.inner.db.is_postgres() {
            return Ok(false);
        }
        // As a subquery, the time is a value for which an index can be used.
        let now = format!("(SELECT {POSTGRES_NOW})");
        let sql = Sql::new("SELECT MAX(ready_at) - ").push(&now).push(" FROM ").push(table.name()).push(" WHERE ");
        let sql = sql.push(table.is_open()).push(" AND owner IS NOT NULL AND ready_at <= ").push(&now).push(" + ");
        let last = self.inner.db.read().await?.first(sql.bind(micros(lease)), Row::int_opt).await?;
        Ok(last.flatten().is_some_and(|last| last <= 0))
    }

    /// Ends leases on rows whose work was not done. Others may claim the rows after a delay.
    pub async fn release(
        &self,
        table: WorkTable,
        owner: &str,
        held: &[Lease],
        progress: Progress,
        delay: Duration,
    ) -> Result<(), Error> {
        if held.is_empty() {
            return Ok(());
        }
        let sql = Sql::new("UPDATE ").push(table.name()).push(" SET ready_at = ");
        let sql = self.time_in(sql, delay).push(table.on_release(progress)).push(" WHERE id IN (SELECT id FROM ");
        let sql = sql.push(table.name()).push(" WHERE owner = ").bind(owner).push(" AND (id, attempt) IN (");
        let sql = sql.values(held.iter().map(|lease| vec![lease.id.into(), lease.attempt.into()]));
        let sql = sql.push(if self.inner.db.is_postgres() { ") FOR UPDATE SKIP LOCKED)" } else { "))" });
        self.inner.db.execute(sql).await?;
        Ok(())
    }

    /// Adds the present time on the clock of leases.
    pub(super) fn now(&self, sql: Sql) -> Sql {
        match &self.inner.db {
            Db::Postgres { .. } => sql.push(POSTGRES_NOW),
            Db::Sqlite { .. } => sql.bind(self.inner.clock.now().0),
        }
    }

    /// Adds the present time up to which rows are ready.
    fn now_by(&self, sql: Sql, by: Readiness) -> Sql {
        if !self.inner.db.is_postgres() || by == Readiness::Lease {
            return self.now(sql);
        }
        let both = |sql: Sql| self.now(sql.push("LEAST(")).push(", ").bind(self.inner.clock.now().0).push(")");
        match by {
            Readiness::OfLane => self.now(both(sql.push("CASE lane WHEN 'timer' THEN ")).push(" ELSE ")).push(" END"),
            Readiness::Timer | Readiness::Lease => both(sql),
        }
    }

    /// Adds the time after a delay, on the clock of leases.
    pub(super) fn time_in(&self, sql: Sql, delay: Duration) -> Sql {
        self.now(sql).push(" + ").bind(micros(delay))
    }
}

pub(super) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 2)
}
