//! The number of rows of each table, for metrics. Large tables are estimated, so that counting does not read years of
//! data: in PostgreSQL from its statistics, in SQLite from the numbers of the first and the last row.

use std::collections::BTreeMap;

use super::db::{Conn, Row, Sql};
use super::{Error, Store};

/// A table with this many rows is estimated, not counted.
const LARGE: i64 = 100_000;
/// The tables whose row numbers say nothing about how many there are.
const OTHERS: [&str; 5] = ["flows", "tasks", "users", "credentials", "grants"];
/// The tables that grow at one end and shrink at the other, so that their row numbers have hardly any gaps.
const IN_ORDER: [&str; 10] =
    ["runs", "reviews", "steps", "log", "seals", "blobs", "feedback", "idempotency", "deliveries", "archives"];

impl Store {
    /// Returns the number of rows of each table. Those of large tables are estimates.
    pub async fn counts(&self) -> Result<BTreeMap<&'static str, u64>, Error> {
        let read = |mut conn: Conn| async move {
            let mut counts = BTreeMap::new();
            for table in OTHERS.into_iter().chain(IN_ORDER) {
                let count = match conn.estimate(table).await? {
                    Some(rows) if rows >= LARGE => rows,
                    _ => conn.first(Sql::new("SELECT COUNT(*) FROM ").push(table), Row::int).await?.unwrap_or(0),
                };
                counts.insert(table, u64::try_from(count).unwrap_or(0));
            }
            Ok(counts)
        };
        self.inner.db.read_as_one(read).await
    }
}

impl Conn {
    async fn estimate(&mut self, table: &'static str) -> Result<Option<i64>, Error> {
        if self.is_postgres() {
            let sql = Sql::new("SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE oid = to_regclass(");
            return Ok(self.first(sql.bind(table).push(")"), Row::int).await?);
        }
        if !IN_ORDER.contains(&table) {
            return Ok(None);
        }
        // Two statements, each a single look-up in the table: one statement for both would read the whole table.
        let last = self.first(Sql::new("SELECT MAX(rowid) FROM ").push(table), Row::int_opt).await?.flatten();
        let first = self.first(Sql::new("SELECT MIN(rowid) FROM ").push(table), Row::int_opt).await?.flatten();
        Ok(last.zip(first).map(|(last, first)| last - first + 1))
    }
}
