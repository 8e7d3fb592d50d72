//! The data of entries about the audit log itself: unreadable entries, accepted heads, archived runs and erased people.

use serde::{Deserialize, Serialize};

use crate::entry_numbers::EntryNumbers;
use crate::id::Username;
use crate::time::Timestamp;

/// Replaces an entry that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// What is wrong with the row, for operators.
    pub reason: String,
}

/// Another head of the audit log was accepted.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadAccepted {
    /// The head until now; `None` if nothing was sealed.
    pub previous: Option<String>,
    /// The head from now on; `None` if nothing is sealed.
    pub head: Option<String>,
}

/// Runs were written to an archive file. The rest of their data is then removed from the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsArchived {
    /// The number of the archive, from 1 without gaps.
    pub archive: u64,
    /// The name of the file in the folder of archives.
    pub file: String,
    /// The position of the archive in the file, in bytes.
    pub position: u64,
    /// The length of the archive in the file, in bytes.
    pub bytes: u64,
    /// `sha256:` of these bytes, as they are in the file.
    pub digest: String,
    /// The number of runs.
    pub runs: u64,
    /// The time at which the first of them ended.
    pub first_ended_at: Timestamp,
    /// The time at which the last of them ended.
    pub last_ended_at: Timestamp,
    /// The numbers of their entries in the audit log.
    pub entries: EntryNumbers,
}

/// The personal data of an account were erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserErased {
    /// The pseudonym that replaces the username; it does not reveal who they were.
    pub username: Username,
}

/// The name and the words of an erased person were removed from entries. Their seals keep the previous hashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntriesErased {
    /// The number among entries of this kind, from 1 without gaps.
    pub erasure: u64,
    /// The pseudonym that replaces the username.
    pub username: Username,
    /// The numbers of the changed entries in the audit log.
    pub entries: EntryNumbers,
    /// The new hashes of the changed entries in the order of their numbers, 32 bytes each, concatenated and in base64.
    pub hashes: String,
}
