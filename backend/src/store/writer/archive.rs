//! Archives finished runs. The content of the file was read before this transaction, so it counts only if nothing has
//! happened to any of the runs since, and no other archive was written in the meantime.

use shared::id::RunId;
use shared::log::EventData;

use super::super::archives::{ARCHIVED_RUNS, ARCHIVES, signed, unsigned};
use super::super::db::{Arg, Conn, Sql};
use super::super::runs::{RUNS, RUNS_BY_STATUS, listed_keys};
use super::super::{Change, CommitError, Committed, Error, NewArchive, Operation};
use super::group::{ChangeResult, Group};
use super::pending::NewArchiveRows;
use crate::clock::Moment;

/// The number of runs that one statement looks up.
const CHUNK: usize = 64;

impl Group {
    /// Reads the data that archiving depends on. Makes no query if no change archives.
    pub async fn load_archiving(&mut self, conn: &mut Conn, changes: &[Change]) -> Result<(), Error> {
        let archives = changes.iter().filter_map(|change| match &change.operation {
            Operation::ArchiveRuns(archive) => Some(archive),
            _ => None,
        });
        let runs: Vec<Arg> = archives.flat_map(|archive| &archive.runs).map(|run| Arg::from(run.id.0)).collect();
        if runs.is_empty() {
            return Ok(());
        }
        let sql = Sql::new("SELECT COALESCE(MAX(number), 0), COALESCE(MAX(up_to), 0) FROM archives");
        if let Some(row) = conn.fetch_one(sql).await? {
            (self.archiving.last, self.archiving.up_to) = (unsigned(row.int(0)?), row.int(1)?);
        }
        for runs in runs.chunks(CHUNK) {
            let sql = Sql::new(
                "SELECT r.id, (SELECT MAX(l.seq) FROM log l WHERE l.run_id = r.id), r.status, r.created_at FROM runs r \
                 WHERE r.id IN (",
            );
            for row in conn.fetch(sql.list(runs.iter().cloned()).push(")")).await? {
                let id = row.uuid(0)?;
                self.archiving.rows.insert(RunId(id), row.int_opt(1)?.unwrap_or(0));
                self.archiving.statuses.insert(RunId(id), listed_keys(&row.text(2)?, row.int(3)?, id));
            }
        }
        Ok(())
    }

    pub fn archive_runs(&mut self, archive: &NewArchive, moment: Moment) -> ChangeResult {
        let number = archive.entry.archive;
        if number != self.archiving.last + 1 {
            return Err(CommitError::Conflict(format!(
                "archive {number} does not follow archive {}",
                self.archiving.last
            )));
        }
        if archive.erasures != self.erasures.last {
            return Err(CommitError::Conflict("a person was erased from entries after they were read".to_owned()));
        }
        for run in &archive.runs {
            let as_read = self.archiving.rows.get(&run.id) == Some(&run.last_row);
            let changes = self.runs.get(&run.id).is_some_and(|work| work.changed.is_some());
            if !as_read || changes {
                return Err(CommitError::Conflict(format!("run {} has changed since it was read", run.id)));
            }
        }
        // Later changes in this group do not find these runs.
        for run in &archive.runs {
            self.runs.remove(&run.id);
        }
        self.run_of.retain(|_, run| archive.runs.iter().all(|archived| archived.id != *run));
        let last_row = archive.runs.iter().map(|run| run.last_row).max().unwrap_or(0);
        self.archiving.last = number;
        self.archiving.up_to = self.archiving.up_to.max(last_row);
        let entry = self.out.events.len();
        self.emit(None, &EventData::RunsArchived(archive.entry.clone()), moment);
        self.archiving.new = Some(NewArchiveRows { archive: archive.clone(), at: moment.now.0, entry });
        Ok(Committed::Done)
    }

    /// Removes the runs from the table of runs, and records where they are. `first` is the number of the first log
    /// row that no change of a run caused.
    pub async fn write_archive(&mut self, conn: &mut Conn, first: i64) -> Result<(), Error> {
        let Some(NewArchiveRows { archive, at, entry }) = self.archiving.new.take() else { return Ok(()) };
        let NewArchive { entry: told, runs, .. } = archive;
        let row = first.saturating_add(i64::try_from(entry).unwrap_or(i64::MAX));
        let archived = vec![
            signed(told.archive).into(),
            row.into(),
            told.file.as_str().into(),
            signed(told.position).into(),
            signed(told.bytes).into(),
            at.into(),
            self.archiving.up_to.into(),
        ];
        conn.insert(&ARCHIVES, vec![archived], "").await?;
        let statuses = runs.iter().filter_map(|run| self.archiving.statuses.remove(&run.id)).flatten().collect();
        let gone = runs.iter().map(|run| vec![Arg::from(run.id.0)]).collect();
        let rows = runs.into_iter().map(|run| {
            let archive = signed(told.archive).into();
            vec![
                run.id.0.into(),
                run.flow.as_str().into(),
                run.requested_by.as_str().into(),
                run.ended_at.0.into(),
                archive,
                false.into(),
            ]
        });
        conn.insert(&ARCHIVED_RUNS, rows.collect(), "").await?;
        conn.delete_rows(&RUNS_BY_STATUS, statuses).await?;
        conn.delete_rows(&RUNS, gone).await?;
        Ok(())
    }
}
