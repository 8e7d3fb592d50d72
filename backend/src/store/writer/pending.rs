//! The data of a group for archiving and erasing, in addition to those of all changes: as read, and as they will be
//! written. `archive` and `erase` read, decide and write them.

use std::collections::{BTreeMap, BTreeSet};

use shared::id::{RunId, Username};

use super::super::db::Arg;
use super::super::{NewArchive, NewErasure, ProviderAccount, UserRecord};

/// The data that archiving depends on, as read, and the archive to write.
#[derive(Default)]
pub(super) struct Archiving {
    /// The number of the newest archive.
    pub last: u64,
    pub up_to: i64,
    /// The number of the last log row of each run that exists.
    pub rows: BTreeMap<RunId, i64>,
    /// The keys of each of these runs in the table of runs by status.
    pub statuses: BTreeMap<RunId, Vec<Vec<Arg>>>,
    pub new: Option<NewArchiveRows>,
}

/// An archive to write.
pub(super) struct NewArchiveRows {
    pub archive: NewArchive,
    pub at: i64,
    /// The index of its entry among the entries that belong to no run.
    pub entry: usize,
}

/// A person who was erased.
pub(super) struct ErasedPerson {
    /// Their previous name.
    pub username: Username,
    /// Their previous account at the identity provider.
    pub account: Option<ProviderAccount>,
    /// Their new record, with the pseudonym.
    pub record: UserRecord,
}

/// The data that erasing depends on, as read, and the data to write.
#[derive(Default)]
pub(super) struct Erasures {
    /// The names among those in changes that are in use by an erasure: pseudonyms, and names still being removed.
    pub names: BTreeSet<Username>,
    /// For each person, the number of unfinished runs that involve them, and of pending reviews that do.
    pub waiting: BTreeMap<Username, (i64, i64)>,
    /// The people who are deputies of an erased person, or have a deputyship made by them.
    pub deputies: BTreeMap<Username, UserRecord>,
    /// The number of the newest `entries.erased` entry.
    pub last: u64,
    /// The number of the last log row of each run to change.
    pub rows: BTreeMap<RunId, i64>,
    pub indexed_to: i64,
    pub erased: Vec<ErasedPerson>,
    pub steps: Vec<NewErasure>,
    /// The new `entries.erased` entries: their indexes among the entries that belong to no run, and their numbers.
    pub entries: Vec<(usize, u64)>,
}
