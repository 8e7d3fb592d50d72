//! Entries from which the name and the words of an erased person are removed.

use shared::log::EntriesErased;

use super::super::erasure::ErasureStep;

/// One step of an erasure, with what the log is told of it.
#[derive(Debug, Clone)]
pub struct NewErasure {
    /// What the log is told of the entries that change; nothing where none does.
    pub erased_entries: Vec<EntriesErased>,
    /// The rewritten rows of a run, or of entries that are of no run.
    pub step: ErasureStep,
}
