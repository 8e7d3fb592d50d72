//! Calls of runs and maps that have ended: of those that no worker has, no word can come, and the run forgets them. Workers
//! claim tasks beside the writer, so which have one is only known in the transaction that ends them, by removing the
//! others.

use std::collections::BTreeSet;

use shared::id::TaskId;
use uuid::Uuid;

use super::super::Error;
use super::super::db::{Arg, Conn, Sql};
use super::group::{Changed, Group};
use crate::engine::RunState;

/// How many tasks one statement looks for.
const AT_ONCE: usize = 500;

impl Group {
    /// Removes the tasks of abandoned calls that nobody has claimed, and lets runs forget the calls of which none is left.
    pub(super) async fn forget_unanswered(&mut self, conn: &mut Conn) -> Result<(), Error> {
        let abandoned = self.changed_runs().flat_map(|(_, changed)| &changed.abandoned_tasks);
        let abandoned: Vec<Vec<Arg>> = abandoned.map(|task| vec![task.0.into()]).collect();
        if !abandoned.is_empty() {
            conn.change_by("DELETE FROM tasks WHERE owner IS NULL AND (id)".to_owned(), abandoned).await?;
        }
        let unanswered: Vec<Uuid> =
            self.changed_runs().flat_map(|(state, _)| state.unanswered.keys().map(|task| task.0)).collect();
        let mut left = BTreeSet::new();
        for some in unanswered.chunks(AT_ONCE) {
            let sql = Sql::new("SELECT id FROM tasks WHERE id IN (").list(some.iter().copied()).push(")");
            for row in conn.fetch(sql).await? {
                left.insert(TaskId(row.uuid(0)?));
            }
        }
        for work in self.runs.values_mut() {
            let (Some(snapshot), Some(changed)) = (&mut work.snapshot, &mut work.changed) else { continue };
            if let Some(last) = changed.inputs.last_mut() {
                let is_left = |task| left.contains(&task) && !changed.ended_tasks.contains(&task);
                last.forgotten = snapshot.state.forget_unanswered(is_left);
            }
        }
        Ok(())
    }

    /// The state of each run that has changed, and what is to be written beside it.
    fn changed_runs(&self) -> impl Iterator<Item = (&RunState, &Changed)> {
        self.runs.values().filter_map(|work| Some((&work.snapshot.as_ref()?.state, work.changed.as_ref()?)))
    }
}
