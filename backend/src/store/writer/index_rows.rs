//! The rows by which decided objects are found: runs by status, reviews in the queue, among undecided ones and under
//! their audience keys, and the steps of runs. The data that were read say where each object is found so
//! far.

use std::collections::BTreeSet;

use shared::id::RunId;
use shared::inbox::Urgency;
use shared::review::Review;
use shared::run::{Ending, RunStatus, RunSummary, Step};

use super::super::blobs::encode;
use super::super::packed::pack;
use super::super::queue_place::queue_key;
use super::super::review_row::{audience_row, undecided_row};
use super::super::run_steps::{self, StepStorage, step_row};
use super::super::{Error, queue, visibility};
use super::group::{RunWork, StoredIndexRows};
use super::write::Rows;
use crate::engine::RunState;

impl Rows {
    /// Moves a run in the table of runs by status and ending. Completed runs and hidden runs are not in it.
    pub fn status(&mut self, stored: Option<&str>, run: &RunSummary, state: &RunState) {
        let status = run.status.as_str();
        if stored == Some(status) || state.shown_id().is_none() {
            return;
        }
        let listed = |status: &&str| *status != RunStatus::Completed.as_str();
        let row = |word: &str| vec![word.into(), run.created_at.0.into(), run.id.0.into()];
        self.left_statuses.extend(stored.filter(listed).map(row));
        let ending = Ending::of(run.error.as_ref()).map(Ending::as_str);
        self.statuses.extend(Some(status).filter(listed).into_iter().chain(ending).map(row));
    }

    /// Writes steps. Returns the new column for steps in the row of the run, or `None` to leave the column as it is.
    pub fn steps(&mut self, run: RunId, work: &RunWork, changed: &[Step]) -> Result<Option<String>, Error> {
        let none = Vec::new();
        let known = work.stored_status.is_none().then_some(&none).or(work.stored_steps.as_ref());
        let rows = match run_steps::merged(known, changed) {
            StepStorage::Run(all) => return Ok(Some(pack(encode(run.0, &all, &mut self.blobs)?))),
            StepStorage::Rows(rows) => rows,
        };
        for step in rows {
            let body = pack(encode(run.0, &step, &mut self.blobs)?);
            self.steps.push(step_row(run, &step, body));
        }
        Ok(known.map(|_| "[]".to_owned()))
    }

    /// Writes the rows by which a review is found. `stored` are those in the database, if the review is pending there.
    pub fn index_rows(&mut self, review: &Review, stored: Option<&StoredIndexRows>) -> Result<(), Error> {
        if review.is_pending() {
            let (row, class, outline) = queue::row_of(review)?;
            self.queue.push(row);
            self.classes.insert(class, outline);
        }
        self.undecided.extend(undecided_row(review));
        let keys = visibility::audience_keys(review);
        let mut known = &BTreeSet::new();
        if let Some(StoredIndexRows { queue, audience_keys: stored }) = stored {
            if !review.is_pending() || *queue != Urgency::of(review) {
                self.left_queue.push(queue_key(*queue));
            }
            match stored {
                Some(stored) => known = stored,
                None => self.unknown.push(review.id),
            }
        }
        let row = |key: &String| audience_row(review, key.clone());
        // If a vote returns to its owner, or is voided, the review loses keys.
        self.left_audience.extend(known.difference(&keys).map(row));
        self.audience.extend(keys.difference(known).map(row));
        Ok(())
    }
}
