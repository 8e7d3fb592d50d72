//! The seals of the log, and the log as it is sealed: whole rows, in commit order, each read separately if one of them
//! can no longer be read.
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
use super::page_bytes::{MAX_PAGE_BYTES, PageBytes};
use super::row_mac::{Authenticity, RowKeys, Stored};
use super::{Error, Store};

/// A seal as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSeal {
    /// From 1, without gaps.
    pub number: u64,
    /// The last row that it holds.
    pub to: Cursor,
    /// What is signed, to the byte.
    pub body: String,
    /// By whom is in the body.
    pub signature: Vec<u8>,
    /// 32 bytes for each entry, in order.
    pub hashes: Vec<u8>,
}

/// A row of the log with its entries, as they are sealed.
#[derive(Debug, Clone)]
pub struct RecordRow {
    /// Its place, as seals name it.
    pub row: Cursor,
    /// The number of the row in the log.
    pub number: i64,
    /// The run that it is of.
    pub run_id: Option<RunId>,
    /// Whether it is as a server with the key wrote it.
    pub mac: Authenticity,
    /// Its entries with their places, or why they can no longer be read.
    pub entries: Result<Vec<(Cursor, Event)>, String>,
}

/// Rows of the log, in commit order.
#[derive(Debug, Clone)]
pub struct RecordPage {
    /// The rows, at most as many as were asked for, and fewer where they are long.
    pub rows: Vec<RecordRow>,
    /// Whether there are more.
    pub more: bool,
}

impl Store {
    /// Rows behind one row and up to another (the head, where none is given), none missing. After the origin: from the
    /// first row that there is. `None` where a place is not of this log.
    pub async fn record(
        &self,
        after: &Cursor,
        up_to: Option<&Cursor>,
        limit: u32,
    ) -> Result<Option<RecordPage>, Error> {
        let log = &self.inner.log;
        let Some(after) = LogPlace::of(&after.0, log) else { return Ok(None) };
        // Rows and the large values that they refer to are of one moment: archived runs lose both.
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
        let (mut read, mut bytes, mut left) = (Vec::new(), PageBytes::of_log(MAX_PAGE_BYTES), &rows[..]);
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
            // A column that holds something else is not what was written.
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

    /// The newest seal.
    pub async fn last_seal(&self) -> Result<Option<StoredSeal>, Error> {
        let sql = Sql::new(SELECT).push(" ORDER BY number DESC LIMIT 1");
        let row = self.inner.db.read().await?.fetch_one(sql).await?;
        row.map(|row| stored(&self.inner.log, &row)).transpose()
    }

    /// Seals in order, from behind a number on.
    pub async fn seals(&self, after: u64, limit: u32) -> Result<Vec<StoredSeal>, Error> {
        let sql = Sql::new(SELECT).push(" WHERE number > ").bind(signed(after)).push(" ORDER BY number LIMIT ");
        let rows = self.inner.db.read().await?.fetch(sql.bind(limit)).await?;
        rows.iter().map(|row| stored(&self.inner.log, row)).collect()
    }

    /// The numbers of the seals that hold these rows of the log; none for one that waits for its seal.
    pub async fn seals_of_rows(&self, rows: &[i64]) -> Result<Vec<Option<u64>>, Error> {
        let places: Vec<LogPlace> = rows.iter().map(|seq| LogPlace { seq: *seq, seen: 0 }).collect();
        let mut conn = self.inner.db.read().await?;
        let mut numbers = Vec::with_capacity(rows.len());
        for places in places.chunks(PLACES_AT_ONCE) {
            numbers.extend(conn.seal_numbers(places).await?);
        }
        Ok(numbers)
    }

    /// Adds a seal, unless another server was first with its number.
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
    /// The numbers of the seals that hold these places.
    pub(super) async fn seal_numbers(&mut self, places: &[LogPlace]) -> Result<Vec<Option<u64>>, Error> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let rows = places.iter().enumerate().map(|(index, place)| {
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            vec![Arg::from(index), place.seq.into()]
        });
        let sql =
            Sql::new("SELECT (SELECT s.number FROM seals s WHERE s.seq >= k.column2 ORDER BY s.seq LIMIT 1) FROM (")
                .values(rows)
                .push(") AS k ORDER BY k.column1");
        let rows = self.fetch(sql).await?;
        rows.iter().map(|row| Ok(row.int_opt(0)?.and_then(|number| u64::try_from(number).ok()))).collect()
    }
}

/// How many rows one statement looks up.
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

/// Rows behind `after` and not behind `up_to`. Nothing lies before the origin, whatever its number.
pub(super) fn between(after: LogPlace, up_to: LogPlace) -> Sql {
    let sql = Sql::new("SELECT ").push(COLUMNS).push(", commit_id, mac FROM log WHERE seq <= ").bind(up_to.seq);
    let sql = if after == LogPlace::ORIGIN { sql } else { sql.push(" AND seq > ").bind(after.seq) };
    sql.push(" ORDER BY seq")
}

fn checked(keys: &RowKeys, generation: &str, row: &Row, seq: i64) -> Result<Authenticity, DriverError> {
    let (run, body, at, commit) = (row.uuid_opt(1)?, row.text(2)?, row.int(3)?, row.uuid(4)?);
    Ok(keys.check(&Stored { generation, seq, commit, at, run, body: &body }, row.blob_opt(5)?.as_deref()))
}
