//! The data of a group for archiving and erasing, in addition to those of all changes: as they were read, and as they
//! will be written. `archive` and `erase` read, decide and write them.

use std::collections::{BTreeMap, BTreeSet};

use shared::id::{RunId, Username};

use super::super::db::Arg;
use super::super::{NewArchive, NewErasure, UserRecord};

/// What archiving rests on, as it was read; and the archive that is to be written.
#[derive(Default)]
pub(super) struct Archiving {
    /// The number of the newest archive.
    pub last: u64,
    pub up_to: i64,
    /// The last row of each run that is there.
    pub rows: BTreeMap<RunId, i64>,
    /// Where each of them is listed by its status, if it is.
    pub statuses: BTreeMap<RunId, Vec<Arg>>,
    pub new: Option<NewArchiveRows>,
}

/// An archive that is to be written.
pub(super) struct NewArchiveRows {
    pub archive: NewArchive,
    pub at: i64,
    /// Which of the entries of no run tells of it.
    pub entry: usize,
}

/// What erasing rests on, as it was read; and what is to be written.
#[derive(Default)]
pub(super) struct Erasures {
    /// Of the people that are named: what those are called who were erased, and those whose names are still looked for.
    pub names: BTreeSet<Username>,
    /// By person: how many runs that are not over and reviews that wait have to do with them.
    pub waiting: BTreeMap<Username, (i64, i64)>,
    /// Those in whose record somebody stands who is erased.
    pub deputies: BTreeMap<Username, UserRecord>,
    /// The number of the newest entry `entries.erased`.
    pub last: u64,
    /// The last row of each run that is to be changed.
    pub rows: BTreeMap<RunId, i64>,
    pub indexed_to: i64,
    /// People who were erased: their names, and their records from then on.
    pub erased: Vec<(Username, UserRecord)>,
    pub steps: Vec<NewErasure>,
    /// Which of the entries of no run tell of erased entries: their places with their numbers.
    pub entries: Vec<(usize, u64)>,
}

impl Erasures {
    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}
