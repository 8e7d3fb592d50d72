//! The end of a page of a list that is read row by row: rows can be as large as agents' texts, and a page must not fill
//! the memory. May import the length of JSON, and the errors of the store.

use serde::Serialize;

use super::Error;
use super::json_length::json_length;

/// How many bytes the rows of a page have together as JSON; the one row of a page may have more.
pub(super) const MAX_PAGE_BYTES: usize = 4 << 20;
/// So many rows are read first, where nobody knows yet how long they are.
const FIRST_READ: usize = 16;
/// So many are read at once afterwards, since those that follow can be much longer than those before them.
const NEXT_READ: usize = 64;
/// So many rows of the log are read at once. Each shows its review with all large values, however often the values stand
/// in other rows; those without large values need no statement.
pub(super) const LOG_READ: usize = 8;

/// What a page has taken so far.
pub(super) struct PageBytes {
    max: usize,
    bytes: usize,
    to_read: usize,
    next_read: usize,
    is_page: bool,
}

impl PageBytes {
    /// Of a page, which takes at least one row: whoever goes on behind its cursor comes to the end.
    pub fn of_page(max: usize) -> Self {
        Self { max, bytes: 0, to_read: FIRST_READ, next_read: NEXT_READ, is_page: true }
    }

    /// Of a page of the log.
    pub fn of_log(max: usize) -> Self {
        Self { to_read: LOG_READ, next_read: LOG_READ, ..Self::of_page(max) }
    }

    /// Of a list that is cut where it is too long, also before its first row.
    pub fn of_list(max: usize) -> Self {
        Self { is_page: false, ..Self::of_page(max) }
    }

    /// Takes the rows to read next off those that are left; `None` where none is.
    pub fn next<'r, T>(&mut self, left: &mut &'r [T]) -> Option<&'r [T]> {
        let (next, later) = left.split_at(self.to_read.min(left.len()));
        self.to_read = self.next_read;
        *left = later;
        Some(next).filter(|next| !next.is_empty())
    }

    /// Whether the page takes this row too; the first that it does not take ends it.
    pub fn takes(&mut self, row: &impl Serialize) -> Result<bool, Error> {
        let is_first = self.bytes == 0;
        self.bytes += json_length(row)?;
        Ok(self.bytes <= self.max || (self.is_page && is_first))
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
        let (mut page, rows) = (PageBytes::of_page(100), [(); 100]);
        let mut left = &rows[..];
        let read: Vec<_> = std::iter::from_fn(|| page.next(&mut left)).map(<[()]>::len).collect();
        assert_eq!(read, [16, 64, 20]);
    }
}
