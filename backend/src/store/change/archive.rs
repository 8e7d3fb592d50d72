//! Archives to commit, with their runs.

use shared::id::{FlowId, RunId, Username};
use shared::log::RunsArchived;
use shared::time::Timestamp;

/// An archive to commit; its file is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewArchive {
    /// The data of the log entry.
    pub entry: RunsArchived,
    /// The runs in the archive. If one has changed since it was read, nothing is committed.
    pub runs: Vec<RunInArchive>,
    /// The number of the newest erasure when the runs were read. Data erased since then are still in the file.
    pub erasures: u64,
}

/// A run in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInArchive {
    /// The run's id, by which the archive is found later.
    pub id: RunId,
    /// The flow that it ran, which is kept for lookups of archived runs.
    pub flow: FlowId,
    /// The person who started it.
    pub requested_by: Username,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The number of its last log row when it was read.
    pub last_row: i64,
}
