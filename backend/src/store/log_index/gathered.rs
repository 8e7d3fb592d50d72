//! Rows of the log on their way into the index: what they add to the blocks that come next. They are added in the order
//! of the log: right after their commit, while they are in memory, or else when they are read from the database.

use std::collections::BTreeSet;

use shared::id::RunId;
use shared::log::Event;

use super::super::cursor::LogPlace;
use super::super::recent_rows::RecentRows;
use super::BLOCK;
use super::terms::Terms;

/// A block to store, with its terms.
pub(super) struct NewBlock {
    /// The block's number, from 0.
    pub number: i64,
    /// The latest time of all entries up to the end of the block.
    pub latest: i64,
    /// The longest time by which an entry up to there was earlier than the latest one of the blocks before its own.
    pub behind: i64,
    pub terms: Terms,
    /// The latest time of all entries before the block.
    latest_before: i64,
}

/// The rows that follow the index, as far as they are gathered.
pub(super) struct Gathered {
    /// The number of the last erasure before the first of the rows was read.
    pub erasures: u64,
    /// The runs whose reviews have changed in these rows.
    pub runs: BTreeSet<RunId>,
    /// The first row that is not indexed.
    first: i64,
    /// The first row that is not gathered.
    next: i64,
    latest: i64,
    behind: i64,
    blocks: Vec<NewBlock>,
}

impl Gathered {
    /// Begins with the first row that is not indexed. `latest` and `behind` are those of the last block before it.
    pub fn starting_at(first: i64, (latest, behind): (i64, i64), erasures: u64) -> Self {
        Self { erasures, runs: BTreeSet::new(), first, next: first, latest, behind, blocks: Vec::new() }
    }

    /// The first row that is not gathered.
    pub fn next(&self) -> i64 {
        self.next
    }

    pub fn count(&self) -> i64 {
        self.next - self.first
    }

    /// Adds the rows that are in memory, up to the first that is missing there.
    pub fn add_recent(&mut self, recent: &RecentRows) {
        let place = LogPlace { seq: self.next - 1, seen: u32::MAX };
        for row in recent.after(place, true).into_iter().flat_map(|(_, rows)| rows) {
            self.add(row.seq, row.run, &row.events);
        }
    }

    pub fn add(&mut self, seq: i64, run: Option<RunId>, events: &[Event]) {
        let number = seq.div_euclid(BLOCK);
        if self.blocks.last().is_none_or(|block| block.number != number) {
            let (latest, behind) = (self.latest, self.behind);
            self.blocks.push(NewBlock { number, latest, behind, terms: Terms::default(), latest_before: latest });
        }
        let Some(block) = self.blocks.last_mut() else { return };
        let place = u32::try_from(seq.rem_euclid(BLOCK)).unwrap_or(0);
        for event in events {
            block.terms.add(place, event);
            // An entry may be earlier than its row.
            self.behind = self.behind.max(block.latest_before.saturating_sub(event.at.0));
            self.latest = self.latest.max(event.at.0);
        }
        (block.latest, block.behind) = (self.latest, self.behind);
        if events.iter().any(|event| event.kind.is_review()) {
            self.runs.extend(run);
        }
        self.next = seq + 1;
    }

    /// Notes that there are no further rows before `end`.
    pub fn reach(&mut self, end: i64) {
        self.next = self.next.max(end);
    }

    /// Takes the full blocks, and returns them with the first row after them. The rows of a block that is not full stay.
    pub fn take_full(&mut self) -> (Vec<NewBlock>, i64) {
        let number = self.next.div_euclid(BLOCK);
        let rest = self.blocks.split_off(self.blocks.partition_point(|block| block.number < number));
        self.first = number * BLOCK;
        self.runs.clear();
        (std::mem::replace(&mut self.blocks, rest), self.first)
    }
}
