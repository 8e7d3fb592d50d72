//! Reads the log in commit order, without gaps.
//!
//! The number of a row is its place in the order of commits: SQLite has one writer, and in PostgreSQL a lock is held
//! from before the number is drawn until after the commit (`log_numbers`, and a trigger on the table for inserts that
//! bypass it). So no row ever appears before one that can be read.

use serde::de::DeserializeOwned;
use shared::id::{ReviewId, RunId};
use shared::log::{Cursor, Entry, Event};
use shared::time::Timestamp;
use uuid::Uuid;

use super::blobs::{Blobs, Reader};
use super::cursor::LogPlace;
use super::db::{Conn, Row, Sql};
use super::log_row::{Body, Form, Loose};
use super::page_bytes::PageBytes;
use super::{Error, LogPage, Store, unreadable};

/// The largest number of entries in a page.
const MAX_ENTRIES: u32 = 1000;

#[derive(Debug, Clone, Copy)]
pub(super) enum RowsOf {
    All,
    OfRun(RunId),
    OfNoRun,
}

impl Store {
    /// Returns the cursor at the end of the log.
    pub async fn head(&self) -> Result<Cursor, Error> {
        Ok(self.inner.db.read().await?.head().await?.cursor(&self.inner.log))
    }

    /// Returns the cursor before the first entry.
    pub fn origin(&self) -> Cursor {
        LogPlace::ORIGIN.cursor(&self.inner.log)
    }

    /// Returns the place of a cursor, or `None` if the cursor belongs to another log or an earlier numbering.
    pub(crate) fn place(&self, cursor: &Cursor) -> Option<LogPlace> {
        LogPlace::of(&cursor.0, &self.inner.log)
    }

    pub(crate) fn cursor(&self, place: LogPlace) -> Cursor {
        place.cursor(&self.inner.log)
    }

    /// Returns the entries after a cursor, in commit order and without gaps. `None` if the cursor belongs to another
    /// log, is in its future, or is too old: the caller needs a new snapshot.
    pub async fn log(&self, after: &Cursor, run: Option<RunId>, limit: u32) -> Result<Option<LogPage>, Error> {
        self.page(after, run.map_or(RowsOf::All, RowsOf::OfRun), limit).await
    }

    /// Like [`Self::log`], with only the entries that belong to no run: of people, their sessions and tokens, and of
    /// flows. Other rows are not read.
    pub async fn log_beside_runs(&self, after: &Cursor, limit: u32) -> Result<Option<LogPage>, Error> {
        self.page(after, RowsOf::OfNoRun, limit).await
    }

    /// Returns the first entry after a cursor that belongs to the run of a review. The cursor is never too old for
    /// this: the entry at it may be of another run, and archived.
    pub async fn entry_of_review(&self, review: ReviewId, after: &Cursor) -> Result<Option<Entry>, Error> {
        // The entries of a run that only carries a question do not name it, so the run is taken from the review's row.
        let sql = Sql::new("SELECT run_id FROM reviews WHERE id = ").bind(review.0);
        let Some(run) = self.inner.db.read().await?.first(sql, Row::uuid).await? else { return Ok(None) };
        self.entry_of_run(RunId(run), after).await
    }

    /// Returns the first entry of a run after a cursor, which is never too old for this.
    pub async fn entry_of_run(&self, run: RunId, after: &Cursor) -> Result<Option<Entry>, Error> {
        let page = self.page(after, RowsOf::OfRun(run), 1).await?;
        Ok(page.and_then(|page| page.entries.into_iter().next()))
    }

    async fn page(&self, after: &Cursor, of: RowsOf, limit: u32) -> Result<Option<LogPage>, Error> {
        let Some(after) = self.place(after) else { return Ok(None) };
        let limit = limit.clamp(1, MAX_ENTRIES);
        if let Some(page) = self.recent(after, of, limit) {
            return Ok(Some(page));
        }
        let mut conn = self.inner.db.read().await?;
        let mut rows = conn.fetch(page_of(after, of, limit + 1)).await?;
        let head = place_of_head(rows.first().map(|row| row.int_opt(4)).transpose()?.flatten());
        let archived_to = rows.first().map(|row| row.int_opt(5)).transpose()?.flatten().unwrap_or(0);
        // If the row of the cursor was archived, so were others after it. Reading from the origin is always possible:
        // it returns the rows that are left.
        let is_there = rows.first().map(|row| row.int_opt(0)).transpose()?.flatten() == Some(after.seq);
        let too_old = matches!(of, RowsOf::All) && after != LogPlace::ORIGIN && after.seq < archived_to && !is_there;
        if after.seq > head.seq || too_old {
            return Ok(None);
        }
        // If no row follows the cursor, there is one row with only the head.
        if matches!(&rows[..], [row] if row.int_opt(0)?.is_none()) {
            rows.clear();
        }
        let mut full = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        // A row without a number is refused when it is decoded.
        rows.sort_by_key(|row| row.int(0).ok());
        let (mut read, mut bytes, mut left) = (Vec::new(), PageBytes::of_log(), &rows[..]);
        'page: while let Some(next) = bytes.next(&mut left) {
            for (place, events) in read_rows(&mut conn, next, Form::Whole).await? {
                // Entries of the cursor's row that were already seen are not part of the page.
                let seen = if place.seq == after.seq { usize::try_from(after.seen).unwrap_or(usize::MAX) } else { 0 };
                let new = events.get(seen..).unwrap_or_default();
                if !new.is_empty() && !bytes.takes(&new)? {
                    full = true;
                    break 'page;
                }
                read.push((place, events));
            }
        }
        Ok(Some(self.paged(read, after, limit, head, full)))
    }

    /// Returns a page of recent rows from memory, if they have it without gaps.
    fn recent(&self, after: LogPlace, of: RowsOf, limit: u32) -> Option<LogPage> {
        let of_runs = match of {
            RowsOf::OfRun(_) => return None,
            RowsOf::All => true,
            RowsOf::OfNoRun => false,
        };
        let (last, rows) = self.inner.recent.after(after, of_runs)?;
        let head = LogPlace { seq: last, seen: u32::MAX };
        // Only those that the page takes are copied.
        let rows = rows.iter().map(|row| (LogPlace { seq: row.seq, seen: 0 }, row.events.clone()));
        Some(self.paged(rows, after, limit, head, false))
    }

    /// Makes a page of the entries after a place. `full` means that there are more rows.
    fn paged(
        &self,
        rows: impl IntoIterator<Item = (LogPlace, Vec<Event>)>,
        after: LogPlace,
        limit: u32,
        head: LogPlace,
        full: bool,
    ) -> LogPage {
        let log = &self.inner.log;
        let mut page = LogPage { entries: Vec::new(), cursor: head.cursor(log), more: false };
        let mut last = after;
        for (mut place, events) in rows {
            for event in events {
                place.seen += 1;
                if place <= after {
                    continue;
                }
                if page.entries.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
                    page.more = true;
                    page.cursor = last.cursor(log);
                    return page;
                }
                last = place;
                page.entries.push(Entry { cursor: place.cursor(log), sealed: None, event });
            }
            last = last.max(place);
        }
        if full {
            page.more = true;
            page.cursor = last.cursor(log);
        }
        page
    }
}

impl Conn {
    /// Returns the place at the end of the log: everything before it is committed and can be read.
    pub async fn head(&mut self) -> Result<LogPlace, Error> {
        Ok(place_of_head(self.first(Sql::new("SELECT MAX(seq) AS head FROM log"), Row::int_opt).await?.flatten()))
    }
}

/// Selects the rows of a page. The last two columns of each are the head of the same snapshot, and the last archived
/// row.
pub(super) fn page_of(after: LogPlace, of: RowsOf, limit: u32) -> Sql {
    let sql = Sql::new("SELECT l.seq, l.run_id, l.body, l.at, h.head, h.archived_to FROM (SELECT MAX(seq) AS head, ");
    let sql = sql
        .push(ARCHIVED_TO)
        .push(" AS archived_to FROM log) AS h LEFT JOIN (SELECT ")
        .push(COLUMNS)
        .push(" FROM log WHERE ");
    let sql = match of {
        RowsOf::All => sql,
        RowsOf::OfRun(run) => sql.push("run_id = ").bind(run.0).push(" AND "),
        RowsOf::OfNoRun => sql.push("run_id IS NULL AND "),
    };
    // The row of the cursor itself may have more entries.
    sql.push("seq >= ").bind(after.seq).push(" ORDER BY seq LIMIT ").bind(limit).push(") AS l ON true")
}

/// Selects the number of the last archived row.
const ARCHIVED_TO: &str = "(SELECT up_to FROM archives ORDER BY number DESC LIMIT 1)";

fn place_of_head(head: Option<i64>) -> LogPlace {
    head.map_or(LogPlace::ORIGIN, |seq| LogPlace { seq, seen: u32::MAX })
}

/// The columns that [`read_rows`] reads.
pub(super) const COLUMNS: &str = "seq, run_id, body, at";

/// Reads the events of rows, each with the place before its first event. Events that cannot be read are marked as
/// unreadable.
pub(super) async fn read_rows(conn: &mut Conn, rows: &[Row], form: Form) -> Result<Vec<(LogPlace, Vec<Event>)>, Error> {
    let mut read = Vec::with_capacity(rows.len());
    for (row, (place, events)) in rows.iter().zip(whole_rows(Reader::default(), conn, rows, form).await?) {
        let events = match events {
            Ok(events) => events,
            Err(why) => {
                let (at, run) = (Timestamp(row.int(3)?), row.uuid_opt(1)?.map(RunId));
                tracing::error!(row = row.int(0)?, run = ?run, %why, "a row of the log cannot be read");
                let loose = rows_as::<Loose>(Reader::default(), conn, std::slice::from_ref(row)).await?.pop();
                match loose {
                    Some(Ok(loose)) => loose.unpack(at, run, form),
                    _ => vec![unreadable::event(at, run, &why)],
                }
            }
        };
        read.push((place, events));
    }
    Ok(read)
}

/// Like [`read_rows`], with an error in place of a row of which any part cannot be read.
pub(super) async fn whole_rows(
    reader: Reader,
    conn: &mut Conn,
    rows: &[Row],
    form: Form,
) -> Result<Vec<(LogPlace, Result<Vec<Event>, String>)>, Error> {
    let mut read = Vec::with_capacity(rows.len());
    for (row, body) in rows.iter().zip(rows_as::<Body>(reader, conn, rows).await?) {
        let place = LogPlace { seq: row.int(0)?, seen: 0 };
        let (at, run) = (Timestamp(row.int(3)?), row.uuid_opt(1)?.map(RunId));
        read.push((place, body.map(|body| body.unpack(at, run, form)).map_err(|error| error.to_string())));
    }
    Ok(read)
}

async fn rows_as<T: DeserializeOwned>(
    mut reader: Reader,
    conn: &mut Conn,
    rows: &[Row],
) -> Result<Vec<Result<T, Error>>, Error> {
    for row in rows {
        reader.add(row.uuid_opt(1)?.unwrap_or(Uuid::nil()), row.text(2));
    }
    reader.finish_each("a row of the log", conn, &mut Blobs::default()).await
}
