//! A cache of the newest rows of the log: followers read them here right after their commit, and ask the database only
//! for rows that another process has written, that are large, or that are older.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use shared::id::RunId;
use shared::log::Event;

use super::cursor::LogPlace;

/// The largest number of rows kept: eight times as many as one transaction writes for runs, since followers that write
/// themselves take as long as several of them.
const MAX_ROWS: usize = 256;
/// Rows with a longer stored form are not kept, in bytes.
pub(super) const LARGE: usize = 16 * 1024;

/// A row of the log.
#[derive(Debug)]
pub(super) struct NewRow {
    /// The number of the row in the log.
    pub seq: i64,
    pub run: Option<RunId>,
    pub events: Vec<Event>,
}

/// The rows by number, possibly with gaps. Writers may add theirs in any order.
#[derive(Debug, Default)]
pub(super) struct RecentRows(Mutex<BTreeMap<i64, Arc<NewRow>>>);

impl RecentRows {
    /// Adds rows that have just been committed.
    pub fn add(&self, rows: impl IntoIterator<Item = NewRow>) {
        let mut kept = self.0.lock();
        kept.extend(rows.into_iter().map(|row| (row.seq, Arc::new(row))));
        while kept.len() > MAX_ROWS {
            kept.pop_first();
        }
    }

    /// Removes all rows. Called when another process has committed: followers must then ask the database, since the
    /// rows here are no longer all there are.
    pub fn forget(&self) {
        self.0.lock().clear();
    }

    /// Returns the rows that follow a place without a gap, and the number of the last one. Without `of_runs`, rows of
    /// runs are left out. `None` means that the caller must ask the database.
    pub fn after(&self, place: LogPlace, of_runs: bool) -> Option<(i64, Vec<Arc<NewRow>>)> {
        if place.seen != u32::MAX {
            // The row of the place may have further events.
            return None;
        }
        let kept = self.0.lock();
        let next = place.seq.saturating_add(1);
        let follow =
            || kept.range(next..).zip(next..).take_while(|((seq, _), next)| *seq == next).map(|((_, row), _)| row);
        let rows = follow().filter(|row| of_runs || row.run.is_none()).cloned().collect();
        follow().last().map(|last| (last.seq, rows))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn rows(numbers: impl IntoIterator<Item = i64>) -> Vec<NewRow> {
        numbers.into_iter().map(|seq| NewRow { seq, run: Some(RunId(Uuid::nil())), events: Vec::new() }).collect()
    }

    fn after(newest: &RecentRows, seq: i64) -> Vec<i64> {
        let found = newest.after(LogPlace { seq, seen: u32::MAX }, true);
        found.into_iter().flat_map(|(_, rows)| rows).map(|row| row.seq).collect()
    }

    #[test]
    fn rows_are_given_as_far_as_none_is_missing() {
        let newest = RecentRows::default();
        // Row 6 comes from another process, and the second of two writers of this process was faster.
        newest.add(rows([7]));
        newest.add(rows([4, 5]));
        assert_eq!(after(&newest, 2), [0; 0]);
        assert_eq!(after(&newest, 3), [4, 5]);
        assert_eq!(after(&newest, 5), [0; 0]);
        assert_eq!(after(&newest, 6), [7]);
        assert_eq!(after(&newest, 7), [0; 0]);
        newest.forget();
        assert_eq!(after(&newest, 3), [0; 0]);
        // A part of row 4 has been seen, and the rest is not in the cache.
        assert!(newest.after(LogPlace { seq: 4, seen: 1 }, true).is_none());
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let newest = RecentRows::default();
        newest.add(rows(1..=500));
        assert_eq!(after(&newest, 499), [500]);
        assert_eq!(after(&newest, 1), [0; 0]);
        assert_eq!(newest.0.lock().len(), MAX_ROWS);
    }
}
