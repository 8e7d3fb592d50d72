//! Places in the two orders of pending reviews, and the key of a row in the queue.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use shared::inbox::Urgency;
use uuid::Uuid;

use super::Error;
use super::cursor::ListPlace;
use super::db::{Arg, Row, Sql};

/// A place in one of the orders.
pub(super) trait QueuePlace: Clone {
    /// The columns of `ORDER BY`, with their directions.
    const ORDER: &'static str;
    /// The columns that make up a place, except for the id.
    const COLUMNS: &'static str;

    /// Reads the cursor at which a page begins.
    fn of(cursor: Option<&str>) -> Result<Option<Self>, Error>;
    /// Reads a place from a row; its columns begin at `at`.
    fn read(row: &Row, at: usize) -> Result<Self, Error>;
    /// Adds the condition that reviews come after this place.
    fn behind(self, sql: Sql) -> Sql;
    fn encode(self) -> String;
}

impl QueuePlace for ListPlace {
    const ORDER: &'static str = "v.created_at DESC, v.id DESC";
    const COLUMNS: &'static str = "v.created_at";

    fn of(cursor: Option<&str>) -> Result<Option<Self>, Error> {
        Self::of(cursor)
    }

    fn read(row: &Row, at: usize) -> Result<Self, Error> {
        Ok(Self { id: row.uuid(0)?, at: row.int(at)? })
    }

    fn behind(self, sql: Sql) -> Sql {
        self.condition(sql, "v.created_at", "v.id")
    }

    fn encode(self) -> String {
        self.encode()
    }
}

/// A place in the order of urgency: deadline, rank of the severity, time of the request, and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuePosition([i64; 3], Uuid);

impl QueuePlace for QueuePosition {
    const ORDER: &'static str = "v.due, v.severity_rank, v.created_at, v.id";
    const COLUMNS: &'static str = "v.due, v.severity_rank, v.created_at";

    fn of(cursor: Option<&str>) -> Result<Option<Self>, Error> {
        cursor.map(|text| Self::decode(text).ok_or(Error::Cursor)).transpose()
    }

    fn read(row: &Row, at: usize) -> Result<Self, Error> {
        Ok(Self([row.int(at)?, row.int(at + 1)?, row.int(at + 2)?], row.uuid(0)?))
    }

    fn behind(self, sql: Sql) -> Sql {
        let Self([due, rank, at], id) = self;
        let sql = sql.push(" AND (v.due, v.severity_rank, v.created_at, v.id) > (");
        sql.list([Arg::from(due), rank.into(), at.into(), id.into()]).push(")")
    }

    fn encode(self) -> String {
        let mut bytes: Vec<u8> = self.0.iter().flat_map(|number| number.to_be_bytes()).collect();
        bytes.extend(self.1.as_bytes());
        BASE64.encode(bytes)
    }
}

impl QueuePosition {
    fn decode(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text).ok()?;
        let (numbers, id) = bytes.split_at_checked(24)?;
        let mut place = [0; 3];
        for (number, bytes) in place.iter_mut().zip(numbers.chunks_exact(8)) {
            *number = i64::from_be_bytes(bytes.try_into().ok()?);
        }
        Some(Self(place, Uuid::from_slice(id).ok()?))
    }
}

/// The key of a row in the queue: deadline, rank of the severity, time of the request, id.
pub(super) fn queue_key(place: Urgency) -> Vec<Arg> {
    let Urgency { due, severity, asked, id } = place;
    vec![due.0.into(), Arg::from(i64::from(severity)), asked.0.into(), id.0.into()]
}
