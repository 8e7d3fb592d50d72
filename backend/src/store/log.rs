//! Reading the log: in commit order, none missing.
//!
//! In PostgreSQL sequence numbers are not commit order, nor are transactions'. A reader stays below the oldest
//! transaction that is under way (`pg_snapshot_xmin`): what lies below it can no longer change.

use serde::de::DeserializeOwned;
use shared::id::RunId;
use shared::log::{Cursor, Entry, Event};
use shared::time::Timestamp;
use uuid::Uuid;

use super::blobs::{Blobs, Reader};
use super::cursor::{Log, Place};
use super::db::{Conn, Row, Sql};
use super::log_row::{Body, Form, Loose};
use super::{Error, LogPage, Store, unreadable};

/// The most entries that one page has.
const MAX_ENTRIES: u32 = 1000;

/// Which rows of the log are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rows {
    All,
    OfRun(RunId),
    OfNoRun,
}

impl Store {
    /// The end of the log.
    pub async fn head(&self) -> Result<Cursor, Error> {
        Ok(self.inner.db.read().await?.head(&self.inner.log).await?.cursor(&self.inner.log))
    }

    /// The place before the first entry.
    #[expect(clippy::unused_async, reason = "where a log has been cut, its origin is in the database")]
    pub async fn origin(&self) -> Result<Cursor, Error> {
        Ok(Place::ORIGIN.cursor(&self.inner.log))
    }

    /// Entries after a place, in commit order, none missing. `None` where the place is not of this log, is in its
    /// future, or is too old: a snapshot is needed then.
    pub async fn log(&self, after: &Cursor, run: Option<RunId>, limit: u32) -> Result<Option<LogPage>, Error> {
        self.page(after, run.map_or(Rows::All, Rows::OfRun), limit).await
    }

    /// The same of those entries alone that are of no run: of people, their sessions and tokens, and of flows. What lies
    /// between them is not read.
    pub async fn log_beside_runs(&self, after: &Cursor, limit: u32) -> Result<Option<LogPage>, Error> {
        self.page(after, Rows::OfNoRun, limit).await
    }

    async fn page(&self, after: &Cursor, of: Rows, limit: u32) -> Result<Option<LogPage>, Error> {
        let log = &self.inner.log;
        let Some(after) = Place::of(&after.0, log) else { return Ok(None) };
        let limit = limit.clamp(1, MAX_ENTRIES);
        if let Some(page) = self.newest(after, of, limit) {
            return Ok(Some(page));
        }
        let mut conn = self.inner.db.read().await?;
        let mut rows = conn.fetch(page_of(log, after, of, limit + 1)).await?;
        let head = rows.first().map(|row| row.int_opt(5)).transpose()?.flatten();
        let head = place_of_head(log, head);
        if (after.xid, after.seq) > (head.xid, head.seq) {
            return Ok(None);
        }
        // Where there is nothing after the place, the head stands alone.
        if matches!(&rows[..], [row] if row.int_opt(1)?.is_none()) {
            rows.clear();
        }
        let full = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        let mut rows = read_rows(&mut conn, &rows, Form::Whole).await?;
        rows.sort_by_key(|(place, _)| *place);
        Ok(Some(self.paged(rows, after, limit, head, full)))
    }

    /// A page of what was committed a moment ago.
    fn newest(&self, after: Place, of: Rows, limit: u32) -> Option<LogPage> {
        let rows = match of {
            Rows::OfRun(_) => return None,
            Rows::All | Rows::OfNoRun => self.inner.newest.after(after),
        };
        let head = Place { xid: 0, seq: rows.last()?.seq, seen: u32::MAX };
        let rows = rows.into_iter().filter(|row| !(row.of_run && matches!(of, Rows::OfNoRun)));
        let rows = rows.map(|row| (Place { xid: 0, seq: row.seq, seen: 0 }, row.events)).collect();
        Some(self.paged(rows, after, limit, head, false))
    }

    /// The entries of rows behind a place; `full`: there are more rows.
    fn paged(&self, rows: Vec<(Place, Vec<Event>)>, after: Place, limit: u32, head: Place, full: bool) -> LogPage {
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
    /// The end of the log: everything before it is committed and can be read.
    pub async fn head(&mut self, log: &Log) -> Result<Place, Error> {
        let row = self.fetch_one(Sql::new(head_of(log))).await?;
        Ok(place_of_head(log, row.map(|row| row.int_opt(0)).transpose()?.flatten()))
    }
}

/// The rows of a page, each with the head of the same moment as the last column.
pub(super) fn page_of(log: &Log, after: Place, of: Rows, limit: u32) -> Sql {
    let sql = Sql::new("SELECT l.place, l.seq, l.run_id, l.body, l.at, h.head FROM (").push(head_of(log));
    let sql = sql.push(") AS h LEFT JOIN (SELECT ").push(columns(log)).push(" FROM log WHERE ");
    let sql = match of {
        Rows::All => sql,
        Rows::OfRun(run) => sql.push("run_id = ").bind(run.0).push(" AND "),
        Rows::OfNoRun => sql.push("run_id IS NULL AND "),
    };
    // The row of the cursor itself may have more entries.
    let sql = if log.postgres {
        sql.push("(xid, seq) >= (")
            .bind(after.xid.to_string())
            .push("::text::xid8, ")
            .bind(after.seq)
            .push(") AND xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid, seq")
    } else {
        sql.push("seq >= ").bind(after.seq).push(" ORDER BY seq")
    };
    sql.push(" LIMIT ").bind(limit).push(") AS l ON true")
}

/// Asks for the head, which is empty where the log is.
fn head_of(log: &Log) -> &'static str {
    if log.postgres {
        "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS head"
    } else {
        "SELECT MAX(seq) AS head FROM log"
    }
}

fn place_of_head(log: &Log, head: Option<i64>) -> Place {
    match head {
        None => Place::ORIGIN,
        Some(xid) if log.postgres => Place { xid, seq: 0, seen: 0 },
        Some(seq) => Place { xid: 0, seq, seen: u32::MAX },
    }
}

/// The columns that [`read_rows`] reads. None may be named `xid`: `ORDER BY xid` would mean it instead of the column of
/// the index, and every page would sort all that comes after it.
pub(super) fn columns(log: &Log) -> &'static str {
    if log.postgres { "xid::text::bigint AS place, seq, run_id, body, at" } else { "0 AS place, seq, run_id, body, at" }
}

/// Reads the events of rows, with the places before the first of each. What cannot be read is marked so.
pub(super) async fn read_rows(conn: &mut Conn, rows: &[Row], form: Form) -> Result<Vec<(Place, Vec<Event>)>, Error> {
    let mut read = Vec::with_capacity(rows.len());
    for (row, (place, events)) in rows.iter().zip(whole_rows(Reader::default(), conn, rows, form).await?) {
        let events = match events {
            Ok(events) => events,
            Err(why) => {
                let (at, run) = (Timestamp(row.int(4)?), row.uuid_opt(2)?.map(RunId));
                tracing::error!(row = row.int(1)?, run = ?run, %why, "a row of the log cannot be read");
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

/// The same, with the reason in the place of a row of which anything cannot be read.
pub(super) async fn whole_rows(
    reader: Reader,
    conn: &mut Conn,
    rows: &[Row],
    form: Form,
) -> Result<Vec<(Place, Result<Vec<Event>, String>)>, Error> {
    let mut read = Vec::with_capacity(rows.len());
    for (row, body) in rows.iter().zip(rows_as::<Body>(reader, conn, rows).await?) {
        let place = Place { xid: row.int(0)?, seq: row.int(1)?, seen: 0 };
        let (at, run) = (Timestamp(row.int(4)?), row.uuid_opt(2)?.map(RunId));
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
        reader.add_column(row.uuid_opt(2)?.unwrap_or(Uuid::nil()), row.text(3));
    }
    reader.finish_each("a row of the log", conn, &mut Blobs::default()).await
}
