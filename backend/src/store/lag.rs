//! The lag of the readers of the log: how long commits have waited for them.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use shared::log::Cursor;
use shared::time::Timestamp;

use super::cursor::LogPlace;
use super::db::{Conn, Row, Sql};
use super::{Error, Store};

/// The place that each reader of this process has reached.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<BTreeMap<&'static str, LogPlace>>);

impl Store {
    /// Records the place that a reader of the log has reached.
    pub fn has_read(&self, reader: &'static str, to: &Cursor) {
        if let Some(place) = self.place(to) {
            self.inner.readers.0.lock().insert(reader, place);
        }
    }

    /// Returns how long the oldest entry that a reader has not reached has waited. Covers each reader of this process,
    /// and the seals and the index, whichever server makes them.
    pub async fn lag(&self) -> Result<BTreeMap<&'static str, Duration>, Error> {
        let mut places = self.inner.readers.0.lock().clone();
        let store = self.clone();
        let read = move |mut conn: Conn| async move {
            let sealed = conn.first(Sql::new("SELECT MAX(seq) FROM seals"), Row::int_opt).await?.flatten();
            places.insert("seals", LogPlace { seq: sealed.unwrap_or(0), seen: u32::MAX });
            let now = store.inner.clock.now();
            let mut lag = BTreeMap::new();
            match conn.index_waits_at().await? {
                Some(place) => places.insert("index", place),
                None => lag.insert("index", Duration::ZERO).and(None),
            };
            for (reader, place) in places {
                let oldest = conn.oldest_after(place).await?;
                lag.insert(reader, oldest.map_or(Duration::ZERO, |at| now.since(at)));
            }
            Ok(lag)
        };
        self.inner.db.read_as_one(read).await
    }
}

impl Conn {
    /// Returns when the first row after a place was written.
    async fn oldest_after(&mut self, place: LogPlace) -> Result<Option<Timestamp>, Error> {
        let sql = Sql::new("SELECT at FROM log WHERE seq > ").bind(place.seq).push(" ORDER BY seq LIMIT 1");
        Ok(self.first(sql, Row::int).await?.map(Timestamp))
    }
}
