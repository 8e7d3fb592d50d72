//! Reads the runs that a group changes: their states, their pending reviews, and the tasks that changes name.

use std::collections::BTreeSet;

use shared::id::{ReviewId, RunId, TaskId};
use shared::inbox::Urgency;
use shared::review::Review;
use uuid::Uuid;

use super::super::blobs::Reader;
use super::super::db::{Conn, Row, Sql};
use super::super::{Error, Inner, stored_review, unreadable, visibility};
use super::group::{Group, StoredIndexRows, UnreadableRun};
use super::named::Named;
use crate::engine::Snapshot;

impl Group {
    /// Reads the runs that changes name, and those of the reviews that they name. Adds the versions of their flows to
    /// `named`.
    pub(super) async fn load_runs(
        &mut self,
        inner: &Inner,
        conn: &mut Conn,
        named: &mut Named<'_>,
    ) -> Result<(), Error> {
        let ids: BTreeSet<Uuid> = named.runs.iter().chain(self.run_of.values()).map(|run| run.0).collect();
        let (runs, reviews) = runs_and_reviews(conn, &ids).await?;
        let found = runs.iter().map(|row| row.uuid(0)).collect::<Result<BTreeSet<_>, _>>()?;
        self.run_of.retain(|_, run| found.contains(&run.0));
        if found.is_empty() {
            return Ok(());
        }
        self.load_states(inner, conn, &runs, named).await?;
        self.load_reviews(conn, reviews, &named.reviews).await?;
        self.load_unreadable_tasks(conn).await?;
        self.load_tasks(conn, &named.tasks).await
    }

    async fn load_states(
        &mut self,
        inner: &Inner,
        conn: &mut Conn,
        rows: &[Row],
        named: &mut Named<'_>,
    ) -> Result<(), Error> {
        let mut reader = Reader::default();
        for row in rows {
            reader.add_state(row.uuid(0)?, row.text(1));
        }
        let states = reader.finish_each("the state", conn, &mut self.blobs).await?;
        for (row, state) in rows.iter().zip(states) {
            let (run, steps, status) = (RunId(row.uuid(0)?), row.text_opt(3)?, row.text(4)?);
            let (state, unreadable) = match state {
                Ok(state) => (state, None),
                Err(error @ Error::Stored(_)) => (conn.unreadable_state(run, &error).await?, Some(error.to_string())),
                Err(error) => return Err(error),
            };
            if unreadable.is_none() && !self.load_carrier(inner, &state) {
                named.versions.insert((state.flow.clone(), state.version));
            }
            // An empty list means that the steps have rows of their own. Steps that cannot be read stay as they are.
            let steps = match steps {
                Some(column) => match conn.steps_in_run(run.0, column, &mut self.blobs).await {
                    Ok(steps) => Some(steps),
                    Err(Error::Stored(_)) => None,
                    Err(error) => return Err(error),
                },
                None => None,
            };
            let work = self.runs.entry(run).or_default();
            work.stored_steps = steps.filter(|steps| !steps.is_empty());
            work.stored_status = Some(status);
            work.stored_format = Some(state.format);
            work.unreadable = unreadable.map(|why| UnreadableRun { why, tasks: Vec::new() });
            work.snapshot = Some(Snapshot::new(state, []));
        }
        Ok(())
    }

    /// Reads the pending reviews in these rows, and those that changes name and that are over.
    async fn load_reviews(&mut self, conn: &mut Conn, rows: Vec<Row>, named: &BTreeSet<ReviewId>) -> Result<(), Error> {
        let mut reviews = conn.reviews_in(rows, &mut self.blobs).await?;
        let pending: BTreeSet<ReviewId> = reviews.iter().map(|(_, review)| review.id).collect();
        let over: Vec<Uuid> = named.difference(&pending).map(|id| id.0).collect();
        let sql = stored_review::select().push(" FROM reviews r WHERE r.id").among(over);
        reviews.extend(conn.reviews_with_runs(sql, &mut self.blobs).await?);
        for (run, review) in reviews {
            self.add_review(run, review);
        }
        Ok(())
    }

    fn add_review(&mut self, run: RunId, review: Review) {
        let Some(work) = self.runs.get_mut(&run) else { return };
        if review.unreadable && review.is_pending() {
            let why = review.problem.clone().unwrap_or_default();
            work.unreadable.get_or_insert(UnreadableRun { why, tasks: Vec::new() });
        }
        if review.is_pending() {
            let audience_keys = (!review.unreadable).then(|| visibility::audience_keys(&review));
            work.stored_reviews.insert(review.id, StoredIndexRows { queue: Urgency::of(&review), audience_keys });
        }
        if let Some(snapshot) = &mut work.snapshot {
            snapshot.reviews.insert(review.id, review);
        }
    }

    /// Reads all tasks of the runs that cannot be read.
    async fn load_unreadable_tasks(&mut self, conn: &mut Conn) -> Result<(), Error> {
        for (run, work) in &mut self.runs {
            if let Some(unreadable) = &mut work.unreadable {
                let sql = Sql::new("SELECT id FROM tasks WHERE run_id = ").bind(run.0);
                unreadable.tasks = conn.all(sql, Row::uuid).await?.into_iter().map(TaskId).collect();
            }
        }
        Ok(())
    }

    async fn load_tasks(&mut self, conn: &mut Conn, named: &BTreeSet<TaskId>) -> Result<(), Error> {
        let sql = Sql::new("SELECT id, run_id, attempt FROM tasks WHERE id").among(named.iter().map(|task| task.0));
        for row in conn.fetch(sql).await? {
            let attempt = u32::try_from(row.int(2)?).map_err(|error| Error::Stored(format!("a task: {error}")))?;
            if let Some(work) = self.runs.get_mut(&RunId(row.uuid(1)?)) {
                work.tasks.insert(TaskId(row.uuid(0)?), attempt);
            }
        }
        Ok(())
    }
}

/// Reads the rows of runs, and the rows of their pending reviews, in one statement. The rows of runs have the id, the
/// state, the steps in column 3 and the status in column 4.
async fn runs_and_reviews(conn: &mut Conn, ids: &BTreeSet<Uuid>) -> Result<(Vec<Row>, Vec<Row>), Error> {
    let sql = Sql::new("SELECT id, state, NULL, steps, status, NULL, NULL, NULL, NULL, NULL FROM runs WHERE id")
        .among(ids.iter().copied())
        .push(" UNION ALL SELECT r.run_id, r.body, ")
        .push(unreadable::REVIEW)
        .push(" FROM reviews r WHERE r.run_id")
        .among(ids.iter().copied())
        .push(" AND r.status = 'pending'");
    let (mut runs, mut reviews) = (Vec::new(), Vec::new());
    for row in conn.fetch(sql).await? {
        if row.uuid_opt(2)?.is_none() { runs.push(row) } else { reviews.push(row) }
    }
    Ok((runs, reviews))
}
