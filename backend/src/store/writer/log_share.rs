//! The share of the log that this process writes, which determines how many of its writers work.
//!
//! All servers commit one after the other. If several write, a group waits for those of the others, and more writers
//! only make the groups smaller: each group has fewer changes, and waits no less. So servers share the writers that one
//! server would have, each in proportion to its part of the log. Row numbers show how large that is: numbers between
//! two groups of this process belong to others.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

/// The largest number of others' rows that count between two groups, so that rows that they wrote while this process
/// was idle are soon forgotten.
const MOST_OTHERS: i64 = 128;
/// Over how many groups the share is averaged, roughly.
const GROUPS: i64 = 16;
/// The weight of a row, so that the decayed weight of old rows is still a whole number.
const UNIT: i64 = 1024;

/// The share, and the number of working writers that follows from it.
#[derive(Debug)]
pub(in crate::store) struct LogShare {
    writers: u32,
    /// The number of writers that should get changes.
    working: AtomicU32,
    rows: Mutex<RowCounts>,
}

/// The weighted rows of recent groups; older ones count less.
#[derive(Debug, Default)]
struct RowCounts {
    /// The number of the last row of this process.
    last: Option<i64>,
    own: i64,
    others: i64,
}

impl LogShare {
    pub fn new(writers: u32) -> Self {
        Self { writers, working: AtomicU32::new(writers), rows: Mutex::default() }
    }

    /// Returns how many writers should get changes.
    pub fn working(&self) -> u32 {
        self.working.load(Ordering::Relaxed)
    }

    /// Records that this process writes rows with these numbers. Must be called under the lock of the log, in the order
    /// of the numbers.
    pub fn writes(&self, numbers: &[i64]) {
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return };
        let mut rows = self.rows.lock();
        let between = rows.last.map_or(0, |before| first - before - 1).clamp(0, MOST_OTHERS);
        let count = i64::try_from(numbers.len()).unwrap_or(MOST_OTHERS);
        rows.own += count * UNIT - rows.own / GROUPS;
        rows.others += between * UNIT - rows.others / GROUPS;
        rows.last = Some(*last);
        let all = rows.own + rows.others;
        // Rounded: with three writers, half of the log needs two, and a third needs one.
        let working = (2 * rows.own * i64::from(self.writers) + all) / (2 * all).max(1);
        let working = u32::try_from(working).unwrap_or(self.writers).clamp(1, self.writers.max(1));
        self.working.store(working, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes groups of `own` rows, with `others` rows of other servers between them.
    fn write(share: &LogShare, from: &mut i64, groups: u32, (own, others): (i64, i64)) -> u32 {
        for _ in 0..groups {
            let numbers: Vec<i64> = (*from..*from + own).collect();
            share.writes(&numbers);
            *from += own + others;
        }
        share.working()
    }

    #[test]
    fn servers_share_the_writers_that_one_would_have() {
        let (share, mut from) = (LogShare::new(3), 1);
        assert_eq!(share.working(), 3);
        assert_eq!(write(&share, &mut from, 100, (10, 0)), 3);
        assert_eq!(write(&share, &mut from, 100, (10, 20)), 1, "one of three that are busy");
        assert_eq!(write(&share, &mut from, 100, (10, 9)), 2, "one of two");
        assert_eq!(write(&share, &mut from, 100, (1, 100)), 1, "one that does little");
        assert_eq!(write(&share, &mut from, 100, (10, 0)), 3, "the others have stopped");
        // While this process was idle, others wrote a lot.
        from += 1_000_000;
        assert_eq!(write(&share, &mut from, 100, (10, 0)), 3);
        assert_eq!(write(&share, &mut from, 100, (10, 1)), 3, "another one does little");
    }

    #[test]
    fn a_single_writer_works_always() {
        let (share, mut from) = (LogShare::new(1), 1);
        assert_eq!(write(&share, &mut from, 100, (1, 1000)), 1);
    }
}
