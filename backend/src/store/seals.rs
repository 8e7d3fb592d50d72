//! The seals of the log, and the log in the form that is sealed: whole rows in commit order, where a row that cannot be
//! read does not affect the others.
//!
//! `crate::audit` defines the meaning of a seal; here, it is bytes with a number and a place.

use shared::id::RunId;
use shared::log::{Cursor, Event};

use super::blobs::Reader;
use super::cursor::{Log, LogPlace};
use super::db::{Arg, Conn, Row, Sql};
use super::driver_error::DriverError;
use super::log::{COLUMNS, whole_rows};
use super::log_row::Form;
use super::page_bytes::PageBytes;
use super::row_mac::{Authenticity, RowKeys, Stored};
use super::{Error, Store};

/// A stored seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSeal {
    /// The number of the seal: from 1, without gaps.
    pub number: u64,
    /// The cursor of the last row that it covers.
    pub to: Cursor,
    /// The text that is signed, byte for byte.
    pub body: String,
    /// The signature. The body says who signed.
    pub signature: Vec<u8>,
    /// The hashes of the entries in order, 32 bytes each.
    pub hashes: Vec<u8>,
}

/// A row of the log with its entries, in the form that is sealed.
#[derive(Debug, Clone)]
pub struct RecordRow {
    /// The cursor of the row, as seals name it.
    pub row: Cursor,
    /// The number of the row in the log.
    pub number: i64,
    /// The run of the row. `None` if it belongs to no run.
    pub run_id: Option<RunId>,
    /// Whether the row is unchanged since a server with the key wrote it.
    pub mac: Authenticity,
    /// The entries with their cursors, or the reason why they cannot be read.
    pub entries: Result<Vec<(Cursor, Event)>, String>,
}

/// A page of log rows, in commit order.
#[derive(Debug, Clone)]
pub struct RecordPage {
    /// The rows: at most as many as were asked for, fewer if they are large.
    pub rows: Vec<RecordRow>,
    /// Whether there are more rows.
    pub more: bool,
}

impl Store {
    /// Returns the rows after one row and up to another (`None`: up to the head), without gaps. From the origin, it
    /// begins with the first existing row. `None` if a cursor belongs to another log.
    pub async fn record(
        &self,
        after: &Cursor,
        up_to: Option<&Cursor>,
        limit: u32,
    ) -> Result<Option<RecordPage>, Error> {
        let log = &self.inner.log;
        let Some(after) = LogPlace::of(&after.0, log) else { return Ok(None) };
        // Rows and the large values that they refer to are read in one snapshot, since archiving removes both.
        let mut conn = self.inner.db.snapshot().await?;
        let head = conn.head().await?;
        let up_to = match up_to.map(|place| LogPlace::of(&place.0, log)) {
            Some(Some(place)) => place.min(head),
            Some(None) => return Ok(None),
            None => head,
        };
        let mut rows = conn.fetch(between(after, up_to).push(" LIMIT ").bind(limit + 1)).await?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut more = rows.len() > limit;
        rows.truncate(limit);
        let (mut read, mut bytes, mut left) = (Vec::new(), PageBytes::of_log(), &rows[..]);
        'page: while let Some(next) = bytes.next(&mut left) {
            for (row, (place, events)) in
                next.iter().zip(whole_rows(Reader::verifying(), &mut conn, next, Form::Sealed).await?)
            {
                if !bytes.takes(&events.as_deref().unwrap_or_default())? {
                    more = true;
                    break 'page;
                }
                read.push(self.record_row(row, place, events)?);
            }
        }
        conn.rollback().await?;
        Ok(Some(RecordPage { rows: read, more }))
    }

    fn record_row(&self, row: &Row, place: LogPlace, events: Result<Vec<Event>, String>) -> Result<RecordRow, Error> {
        let log = &self.inner.log;
        let run = row.uuid_opt(1)?;
        let mac = match &self.inner.row_keys {
            None => Authenticity::Unchecked,
            // A column with another type is not what was written.
            Some(keys) => checked(keys, &log.generation, row, place.seq).unwrap_or(Authenticity::Wrong),
        };
        let entries = events.map(|events| {
            let mut next = place;
            let placed = events.into_iter().map(|event| {
                next.seen += 1;
                (next.cursor(log), event)
            });
            placed.collect()
        });
        Ok(RecordRow { row: place.cursor(log), number: place.seq, run_id: run.map(RunId), mac, entries })
    }

    /// Returns the newest seal, if there is one.
    pub async fn last_seal(&self) -> Result<Option<StoredSeal>, Error> {
        let sql = Sql::new(SELECT).push(" ORDER BY number DESC LIMIT 1");
        let row = self.inner.db.read().await?.fetch_one(sql).await?;
        row.map(|row| stored(&self.inner.log, &row)).transpose()
    }

    /// Returns up to `limit` seals with a number above `after`, in order.
    pub async fn seals(&self, after: u64, limit: u32) -> Result<Vec<StoredSeal>, Error> {
        let sql = Sql::new(SELECT).push(" WHERE number > ").bind(signed(after)).push(" ORDER BY number LIMIT ");
        let rows = self.inner.db.read().await?.fetch(sql.bind(limit)).await?;
        rows.iter().map(|row| stored(&self.inner.log, row)).collect()
    }

    /// Returns for each log row the number of the seal that covers it. `None` for a row that is not sealed yet.
    pub async fn seals_of_rows(&self, rows: &[i64]) -> Result<Vec<Option<u64>>, Error> {
        let places: Vec<LogPlace> = rows.iter().map(|seq| LogPlace { seq: *seq, seen: 0 }).collect();
        let mut conn = self.inner.db.read().await?;
        let mut numbers = Vec::with_capacity(rows.len());
        for places in places.chunks(PLACES_AT_ONCE) {
            numbers.extend(conn.seal_numbers(places).await?);
        }
        Ok(numbers)
    }

    /// Adds a seal. Returns `false` if another server has added one with this number.
    pub async fn add_seal(&self, seal: &StoredSeal) -> Result<bool, Error> {
        let place = LogPlace::of(&seal.to.0, &self.inner.log)
            .ok_or_else(|| Error::Stored(format!("seal {} is of another log", seal.number)))?;
        let row = vec![
            Arg::from(signed(seal.number)),
            place.seq.into(),
            seal.body.as_str().into(),
            Arg::Blob(Some(seal.signature.clone())),
            Arg::Blob(Some(seal.hashes.clone())),
        ];
        let sql = Sql::new("INSERT INTO seals (number, seq, body, signature, hashes) ")
            .values([row])
            .push(" ON CONFLICT (number) DO NOTHING");
        Ok(self.inner.db.execute(sql).await? > 0)
    }
}

impl Conn {
    /// Returns for each place the number of the seal that covers it, if any.
    pub(super) async fn seal_numbers(&mut self, places: &[LogPlace]) -> Result<Vec<Option<u64>>, Error> {
        let rows = (0_i64..).zip(places).map(|(index, place)| vec![Arg::from(index), place.seq.into()]);
        let sql =
            Sql::new("SELECT (SELECT s.number FROM seals s WHERE s.seq >= k.column2 ORDER BY s.seq LIMIT 1) FROM (")
                .values(rows)
                .push(") AS k ORDER BY k.column1");
        let rows = self.fetch(sql).await?;
        rows.iter().map(|row| Ok(row.int_opt(0)?.and_then(|number| u64::try_from(number).ok()))).collect()
    }
}

/// The number of rows that one statement looks up.
const PLACES_AT_ONCE: usize = 500;

const SELECT: &str = "SELECT number, seq, body, signature, hashes FROM seals";

fn stored(log: &Log, row: &Row) -> Result<StoredSeal, Error> {
    let place = LogPlace { seq: row.int(1)?, seen: 0 };
    Ok(StoredSeal {
        number: u64::try_from(row.int(0)?).unwrap_or(0),
        to: place.cursor(log),
        body: row.text(2)?,
        signature: row.blob(3)?,
        hashes: row.blob(4)?,
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Selects the rows after `after` and up to `up_to`. After the origin come all rows, whatever their numbers.
pub(super) fn between(after: LogPlace, up_to: LogPlace) -> Sql {
    let sql = Sql::new("SELECT ").push(COLUMNS).push(", commit_id, mac FROM log WHERE seq <= ").bind(up_to.seq);
    let sql = if after == LogPlace::ORIGIN { sql } else { sql.push(" AND seq > ").bind(after.seq) };
    sql.push(" ORDER BY seq")
}

fn checked(keys: &RowKeys, generation: &str, row: &Row, seq: i64) -> Result<Authenticity, DriverError> {
    let (run, body, at, commit) = (row.uuid_opt(1)?, row.text(2)?, row.int(3)?, row.uuid(4)?);
    Ok(keys.check(&Stored { generation, seq, commit, at, run, body: &body }, row.blob_opt(5)?.as_deref()))
}
