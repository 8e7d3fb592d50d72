//! The window onto the server's list: contiguous pages in memory, and the starts of all pages read so far. A row is
//! identified by its urgency, which is also its sort key.

use std::ops::Range;

use shared::inbox::Urgency;

pub const PAGE: u32 = 50;
/// The largest number of pages in memory, unless they are short.
pub const PAGES: usize = 5;
/// The least number of rows to keep in memory, if there are that many. Pages of long reviews are short, and rows near
/// the visible ones must stay.
const FEWEST: usize = 100;
/// With more rows than this, most of which came over the live socket, the window is reloaded.
const FULL: usize = 2 * PAGES * PAGE as usize;

/// The start of a page.
#[derive(Debug, Clone, Default, PartialEq)]
struct Start {
    /// The cursor that requests it; `None` for the first page.
    cursor: Option<String>,
    /// The last row before it; `None` for the first page.
    after: Option<Urgency>,
    /// The number of its rows when it was dropped from memory.
    rows: usize,
}

/// A page as returned by the server.
#[derive(Debug, Clone, Default)]
pub struct PageRows {
    /// The rows that match the filter of the list.
    pub rows: Vec<Urgency>,
    /// The last row of the page, even if it does not match.
    pub last: Option<Urgency>,
    /// The cursor of the next page; `None` if this is the last.
    pub next: Option<String>,
}

/// The part of the list that is in memory.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// The starts of all known pages; empty until the first page is read.
    pages: Vec<Start>,
    loaded: Range<usize>,
    rows: Vec<Urgency>,
    before: usize,
    version: u64,
}

impl Window {
    /// Whether the list has been read, even if it is empty.
    pub fn is_read(&self) -> bool {
        !self.pages.is_empty()
    }

    /// The rows in memory, the most urgent first.
    pub fn rows(&self) -> &[Urgency] {
        &self.rows
    }

    /// The number of rows before those in memory, as far as is known.
    pub fn before(&self) -> usize {
        self.before
    }

    /// A counter of changes to the window.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The index of a row in the whole list, from 0; `None` if it is not in memory.
    pub fn index(&self, row: &Urgency) -> Option<usize> {
        self.rows.binary_search(row).ok().map(|at| self.before + at)
    }

    /// The range of pages in memory.
    pub fn loaded(&self) -> Range<usize> {
        self.loaded.clone()
    }

    /// The cursor of a page; `None` for the first page and for unknown ones.
    pub fn cursor(&self, page: usize) -> Option<String> {
        self.pages.get(page)?.cursor.clone()
    }

    /// Whether the list has more pages after those in memory.
    pub fn has_more(&self) -> bool {
        self.pages.len() > self.loaded.end
    }

    /// The page of a row before the window, by the row's index in the whole list.
    pub fn page_of(&self, index: usize) -> usize {
        let mut rows = 0;
        let ends_behind = |page: &Start| {
            rows += page.rows;
            rows > index
        };
        self.pages[..self.loaded.start].iter().position(ends_behind).unwrap_or(self.loaded.start)
    }

    /// Whether the window covers the place at which this row would stand.
    pub fn covers(&self, row: &Urgency) -> bool {
        let after = |page: usize| self.pages.get(page).and_then(|page| page.after.as_ref());
        self.is_read()
            && after(self.loaded.start).is_none_or(|last| row > last)
            && after(self.loaded.end).is_none_or(|last| row <= last)
    }

    /// Inserts a row at its place; does nothing if it is there already.
    pub fn insert(&mut self, row: Urgency) {
        if let Err(at) = self.rows.binary_search(&row) {
            self.rows.insert(at, row);
            self.version += 1;
        }
    }

    pub fn remove(&mut self, row: &Urgency) {
        if let Ok(at) = self.rows.binary_search(row) {
            self.rows.remove(at);
            self.version += 1;
        }
    }

    /// Whether so many rows came over the live socket that the list must be reloaded.
    pub fn is_full(&self) -> bool {
        self.rows.len() > FULL
    }

    /// Drops all pages and rows, as before the first request.
    pub fn clear(&mut self) {
        *self = Self { version: self.version + 1, ..Self::default() };
    }

    /// Replaces the window by pages of which the first has the number `from`.
    pub fn replace(&mut self, from: usize, pages: Vec<PageRows>) {
        self.pages.truncate(from + 1);
        if self.pages.is_empty() {
            self.pages.push(Start::default());
        }
        let from = self.pages.len() - 1;
        self.before = self.pages[..from].iter().map(|page| page.rows).sum();
        self.loaded = from..from;
        self.rows.clear();
        for page in pages {
            self.read(page);
        }
    }

    /// Appends the page after the window, and drops pages from its start if there are too many.
    pub fn append(&mut self, page: PageRows) {
        self.read(page);
        while self.loaded.len() > PAGES {
            let first = &mut self.pages[self.loaded.start..];
            let last = first[1].after;
            let rows = last.map_or(0, |last| self.rows.partition_point(|row| *row <= last));
            if self.rows.len() < rows + FEWEST {
                break;
            }
            first[0].rows = rows;
            self.rows.drain(..rows);
            self.before += rows;
            self.loaded.start += 1;
        }
    }

    fn read(&mut self, page: PageRows) {
        self.loaded.end += 1;
        self.pages.truncate(self.loaded.end);
        if page.next.is_some() {
            self.pages.push(Start { cursor: page.next, after: page.last, rows: 0 });
        }
        for row in page.rows {
            self.insert(row);
        }
        self.version += 1;
    }
}

#[cfg(test)]
mod tests {
    use shared::id::ReviewId;
    use shared::time::Timestamp;

    use super::*;

    fn row(due: i64) -> Urgency {
        let id = "018f0000-0000-7000-8000-000000000001".parse::<ReviewId>().unwrap();
        Urgency { due: Timestamp(due), severity: 0, asked: Timestamp(0), id }
    }

    /// Page `number` of `pages`, with 50 rows whose deadlines are `number * 100` + 2, 4, 6, ….
    fn page(number: i64, pages: i64) -> PageRows {
        page_of(number, pages, 50)
    }

    fn page_of(number: i64, pages: i64, count: i64) -> PageRows {
        let rows: Vec<_> = (1..=count).map(|at| row(number * 100 + at * 2)).collect();
        PageRows { last: rows.last().copied(), rows, next: (number + 1 < pages).then(|| format!("after {number}")) }
    }

    #[test]
    fn it_goes_on_to_the_end_and_keeps_a_bounded_part() {
        let mut window = Window::default();
        assert!(!window.is_read());
        window.replace(0, vec![page(0, 20)]);
        for number in 1..20 {
            assert_eq!(window.cursor(window.loaded().end), Some(format!("after {}", number - 1)));
            window.append(page(number, 20));
        }
        assert_eq!((window.has_more(), window.rows().len(), window.before()), (false, 50 * PAGES, 1000 - 50 * PAGES));
        assert_eq!(window.index(&row(2000)), Some(999), "the last row is the 1000th");
    }

    #[test]
    fn of_short_pages_it_keeps_as_many_rows_as_are_looked_at() {
        let mut window = Window::default();
        window.replace(0, vec![page_of(0, 100, 3)]);
        for number in 1..100 {
            window.append(page_of(number, 100, 3));
            let read = usize::try_from(number + 1).unwrap() * 3;
            assert!(window.rows().len() >= read.min(FEWEST) && window.rows().len() < FEWEST + 3);
            assert_eq!(window.before() + window.rows().len(), read);
        }
    }

    #[test]
    fn it_goes_back_to_where_it_has_been() {
        let mut window = Window::default();
        window.replace(0, vec![page(0, 20)]);
        (1..12).for_each(|number| window.append(page(number, 20)));
        assert_eq!((window.loaded(), window.page_of(125), window.page_of(0)), (7..12, 2, 0));
        assert_eq!(window.cursor(2).as_deref(), Some("after 1"));
        window.replace(2, vec![page(2, 20), page(3, 20)]);
        assert_eq!((window.loaded(), window.before(), window.rows().len()), (2..4, 100, 100));
        assert_eq!(window.cursor(4).as_deref(), Some("after 3"), "and on from there");
    }

    #[test]
    fn what_comes_in_between_is_taken_in_where_it_is_in_memory_only() {
        let mut window = Window::default();
        assert!(!window.covers(&row(5)), "nothing was read yet");
        window.replace(0, vec![page(0, 20)]);
        assert!(window.covers(&row(5)) && window.covers(&row(100)) && !window.covers(&row(101)));
        window.insert(row(15));
        window.insert(row(15));
        assert_eq!((window.rows().len(), window.index(&row(20))), (51, Some(10)));
        (1..12).for_each(|number| window.append(page(number, 20)));
        assert!(!window.covers(&row(15)) && !window.covers(&row(700)) && window.covers(&row(701)));
        window.remove(&row(710));
        assert_eq!(window.index(&row(720)), Some(359), "one more came before it");
        window.replace(0, vec![page(0, 1)]);
        assert!(window.covers(&row(i64::MAX)), "the last page has no end");
    }
}
