//! The steps of a run, which record the visits of its nodes. While they are few, they are in the run's own row, which
//! is written with each commit anyway; once they are many, they have their own rows. They never move back.

use shared::id::RunId;
use shared::run::Step;
use shared::time::Timestamp;
use uuid::Uuid;

use super::batch::Table;
use super::blobs::{Blobs, Reader};
use super::db::{Arg, Conn, Sql};
use super::{Error, Store, unreadable};

/// The largest number of steps in the row of a run.
pub(super) const FEW: usize = if cfg!(test) { 2 } else { 16 };
/// The table of steps, and the conflict clause for a step that exists already.
pub(super) const STEPS: Table = Table { name: "steps", key: "run_id, id", others: "body" };
pub(super) const ON_CONFLICT_UPDATE: &str = " ON CONFLICT (run_id, id) DO UPDATE SET body = excluded.body";

/// Where the steps of a run are written.
pub(super) enum StepStorage {
    /// All steps, in the row of the run.
    Run(Vec<Step>),
    /// These steps, in rows of their own.
    Rows(Vec<Step>),
}

/// Merges new and changed steps. `known` are the steps in the row of the run; `None` if they have their own rows.
pub(super) fn merged(known: Option<&Vec<Step>>, changed: &[Step]) -> StepStorage {
    let Some(known) = known else { return StepStorage::Rows(changed.to_vec()) };
    let mut all = known.clone();
    for step in changed {
        match all.iter_mut().rev().find(|one| one.id == step.id) {
            Some(one) => one.clone_from(step),
            None => all.push(step.clone()),
        }
    }
    if all.len() > FEW { StepStorage::Rows(all) } else { StepStorage::Run(all) }
}

impl Store {
    /// Returns all steps of a run, in order.
    pub async fn steps(&self, run: RunId) -> Result<Vec<Step>, Error> {
        let mut conn = self.inner.db.read().await?;
        // Read in one statement, since steps may move out of the row of the run meanwhile.
        let sql =
            Sql::new("SELECT r.created_at, r.steps, s.id, s.body FROM runs r LEFT JOIN steps s ON s.run_id = r.id ");
        let rows = conn.fetch(sql.push("WHERE r.id = ").bind(run.0).push(" ORDER BY s.position")).await?;
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let (at, mut blobs) = (Timestamp(first.int(0)?), Blobs::default());
        let mut steps = Vec::new();
        if let Some(column) = first.text_opt(1)? {
            match conn.steps_in_run(run.0, column, &mut blobs).await {
                Ok(read) => steps = read,
                Err(error @ Error::Stored(_)) => steps.push(unreadable::step(Uuid::nil(), at, &error)?),
                Err(error) => return Err(error),
            }
        }
        let mut reader = Reader::default();
        let mut ids = Vec::new();
        for row in &rows {
            if let Some(id) = row.uuid_opt(2)? {
                ids.push(id);
                reader.add(run.0, row.text(3));
            }
        }
        let read = reader.finish_each("a step", &mut conn, &mut blobs).await?;
        for (step, id) in read.into_iter().zip(ids) {
            steps.push(step.or_else(|error| unreadable::step(id, at, &error))?);
        }
        Ok(steps)
    }
}

impl Conn {
    pub async fn steps_in_run(&mut self, run: Uuid, column: String, blobs: &mut Blobs) -> Result<Vec<Step>, Error> {
        let mut reader = Reader::verifying();
        reader.add(run, Ok(column));
        Ok(reader.finish::<Vec<Step>>("the steps", self, blobs).await?.pop().unwrap_or_default())
    }
}

pub(super) fn step_row(run: RunId, step: &Step, body: String) -> Vec<Arg> {
    vec![run.0.into(), step.id.0.into(), body.into()]
}
