//! Finds finished runs to archive, and removes the rest of their data after archiving.
//!
//! [`Store::commit`] archives a run ([`super::Operation::ArchiveRuns`]) by deleting its row, so nothing can happen to
//! the run from then on. Its rows in other tables are removed in small transactions. These look for what is left, so a
//! killed server continues where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use shared::id::{FlowId, RunId, Username};
use shared::run::RunStatus;
use shared::time::{Span, Timestamp};
use uuid::Uuid;

use super::archives::ARCHIVED_REVIEWS;
use super::blobs::Blobs;
use super::cursor::LogPlace;
use super::db::{Arg, Conn, Row, Sql};
use super::review_row::{AUDIENCE, REVIEWS, UNDECIDED, audience_rows, undecided_row};
use super::{Error, Store, grants, stored_review};

/// A finished run that is no longer needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedRun {
    /// The run that may be archived.
    pub id: RunId,
    /// The flow that it ran. The flow of a run that only carries a question is not stored.
    pub flow: FlowId,
    /// The person who started it.
    pub requested_by: Username,
    /// The time of its last log row.
    pub last_at: Timestamp,
    /// The number of its last row in the log.
    pub last_row: i64,
}

/// A place in the list of runs by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedPlace(i64, Uuid);

/// A page of finished runs.
#[derive(Debug, Clone)]
pub struct FinishedRuns {
    /// The runs that may be archived.
    pub runs: Vec<FinishedRun>,
    /// The place at which the next page begins. `None` at the end.
    pub next: Option<FinishedPlace>,
}

/// The runs among which to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishedFilter<'a> {
    /// The runs of a flow.
    Of(&'a FlowId),
    /// The runs that only carry a question that no flow asks.
    Carriers,
}

/// The tables with rows of a run, except for `runs`, whose row is deleted first. Each has the condition that finds
/// these rows by the ids of runs (`@`). A new table with rows of runs must be added here.
const TABLES: [(&str, &str); 9] = [
    ("deliveries", "review_id IN (SELECT v.id FROM reviews v WHERE v.run_id IN (@))"),
    ("deliveries", "review_id IS NULL AND run_id IN (@)"),
    ("run_callbacks", "run_id IN (@)"),
    // Together with the rows that are found by a review.
    ("reviews", "run_id IN (@)"),
    ("steps", "run_id IN (@)"),
    ("tasks", "lane = 'over' AND run_id IN (@)"),
    ("feedback", "run_id IN (@)"),
    // Rows that refer to large values are removed before these.
    ("log", "run_id IN (@)"),
    ("blobs", "run_id IN (@)"),
];
/// The largest number of rows that one transaction removes.
const REMOVE_AT_ONCE: u64 = 500;
/// The approximate number of rows that belong to a review.
const ROWS_OF_A_REVIEW: u64 = 5;
/// The largest number of runs from which one transaction removes rows.
const RUNS_AT_ONCE: u32 = 64;

impl Store {
    /// Returns how long finished runs of each flow are kept, by the newest version of the flow. `None` if the flow does
    /// not say.
    pub async fn retentions(&self) -> Result<BTreeMap<FlowId, Option<Duration>>, Error> {
        #[derive(Deserialize)]
        struct Kept {
            #[serde(default)]
            retention: Option<Span>,
        }
        let sql = Sql::new(
            "SELECT f.id, f.definition FROM flows f \
             WHERE f.version = (SELECT MAX(n.version) FROM flows n WHERE n.id = f.id)",
        );
        let mut kept = BTreeMap::new();
        for row in self.inner.db.read().await?.fetch(sql).await? {
            let id = row.text(0)?;
            let flow: FlowId = id.parse().map_err(|error| Error::Stored(format!("the flow {id}: {error}")))?;
            match serde_json::from_str::<Kept>(&row.text(1)?) {
                Ok(read) => {
                    kept.insert(flow, read.retention.map(|span| span.0));
                }
                // It is not known how long runs of this flow must be kept.
                Err(error) => {
                    tracing::warn!(%flow, %error, "the flow cannot be read; its finished runs are not archived");
                }
            }
        }
        Ok(kept)
    }

    /// Examines up to `limit` runs in the order of their age, and returns those to which nothing has happened since
    /// `before` and that are no longer needed: they are finished and sealed, they have no pending reviews, no open
    /// tasks and no waiting deliveries, no result of theirs is kept under an idempotency key, and all their entries
    /// have been turned into deliveries.
    pub async fn finished_runs(
        &self,
        of: FinishedFilter<'_>,
        before: Timestamp,
        from: Option<FinishedPlace>,
        limit: u32,
    ) -> Result<FinishedRuns, Error> {
        let mut conn = self.inner.db.snapshot().await?;
        let (read_to, oldest_key) = (self.read_to(&mut conn).await?, oldest_key(&mut conn).await?);
        let held = held(&mut conn).await?;
        let sql = Sql::new(
            "SELECT r.id, r.flow, r.requested_by, r.created_at, l.seq, l.at, CAST(CASE WHEN r.status NOT IN (",
        );
        let sql = sql.list(RunStatus::OVER.map(RunStatus::as_str)).push(
            ") OR EXISTS (SELECT 1 FROM reviews v WHERE v.run_id = r.id AND v.status = 'pending') \
             OR EXISTS (SELECT 1 FROM reviews v JOIN deliveries d ON d.review_id = v.id \
             WHERE v.run_id = r.id AND d.status || '' = 'waiting') \
             OR EXISTS (SELECT 1 FROM deliveries d WHERE d.run_id = r.id AND d.review_id IS NULL \
             AND d.status || '' = 'waiting') THEN 1 ELSE 0 END AS BIGINT) \
             FROM runs r JOIN log l ON l.seq = (SELECT MAX(m.seq) FROM log m WHERE m.run_id = r.id) \
             WHERE ",
        );
        let sql = match of {
            FinishedFilter::Of(flow) => sql.push("r.carries_question = 0 AND r.flow = ").bind(flow.as_str()),
            FinishedFilter::Carriers => sql.push("r.carries_question = 1"),
        };
        let mut sql = sql.push(" AND r.created_at < ").bind(before.0);
        if let Some(FinishedPlace(at, id)) = from {
            sql = sql.push(" AND (r.created_at, r.id) > (").bind(at).push(", ").bind(id).push(")");
        }
        let rows = conn.fetch(sql.push(" ORDER BY r.created_at, r.id LIMIT ").bind(limit)).await?;
        conn.rollback().await?;
        let full = rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let next = rows.last().filter(|_| full).map(|row| Ok::<_, Error>(FinishedPlace(row.int(3)?, row.uuid(0)?)));
        let mut runs = Vec::new();
        for row in &rows {
            let (id, last_row, last_at, needed) = (row.uuid(0)?, row.int(4)?, row.int(5)?, row.int(6)? != 0);
            let kept = needed || held.contains(&id) || last_row > read_to || oldest_key.is_some_and(|at| last_at >= at);
            if kept || last_at >= before.0 {
                continue;
            }
            let named = |error: String| Error::Stored(format!("run {id}: {error}"));
            runs.push(FinishedRun {
                id: RunId(id),
                flow: row.text(1)?.parse().map_err(|error| named(format!("{error}")))?,
                requested_by: Username::try_from(row.text(2)?).map_err(|error| named(format!("{error}")))?,
                last_at: Timestamp(last_at),
                last_row,
            });
        }
        Ok(FinishedRuns { runs, next: next.transpose()? })
    }

    /// Returns the number of the last log row that is sealed and has been turned into deliveries.
    async fn read_to(&self, conn: &mut Conn) -> Result<i64, Error> {
        let sealed = conn.first(Sql::new("SELECT COALESCE(MAX(seq), 0) FROM seals"), Row::int).await?.unwrap_or(0);
        let outbox = conn.first(Sql::new("SELECT place FROM outbox"), Row::text).await?;
        let outbox = outbox.and_then(|place| LogPlace::of(&place, &self.inner.log));
        Ok(outbox.map_or(sealed, |place| sealed.min(place.seq)))
    }

    /// Returns the numbers of all log rows of these runs.
    pub async fn rows_of_runs(&self, runs: &[RunId]) -> Result<Vec<i64>, Error> {
        let sql = Sql::new("SELECT seq FROM log WHERE run_id").among(runs.iter().map(|run| run.0));
        Ok(self.inner.db.read().await?.all(sql, Row::int).await?)
    }

    /// Whether archived runs have rows left to remove.
    pub async fn has_archived_left(&self) -> Result<bool, Error> {
        let sql = Sql::new("SELECT id FROM archived_runs WHERE removed = 0 LIMIT 1");
        Ok(self.inner.db.read().await?.fetch_one(sql).await?.is_some())
    }

    /// Removes some rows of archived runs. Returns whether there may be more.
    pub async fn remove_archived(&self) -> Result<bool, Error> {
        let sql = Sql::new("SELECT id FROM archived_runs WHERE removed = 0 ORDER BY id LIMIT ").bind(RUNS_AT_ONCE);
        let runs = self.inner.db.read().await?.all(sql, Row::uuid).await?;
        if runs.is_empty() {
            return Ok(false);
        }
        self.inner.db.write(async move |conn| remove_left(conn, &runs).await).await?;
        Ok(true)
    }
}

/// Removes some of the rows that these runs have left.
async fn remove_left(mut conn: Conn, runs: &[Uuid]) -> Result<(), Error> {
    let mut left = REMOVE_AT_ONCE;
    for (table, of_runs) in TABLES {
        left = left.saturating_sub(remove_some(&mut conn, table, of_runs, runs, left).await?);
        if left == 0 {
            return Ok(conn.commit().await?);
        }
    }
    let places = runs.iter().map(|run| grants::of_run(RunId(*run)));
    conn.execute(Sql::new("DELETE FROM grants WHERE place").among(places)).await?;
    conn.execute(Sql::new("UPDATE archived_runs SET removed = 1 WHERE id").among(runs.iter().copied())).await?;
    Ok(conn.commit().await?)
}

/// Removes up to `limit` rows of a table, and their index. Returns how many.
async fn remove_some(conn: &mut Conn, table: &str, of_runs: &str, runs: &[Uuid], limit: u64) -> Result<u64, Error> {
    let sql = some_of(conn, table, of_runs, runs, limit);
    let removed = match table {
        "reviews" => return remove_reviews(conn, runs, limit).await,
        "log" => {
            let rows = conn.all(sql.push(" RETURNING seq"), Row::int).await?;
            conn.forget_blocks(&rows).await?;
            rows.len()
        }
        _ => return Ok(conn.execute(sql).await?),
    };
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}

/// Removes reviews and the rows that belong to them: up to `limit` rows, but at least one review. Keeps to which run each
/// belonged. Returns how many rows were removed.
async fn remove_reviews(conn: &mut Conn, runs: &[Uuid], limit: u64) -> Result<u64, Error> {
    let most = u32::try_from(limit / ROWS_OF_A_REVIEW).unwrap_or(u32::MAX).max(1);
    let sql = stored_review::select().push(" FROM reviews r WHERE r.run_id").among(runs.iter().copied());
    let found = conn.reviews_with_runs(sql.push(" LIMIT ").bind(most), &mut Blobs::default()).await?;
    let mut audience = Vec::new();
    for (_, review) in &found {
        if review.unreadable {
            conn.forget_audience(review.id).await?;
        }
        audience.extend(audience_rows(review));
    }
    let undecided = found.iter().filter_map(|(_, review)| undecided_row(review)).collect();
    let ids: Vec<Uuid> = found.iter().map(|(_, review)| review.id.0).collect();
    let kept = found.iter().map(|(run, review)| vec![Arg::from(review.id.0), Arg::from(run.0)]).collect();
    conn.insert(&ARCHIVED_REVIEWS, kept, " ON CONFLICT DO NOTHING").await?;
    let mut removed = conn.delete_rows(&AUDIENCE, audience).await?;
    removed += conn.delete_rows(&UNDECIDED, undecided).await?;
    removed += conn.delete_rows(&REVIEWS, ids.iter().map(|id| vec![Arg::from(*id)]).collect()).await?;
    conn.forget_review_words(&ids).await?;
    // If as many reviews were found as were asked for, there may be more.
    Ok(if ids.len() >= most as usize { limit } else { removed })
}

/// Deletes up to `limit` rows of a table, by the hidden id that both databases give their rows.
fn some_of(conn: &Conn, table: &str, of_runs: &str, runs: &[Uuid], limit: u64) -> Sql {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (before, after) = of_runs.split_once('@').unwrap_or((of_runs, ""));
    let (begin, end) = match (conn.is_postgres(), table) {
        (true, _) => ("ctid = ANY(ARRAY(SELECT ctid", "))"),
        (false, _) => ("rowid IN (SELECT rowid", ")"),
    };
    let sql = Sql::new("DELETE FROM ").push(table).push(" WHERE ").push(begin).push(" FROM ").push(table);
    let sql = sql.push(" WHERE ").push(before).list(runs.iter().copied()).push(after);
    sql.push(" LIMIT ").bind(limit).push(end)
}

/// Returns the time of the oldest idempotency key: results of earlier commits are no longer kept.
async fn oldest_key(conn: &mut Conn) -> Result<Option<i64>, Error> {
    Ok(conn.first(Sql::new("SELECT MIN(created_at) FROM idempotency"), Row::int_opt).await?.flatten())
}

/// Returns the runs from which a worker may still report the result of a call.
async fn held(conn: &mut Conn) -> Result<BTreeSet<Uuid>, Error> {
    let rows = conn.fetch(Sql::new("SELECT run_id FROM tasks WHERE lane = 'over'")).await?;
    Ok(rows.iter().map(|row| row.uuid(0)).collect::<Result<_, _>>()?)
}
