//! Runs: one whole, and lists of them.

use serde_json::{Map, Value};
use shared::access::{Involvement, Principal};
use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page, RunQuery};
use shared::id::RunId;
use shared::review::Review;
use shared::run::{RunSummary, Step};

use super::blobs::{Blobs, Reader, hollow};
use super::cursor::ListPlace;
use super::db::Sql;
use super::{Error, Store, visibility};
use crate::engine::{RunState, summary};

/// What a list needs none of: the parts of a state that hold users' values.
const BULK: [&str; 7] = ["input", "keys", "context", "decisions", "answers", "branches", "agent_calls"];

impl Store {
    /// A run's state.
    pub async fn run(&self, id: RunId) -> Result<Option<RunState>, Error> {
        let mut conn = self.inner.db.read().await?;
        let sql = Sql::new("SELECT state FROM runs WHERE id = ").bind(id.0);
        let Some(row) = conn.fetch_one(sql).await? else { return Ok(None) };
        let mut reader = Reader::default();
        reader.add(id.0, row.text(0)?)?;
        Ok(reader.finish("the state", &mut conn, &mut Blobs::default()).await?.pop())
    }

    /// A run's state, and its reviews in the order in which they were asked: of one moment, in one query.
    pub async fn run_with_reviews(&self, id: RunId) -> Result<Option<(RunState, Vec<Review>)>, Error> {
        let sql = Sql::new("SELECT NULL AS at, id, state AS body FROM runs WHERE id = ")
            .bind(id.0)
            .push(" UNION ALL SELECT created_at, id, body FROM reviews WHERE run_id = ")
            .bind(id.0)
            .push(" ORDER BY 1, 2");
        let mut conn = self.inner.db.read().await?;
        let (mut state, mut reviews) = (Reader::default(), Reader::default());
        for row in conn.fetch(sql).await? {
            let reader = if row.int_opt(0)?.is_none() { &mut state } else { &mut reviews };
            reader.add(id.0, row.text(2)?)?;
        }
        let mut blobs = Blobs::default();
        let Some(state) = state.finish("the state", &mut conn, &mut blobs).await?.pop() else { return Ok(None) };
        Ok(Some((state, reviews.finish("a review", &mut conn, &mut blobs).await?)))
    }

    /// The runs that somebody may see.
    pub async fn runs(&self, viewer: &Principal, query: &RunQuery) -> Result<Page<RunSummary>, Error> {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let mut sql = Sql::new("SELECT id, state FROM runs WHERE true");
        if let Some(status) = query.status {
            sql = sql.push(" AND status = ").bind(status.as_str());
        }
        if let Some(flow) = &query.flow {
            sql = sql.push(" AND flow = ").bind(flow.as_str());
        }
        if !visibility::sees_all(viewer) {
            sql = sql
                .push(" AND (requested_by = ")
                .bind(viewer.username.as_str())
                .push(" OR EXISTS (SELECT 1 FROM reviews v CROSS JOIN review_audience a")
                .push(" WHERE a.review_id = v.id AND v.run_id = runs.id AND ");
            sql = visibility::involved(viewer).shows(sql).push("))");
        }
        if let Some(place) = ListPlace::of(query.cursor.as_deref())? {
            sql = place.condition(sql, "created_at", "id");
        }
        let sql = sql.push(" ORDER BY created_at DESC, id DESC LIMIT ").bind(limit + 1);
        let mut conn = self.inner.db.read().await?;
        let mut reader = Reader::default();
        for row in conn.fetch(sql).await? {
            let id = row.uuid(0)?;
            let mut state: Value = serde_json::from_str(&row.text(1)?)
                .map_err(|error| Error::Stored(format!("run {id}, not JSON: {error}")))?;
            if let Some(state) = state.as_object_mut() {
                empty(state);
            }
            reader.add_value(id, state);
        }
        let states: Vec<RunState> = reader.finish("the state", &mut conn, &mut Blobs::default()).await?;
        let mut items: Vec<RunSummary> = states.iter().map(summary).collect();
        let next_cursor =
            super::cut(&mut items, limit, |run: &RunSummary| ListPlace { at: run.created_at.0, id: run.id.0 }.encode());
        Ok(Page { items, next_cursor })
    }

    /// Every visit of every node of a run, in order.
    pub async fn steps(&self, run: RunId) -> Result<Vec<Step>, Error> {
        let sql = Sql::new("SELECT body FROM steps WHERE run_id = ").bind(run.0).push(" ORDER BY position");
        let mut conn = self.inner.db.read().await?;
        let mut reader = Reader::default();
        for row in conn.fetch(sql).await? {
            reader.add(run.0, row.text(0)?)?;
        }
        reader.finish("a step", &mut conn, &mut Blobs::default()).await
    }

    /// Whether somebody may decide one of a run's reviews, or has.
    pub async fn involvement(&self, viewer: &Principal, run: RunId) -> Result<Involvement, Error> {
        // CROSS: SQLite joins in this order, from the few reviews of the run.
        let sql =
            Sql::new("SELECT 1 FROM reviews v CROSS JOIN review_audience a WHERE a.review_id = v.id AND v.run_id = ")
                .bind(run.0)
                .push(" AND ");
        let sql = visibility::involved(viewer).shows(sql).push(" LIMIT 1");
        let found = self.inner.db.read().await?.fetch_one(sql).await?;
        Ok(if found.is_some() { Involvement::Reviews } else { Involvement::None })
    }
}

/// Leaves references of the bulky parts unread.
fn empty(state: &mut Map<String, Value>) {
    for part in BULK {
        if let Some(part) = state.get_mut(part) {
            hollow(part);
        }
    }
}
