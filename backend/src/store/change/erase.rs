//! The removal of an erased person's name and words from entries and runs.

use shared::log::EntriesErased;

use super::super::erasure::ErasureStep;

/// One step of an erasure, with the log entries about it.
#[derive(Debug, Clone)]
pub struct NewErasure {
    /// The data of log entries about the entries that change. Empty if none changes.
    pub erased_entries: Vec<EntriesErased>,
    /// The rewritten rows of a run, or of entries that belong to no run.
    pub step: ErasureStep,
}
