//! The size limit of a page of a list that is read row by row. Rows can be as large as the text of agents, and a page
//! must not fill the memory.

use serde::Serialize;

use super::Error;

/// The largest size of the rows of a page, encoded as JSON, in bytes. A page of only one row may be larger.
pub(super) const MAX_PAGE_BYTES: usize = 4 << 20;
/// The number of rows that are read first, when their size is not known yet.
const FIRST_READ: usize = 16;
/// The number of rows that are read at once afterwards, since later rows can be much larger than earlier ones.
const NEXT_READ: usize = 64;
/// The number of log rows that are read at once. Each contains its review with all large values, even if other rows
/// contain the same values. Rows without large values need no further statement.
pub(super) const LOG_READ: usize = 8;

/// The size of a page while it is filled.
pub(super) struct PageBytes {
    max: usize,
    bytes: usize,
    to_read: usize,
    next_read: usize,
    is_page: bool,
}

impl PageBytes {
    /// For a page that takes at least one row, so that reading from cursor to cursor always reaches the end.
    pub fn of_page(max: usize) -> Self {
        Self { max, bytes: 0, to_read: FIRST_READ, next_read: NEXT_READ, is_page: true }
    }

    /// For a page of the log.
    pub fn of_log() -> Self {
        Self { to_read: LOG_READ, next_read: LOG_READ, ..Self::of_page(MAX_PAGE_BYTES) }
    }

    /// For a list that is cut off at the limit, possibly before its first row.
    pub fn of_list(max: usize) -> Self {
        Self { is_page: false, ..Self::of_page(max) }
    }

    /// Splits off the rows to read next from those that are left. `None` if no rows are left.
    pub fn next<'r, T>(&mut self, left: &mut &'r [T]) -> Option<&'r [T]> {
        let (next, later) = left.split_at(self.to_read.min(left.len()));
        self.to_read = self.next_read;
        *left = later;
        Some(next).filter(|next| !next.is_empty())
    }

    /// Whether the page takes this row, too. The page ends before the first row that it does not take.
    pub fn takes(&mut self, row: &impl Serialize) -> Result<bool, Error> {
        let is_first = self.bytes == 0;
        self.bytes += serde_json::to_vec(row).map_err(|error| Error::Stored(error.to_string()))?.len();
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
