//! Opaque cursors: places in the log, and places in lists.
//!
//! A place in the log is the number of a row and the number of its entries that were seen. The cursor also has the kind
//! of database and the generation of the log, so that a cursor of another log is recognised. Between them is a 0:
//! cursors of PostgreSQL in schema 1 have the id of a transaction there, and are refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use shared::log::Cursor;
use uuid::Uuid;

use super::Error;
use super::db::{Arg, DatabaseKind, Sql};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogPlace {
    /// The number of the row in the log; 0 before the first.
    pub seq: i64,
    /// The number of entries of the row that were seen.
    pub seen: u32,
}

impl LogPlace {
    /// The place before the first entry.
    pub const ORIGIN: Self = Self { seq: 0, seen: 0 };

    pub fn cursor(self, log: &Log) -> Cursor {
        let kind = log.letter();
        Cursor(format!("{kind}{}.0.{:x}.{:x}", log.generation, self.seq, self.seen))
    }

    /// Reads a cursor. `None` if it belongs to another log or is malformed.
    pub fn of(cursor: &str, log: &Log) -> Option<Self> {
        let rest = cursor.strip_prefix(log.letter())?;
        let mut parts = rest.split('.');
        if parts.next()? != log.generation || parts.next()? != "0" {
            return None;
        }
        let seq = i64::from_str_radix(parts.next()?, 16).ok()?;
        let seen = u32::from_str_radix(parts.next()?, 16).ok()?;
        (parts.next().is_none() && seq >= 0).then_some(Self { seq, seen })
    }
}

/// The identity of a log.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub database: DatabaseKind,
    pub generation: String,
}

impl Log {
    /// The first letter of its cursors.
    fn letter(&self) -> char {
        self.database.either('s', 'p')
    }
}

/// A place in a list that is ordered by time and id, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListPlace {
    pub at: i64,
    pub id: Uuid,
}

impl ListPlace {
    pub fn encode(self) -> String {
        let mut bytes = self.at.to_be_bytes().to_vec();
        bytes.extend(self.id.as_bytes());
        BASE64.encode(bytes)
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text).ok()?;
        let (at, id) = bytes.split_at_checked(8)?;
        Some(Self { at: i64::from_be_bytes(at.try_into().ok()?), id: Uuid::from_slice(id).ok()? })
    }

    /// Reads the cursor at which a page begins. A malformed one is an error, since an empty page would look like the
    /// end of the list.
    pub fn of(cursor: Option<&str>) -> Result<Option<Self>, Error> {
        cursor.map(|text| Self::decode(text).ok_or(Error::Cursor)).transpose()
    }

    /// Adds the condition that rows come after this place in the list.
    pub(super) fn condition(self, sql: Sql, at: &str, id: &str) -> Sql {
        sql.push(" AND (")
            .push(at)
            .push(", ")
            .push(id)
            .push(") < (")
            .list([Arg::from(self.at), Arg::from(self.id)])
            .push(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_another_log_is_none() {
        let log = Log { database: DatabaseKind::Sqlite, generation: "aa".to_owned() };
        let other = Log { database: DatabaseKind::Sqlite, generation: "bb".to_owned() };
        let place = LogPlace { seq: 77, seen: 3 };
        let cursor = place.cursor(&log);
        assert_eq!(LogPlace::of(&cursor.0, &log), Some(place));
        assert_eq!(LogPlace::of(&cursor.0, &other), None);
        assert_eq!(LogPlace::of(&cursor.0, &Log { database: DatabaseKind::Postgres, ..log.clone() }), None);
        for garbage in ["", "s", "saa", "saa.0.1", "saa.0.-1.0", "saa.0.1.2.3", "💥", "saa.0.zz.1", "saa.5.1.1"] {
            assert_eq!(LogPlace::of(garbage, &log), None, "{garbage}");
        }
    }

    #[test]
    fn a_place_in_a_list_comes_back() {
        let place = ListPlace { at: 1_700_000_000_000_000, id: Uuid::from_u128(7) };
        assert_eq!(ListPlace::of(Some(&place.encode())).unwrap(), Some(place));
        assert!(matches!(ListPlace::of(Some("garbage")), Err(Error::Cursor)));
    }
}
