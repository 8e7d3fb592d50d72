//! Single runs, with their reviews. The lists are in `run_list`, the steps in `run_steps`.

use std::collections::BTreeSet;

use shared::access::{Act, Involvement, Principal, access};
use shared::id::{ReviewId, RunId, Username};
use shared::new_review::NewReview;
use shared::review::Review;
use shared::run::{Ending, RunStatus, RunSummary};
use uuid::Uuid;

use super::batch::Table;
use super::blobs::{Blobs, Reader};
use super::db::{Arg, Conn, Row, Sql};
use super::{Error, Store, stored_review, unreadable, visibility};
use crate::engine::{RunState, question_of, summary};

pub(super) const RUNS: Table = Table {
    name: "runs",
    key: "id",
    others: "flow, status, requested_by, created_at, format, state, carries_question, steps",
};
/// The table of runs by status. Failed runs also stand there by their ending, if it is no real failure.
pub(super) const RUNS_BY_STATUS: Table = Table { name: "runs_by_status", key: "status, created_at, id", others: "" };

/// The table of the URLs to which the ends of runs are posted.
pub(super) const RUN_CALLBACKS: Table = Table { name: "run_callbacks", key: "run_id", others: "url" };

/// Returns the keys under which a run with this status may be listed: the status, and for a failed run, its ending.
pub(super) fn listed_keys(status: &str, created_at: i64, id: Uuid) -> Vec<Vec<Arg>> {
    let endings = Ending::ALL.iter().map(|ending| ending.as_str()).filter(|_| status == RunStatus::Failed.as_str());
    let words = std::iter::once(status).chain(endings);
    words.map(|word| vec![word.into(), created_at.into(), id.into()]).collect()
}

/// The condition that a run does not only carry a question, for queries that look up ids. With `= 0`, PostgreSQL could
/// read the whole of an index `WHERE carries_question = 0`, which it assumes to be small until the table has been
/// analysed.
pub(super) const SHOWN: &str = "carries_question < 1";

/// A run that was found.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly every run can be read")]
pub enum FoundRun {
    /// The run's state, which has everything that the API shows.
    Read(RunState),
    /// The summary from the row's columns, if the state cannot be read.
    Unreadable(RunSummary),
}

impl FoundRun {
    /// The run's summary.
    pub fn summary(&self) -> RunSummary {
        match self {
            Self::Read(state) => summary(state),
            Self::Unreadable(run) => run.clone(),
        }
    }
}

impl Store {
    /// Returns a run's state.
    pub async fn run(&self, id: RunId) -> Result<Option<RunState>, Error> {
        let mut conn = self.inner.db.read().await?;
        let sql = Sql::new("SELECT state FROM runs WHERE id = ").bind(id.0);
        let Some(row) = conn.fetch_one(sql).await? else { return Ok(None) };
        let mut reader = Reader::default();
        reader.add_state(id.0, Ok(row.text(0)?));
        Ok(reader.finish("the state", &mut conn, &mut Blobs::default()).await?.pop())
    }

    /// Returns the number of the format in which a run is stored.
    pub async fn format_of(&self, id: RunId) -> Result<Option<u32>, Error> {
        let sql = Sql::new("SELECT format FROM runs WHERE id = ").bind(id.0);
        let row = self.inner.db.read().await?.fetch_one(sql).await?;
        row.map(|row| Ok(u32::try_from(row.int(0)?).unwrap_or(u32::MAX))).transpose()
    }

    /// Returns the state of the run to which a review belongs, even if the run only carries a question.
    pub async fn run_of(&self, review: ReviewId) -> Result<Option<RunState>, Error> {
        let sql = Sql::new("SELECT r.id, r.state FROM reviews v JOIN runs r ON r.id = v.run_id WHERE v.id = ");
        let mut conn = self.inner.db.read().await?;
        let Some(row) = conn.fetch_one(sql.bind(review.0)).await? else { return Ok(None) };
        let mut reader = Reader::default();
        reader.add_state(row.uuid(0)?, Ok(row.text(1)?));
        Ok(reader.finish("the state", &mut conn, &mut Blobs::default()).await?.pop())
    }

    /// Returns the question of a review that was asked without a flow. `None` for reviews of flows.
    pub async fn question_of_review(&self, review: ReviewId) -> Result<Option<NewReview>, Error> {
        let run = self.run_of(review).await?.filter(|run| run.shown_id().is_none());
        let asked = run.map(|run| question_of(&run.input)).transpose();
        asked.map_err(|error| Error::Stored(format!("what review {review} asks: {error}")))
    }

    /// Returns the URL to which the end of a run is posted. `None` if nobody asked for that.
    pub async fn callback_of_run(&self, run: RunId) -> Result<Option<String>, Error> {
        let sql = Sql::new("SELECT url FROM run_callbacks WHERE run_id = ").bind(run.0);
        Ok(self.inner.db.read().await?.first(sql, Row::text).await?)
    }

    /// Returns those of these runs whose end is posted to a URL.
    pub async fn called_back_among(&self, runs: &[RunId]) -> Result<BTreeSet<RunId>, Error> {
        if runs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ids: Vec<_> = runs.iter().map(|run| run.0).collect();
        let of_runs = "SELECT run_id FROM run_callbacks WHERE run_id IN (";
        let found = self.inner.db.read().await?.ids_among(of_runs, &ids).await?;
        Ok(found.into_iter().map(RunId).collect())
    }

    /// Returns a run that people may see, even if its state cannot be read.
    pub async fn find_run(&self, id: RunId) -> Result<Option<FoundRun>, Error> {
        let sql =
            Sql::new("SELECT state, ").push(unreadable::RUN).push(" FROM runs WHERE ").push(SHOWN).push(" AND id = ");
        let sql = sql.bind(id.0);
        let mut conn = self.inner.db.read().await?;
        let Some(row) = conn.fetch_one(sql).await? else { return Ok(None) };
        let mut reader = Reader::default();
        reader.add_state(id.0, row.text(0));
        let read = reader.finish_each("the state", &mut conn, &mut Blobs::default()).await?.pop();
        read.map(|read| found(read, &row, 1)).transpose()
    }

    /// Returns a run that people may see, with its reviews in the order in which they were requested, all from one
    /// snapshot.
    pub async fn run_with_reviews(&self, id: RunId) -> Result<Option<(FoundRun, Vec<Review>)>, Error> {
        let sql = with_reviews(id);
        let mut conn = self.inner.db.read().await?;
        let (mut run, mut reviews) = (None, Vec::new());
        for row in conn.fetch(sql).await? {
            if row.int_opt(0)?.is_none() { run = Some(row) } else { reviews.push(row) }
        }
        let Some(run) = run else { return Ok(None) };
        let (mut state, mut bodies) = (Reader::default(), Reader::default());
        state.add_state(id.0, run.text(1));
        for row in &reviews {
            bodies.add(id.0, row.text(1));
        }
        let mut blobs = Blobs::default();
        let Some(state) = state.finish_each("the state", &mut conn, &mut blobs).await?.pop() else { return Ok(None) };
        let bodies = bodies.finish_each("a review", &mut conn, &mut blobs).await?.into_iter().zip(&reviews);
        let reviews = bodies.map(|(body, row)| body.or_else(|error| unreadable::review(row, id.0, 2, &error)));
        Ok(Some((found(state, &run, 2)?, reviews.collect::<Result<_, _>>()?)))
    }

    /// Returns who started a run that people may see, and its reviews without their large values, in the order in which
    /// they were requested: what decides who may see it.
    pub async fn run_rights(&self, id: RunId) -> Result<Option<(Username, Vec<Review>)>, Error> {
        let mut conn = self.inner.db.read().await?;
        let sql = Sql::new("SELECT requested_by FROM runs WHERE ").push(SHOWN).push(" AND id = ").bind(id.0);
        let Some(row) = conn.fetch_one(sql).await? else { return Ok(None) };
        let name: Result<Username, _> = row.text(0)?.parse();
        let name = name.map_err(|error| Error::Stored(format!("who started run {id}: {error}")))?;
        let sql = stored_review::select().push(" FROM reviews r WHERE r.run_id = ").bind(id.0);
        Ok(Some((name, conn.review_outlines(sql.push(" ORDER BY r.created_at, r.id")).await?)))
    }

    /// Returns those of these runs that are over or wait for people.
    pub async fn stopped_among(&self, runs: &[RunId]) -> Result<Vec<RunId>, Error> {
        // A run may be archived, and gone, by the time it is looked for.
        let running = "SELECT id FROM runs WHERE status = 'running' AND id IN (";
        let ids: Vec<_> = runs.iter().map(|id| id.0).collect();
        let running = self.inner.db.read().await?.ids_among(running, &ids).await?;
        Ok(runs.iter().filter(|run| !running.contains(&run.0)).copied().collect())
    }

    /// Returns the involvement that lets the viewer see a run. `None` if they may not see it.
    pub async fn seen_through(&self, viewer: &Principal, run: &RunSummary) -> Result<Option<Involvement>, Error> {
        self.inner.db.read().await?.seen_through(viewer, run).await
    }
}

impl Conn {
    /// Like [`Store::seen_through`]. The run's reviews are looked up only if the answer depends on them.
    pub(super) async fn seen_through(
        &mut self,
        viewer: &Principal,
        run: &RunSummary,
    ) -> Result<Option<Involvement>, Error> {
        let may = |involvement| access(viewer, Act::SeeRun(&run.requested_by, involvement)).is_allowed();
        let none = Some(Involvement::None).filter(|none| may(*none));
        if none.is_some() {
            return Ok(none);
        }
        // With CROSS JOIN, SQLite begins with the few reviews of the run.
        let sql = Sql::new(
            "SELECT 1 FROM reviews v CROSS JOIN review_audience a WHERE a.created_at = v.created_at AND \
             a.review_id = v.id AND v.run_id = ",
        )
        .bind(run.id.0)
        .push(" AND ");
        let sql = visibility::involved(viewer).shows(sql, self.kind()).push(" LIMIT 1");
        let found = self.fetch_one(sql).await?;
        Ok(found.map(|_| Involvement::Reviews).filter(|reviews| may(*reviews)))
    }
}

/// Selects the row of a run, with NULL in the first column, and the rows of its reviews.
pub(super) fn with_reviews(id: RunId) -> Sql {
    Sql::new("SELECT NULL AS at, state, ")
        .push(unreadable::RUN)
        .push(", NULL, NULL, NULL FROM runs WHERE ")
        .push(SHOWN)
        .push(" AND id = ")
        .bind(id.0)
        .push(" UNION ALL SELECT r.created_at, r.body, ")
        .push(unreadable::REVIEW)
        .push(" FROM reviews r WHERE r.run_id = ")
        .bind(id.0)
        .push(" ORDER BY 1, 3")
}

/// Makes a [`FoundRun`] of the result of reading a state. `at` is the index of the columns for an unreadable run.
pub(super) fn found(read: Result<RunState, Error>, row: &Row, at: usize) -> Result<FoundRun, Error> {
    match read {
        Ok(state) => Ok(FoundRun::Read(state)),
        Err(error) => {
            tracing::error!(%error, "a run cannot be read");
            unreadable::run(row, at, &error).map(FoundRun::Unreadable)
        }
    }
}
