//! The runs to archive.

use shared::id::{FlowId, RunId, Username};
use shared::log::RunsArchived;
use shared::time::Timestamp;

/// Runs that stand in a file, which is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewArchive {
    /// What the log is told.
    pub entry: RunsArchived,
    /// The runs in it; where one has changed since it was read, nothing is committed.
    pub runs: Vec<RunInArchive>,
    /// The number of the newest erasure when the runs were read: what was erased since stands in the file.
    pub erasures: u64,
}

/// A run that stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInArchive {
    /// The run's id, by which the archive is found later.
    pub id: RunId,
    /// The flow that it ran, which is kept for lookups of archived runs.
    pub flow: FlowId,
    /// Who started it.
    pub requested_by: Username,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The number of its last row in the log, as it was read.
    pub last_row: i64,
}
