//! Reading the log: in commit order, none missing.
//!
//! In PostgreSQL sequence numbers are not commit order, nor are transactions'. A reader stays below the oldest
//! transaction that is under way (`pg_snapshot_xmin`): what lies below it can no longer change.

use shared::id::RunId;
use shared::log::{Cursor, Entry, Event};
use shared::time::Timestamp;
use uuid::Uuid;

use super::blobs::{Blobs, Reader};
use super::cursor::{Log, Place};
use super::db::{Conn, Row, Sql};
use super::log_row::{Body, Form};
use super::{Error, LogPage, Store};

/// The most entries that one page has.
const MAX_ENTRIES: u32 = 1000;

/// Which rows of the log are read.
#[derive(Debug, Clone, Copy)]
enum Rows {
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
        // No transaction: what lies before the head can no longer change.
        let mut conn = self.inner.db.read().await?;
        let head = conn.head(log).await?;
        if (after.xid, after.seq) > (head.xid, head.seq) {
            return Ok(None);
        }
        let sql = Sql::new("SELECT ").push(columns(log)).push(" FROM log WHERE ");
        let sql = match of {
            Rows::All => sql,
            Rows::OfRun(run) => sql.push("run_id = ").bind(run.0).push(" AND "),
            Rows::OfNoRun => sql.push("run_id IS NULL AND "),
        };
        let sql = if log.postgres {
            // The row of the cursor itself may have more entries.
            sql.push("(xid, seq) >= (")
                .bind(after.xid.to_string())
                .push("::text::xid8, ")
                .bind(after.seq)
                .push(") AND xid < ")
                .bind(head.xid.to_string())
                .push("::text::xid8 ORDER BY xid, seq")
        } else {
            sql.push("seq >= ").bind(after.seq).push(" AND seq <= ").bind(head.seq).push(" ORDER BY seq")
        };
        let rows = conn.fetch(sql.push(" LIMIT ").bind(limit + 1)).await?;
        let full = rows.len() > usize::try_from(limit).unwrap_or(usize::MAX);
        let rows = read_rows(&mut conn, &rows, Form::Whole).await?;

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
                    return Ok(Some(page));
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
        Ok(Some(page))
    }
}

impl Conn {
    /// The end of the log: everything before it is committed and can be read.
    pub async fn head(&mut self, log: &Log) -> Result<Place, Error> {
        if log.postgres {
            let sql = Sql::new("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint");
            let xid = self.fetch_one(sql).await?.map(|row| row.int(0)).transpose()?.unwrap_or(0);
            return Ok(Place { xid, seq: 0, seen: 0 });
        }
        let row = self.fetch_one(Sql::new("SELECT MAX(seq) FROM log")).await?;
        let seq = row.map(|row| row.int_opt(0)).transpose()?.flatten().unwrap_or(0);
        Ok(if seq == 0 { Place::ORIGIN } else { Place { xid: 0, seq, seen: u32::MAX } })
    }
}

/// The columns that [`read_rows`] reads.
pub(super) fn columns(log: &Log) -> &'static str {
    if log.postgres { "xid::text::bigint, seq, run_id, body, at" } else { "0, seq, run_id, body, at" }
}

/// Reads the events of rows, with the places before the first of each.
pub(super) async fn read_rows(conn: &mut Conn, rows: &[Row], form: Form) -> Result<Vec<(Place, Vec<Event>)>, Error> {
    let mut reader = Reader::default();
    for row in rows {
        reader.add(row.uuid_opt(2)?.unwrap_or(Uuid::nil()), row.text(3)?)?;
    }
    let bodies: Vec<Body> = reader.finish("a row of the log", conn, &mut Blobs::default()).await?;
    let mut read = Vec::with_capacity(rows.len());
    for (row, body) in rows.iter().zip(bodies) {
        let place = Place { xid: row.int(0)?, seq: row.int(1)?, seen: 0 };
        read.push((place, body.unpack(Timestamp(row.int(4)?), row.uuid_opt(2)?.map(RunId), form)));
    }
    Ok(read)
}
