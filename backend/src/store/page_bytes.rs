//! Where a page of a list ends that is read row by row: rows can be as large as what agents write, and a page is not to
//! fill the memory. May import how long JSON is, and the errors of the store.

use serde::Serialize;

use super::Error;
use super::json_length::json_length;

/// How many bytes the rows of a page have together as JSON; the one row of a page may have more.
pub(super) const MAX_PAGE_BYTES: usize = 4 << 20;
/// So many rows are read first, where nobody knows yet how long they are; then twice as many each time.
const FEW_AT_ONCE: usize = 8;
/// So many rows are read at once at most, since those that follow can be much longer than those before them.
const MOST_AT_ONCE: usize = 64;

/// What a page has taken so far.
pub(super) struct PageBytes {
    max: usize,
    bytes: usize,
    rows: usize,
    at_once: usize,
    is_page: bool,
}

impl PageBytes {
    /// Of a page, which takes at least one row: whoever goes on behind its cursor comes to the end.
    pub fn of_page(max: usize) -> Self {
        Self { max, bytes: 0, rows: 0, at_once: FEW_AT_ONCE, is_page: true }
    }

    /// Of a list that is cut where it is too long, also before its first row.
    pub fn of_list(max: usize) -> Self {
        Self { is_page: false, ..Self::of_page(max) }
    }

    /// How many rows to read next.
    pub fn at_once(&mut self) -> usize {
        let at_once = self.at_once;
        self.at_once = (at_once * 2).min(MOST_AT_ONCE);
        at_once
    }

    /// Whether the page takes this row too; the first that it does not take ends it.
    pub fn takes(&mut self, row: &impl Serialize) -> Result<bool, Error> {
        self.bytes += json_length(row)?;
        self.rows += 1;
        Ok(self.bytes <= self.max || (self.is_page && self.rows == 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_what_fits_and_at_least_one_row() {
        let row = "x".repeat(40);
        let mut page = PageBytes::of_page(100);
        let taken: Vec<_> = (0..4).map(|_| page.takes(&row).unwrap()).collect();
        assert_eq!(taken, [true, true, false, false]);
        assert!(PageBytes::of_page(10).takes(&row).unwrap());
        assert!(!PageBytes::of_list(10).takes(&row).unwrap());
    }

    #[test]
    fn rows_are_read_a_few_at_a_time() {
        let mut page = PageBytes::of_page(100);
        let read: Vec<_> = (0..5).map(|_| page.at_once()).collect();
        assert_eq!(read, [8, 16, 32, 64, 64]);
    }
}
