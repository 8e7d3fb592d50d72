//! What entries say of the record itself: what of it cannot be read, how it was continued, what was archived
//! and what was erased of it.

use serde::{Deserialize, Serialize};

use crate::entry_numbers::EntryNumbers;
use crate::id::Username;
use crate::time::Timestamp;

/// In the place of what cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// What is wrong with the row, for operators.
    pub reason: String,
}

/// Another head of the record was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadAccepted {
    /// The head that it continued so far; none where nothing was sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The head that it continues from now on; none where nothing is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// Runs were written to a file of the archive. What is left of them in the database is removed from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsArchived {
    /// The number of the archive, from 1 without gaps.
    pub archive: u64,
    /// The name of the file in the folder of archives.
    pub file: String,
    /// Where it begins in the file, in bytes.
    pub position: u64,
    /// How many bytes it has there.
    pub bytes: u64,
    /// `sha256:` of these bytes, as they stand in the file.
    pub digest: String,
    /// How many runs it holds.
    pub runs: u64,
    /// When the first of them ended.
    pub first_ended_at: Timestamp,
    /// When the last of them ended.
    pub last_ended_at: Timestamp,
    /// The numbers of their entries in the record.
    pub entries: EntryNumbers,
}

/// Somebody's account lost what it had of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserErased {
    /// The name that stands in the place of theirs; it says nothing of who they were.
    pub username: Username,
}

/// Entries lost the name and the words of somebody who was erased. Their seals keep what each hashed to before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntriesErased {
    /// The number among entries of this kind, from 1 without gaps.
    pub erasure: u64,
    /// The name that stands in the place of theirs.
    pub username: Username,
    /// The numbers of the changed entries in the record.
    pub entries: EntryNumbers,
    /// What each hashes to now, in the order of the numbers: 32 bytes for each, in base64.
    pub hashes: String,
}
