//! Calls of runs and maps that have ended: if no worker has the task of a call, no result can follow, and the run
//! forgets the call. Workers claim tasks beside the writer, so only the transaction that ends the calls can tell which
//! tasks are claimed, by deleting the others.

use std::collections::BTreeSet;

use shared::id::TaskId;
use uuid::Uuid;

use super::super::Error;
use super::super::db::{Arg, Conn};
use super::group::{Changed, Group};
use crate::engine::RunState;

impl Group {
    /// Deletes the tasks of abandoned calls that nobody has claimed, and makes runs forget the calls without a task.
    pub(super) async fn forget_unanswered(&mut self, conn: &mut Conn) -> Result<(), Error> {
        let abandoned = self.changed_runs().flat_map(|(_, changed)| &changed.abandoned_tasks);
        let abandoned: Vec<Vec<Arg>> = abandoned.map(|task| vec![task.0.into()]).collect();
        if !abandoned.is_empty() {
            conn.change_by("DELETE FROM tasks WHERE owner IS NULL AND (id)".to_owned(), abandoned).await?;
        }
        let unanswered: Vec<Uuid> =
            self.changed_runs().flat_map(|(state, _)| state.unanswered.keys().map(|task| task.0)).collect();
        let left = conn.ids_among("SELECT id FROM tasks WHERE id IN (", &unanswered).await?;
        let left: BTreeSet<TaskId> = left.into_iter().map(TaskId).collect();
        for work in self.runs.values_mut() {
            let (Some(snapshot), Some(changed)) = (&mut work.snapshot, &mut work.changed) else { continue };
            if let Some(last) = changed.inputs.last_mut() {
                let is_left = |task| left.contains(&task) && !changed.ended_tasks.contains(&task);
                last.forgotten = snapshot.state.forget_unanswered(is_left);
            }
        }
        Ok(())
    }

    /// Returns the state of each changed run, and the data to write besides it.
    fn changed_runs(&self) -> impl Iterator<Item = (&RunState, &Changed)> {
        self.runs.values().filter_map(|work| Some((&work.snapshot.as_ref()?.state, work.changed.as_ref()?)))
    }
}
