//! The number of rows of each table, for metrics. Large tables are estimated, so that counting does not read years of
//! data: in PostgreSQL from its statistics, in SQLite from the numbers of the first and the last row.

use std::collections::BTreeMap;

use super::db::{Conn, Sql};
use super::{Error, Store};

/// A table with this many rows is estimated, not counted.
const LARGE: i64 = 100_000;
const TABLES: [&str; 15] = [
    "flows",
    "runs",
    "reviews",
    "steps",
    "tasks",
    "log",
    "seals",
    "blobs",
    "users",
    "credentials",
    "grants",
    "feedback",
    "idempotency",
    "deliveries",
    "archives",
];
/// The tables that grow at one end and shrink at the other, so that their row numbers have hardly any gaps.
const IN_ORDER: [&str; 10] =
    ["runs", "reviews", "steps", "log", "seals", "blobs", "feedback", "idempotency", "deliveries", "archives"];

impl Store {
    /// Returns the number of rows of each table. Those of large tables are estimates.
    pub async fn counts(&self) -> Result<BTreeMap<&'static str, u64>, Error> {
        let read = |mut conn: Conn| async move {
            let mut counts = BTreeMap::new();
            for table in TABLES {
                let count = match conn.estimate(table).await? {
                    Some(rows) if rows >= LARGE => rows,
                    _ => conn.number(Sql::new("SELECT COUNT(*) FROM ").push(table)).await?.unwrap_or(0),
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
            return self.number(sql.bind(table.to_owned()).push(")")).await;
        }
        if !IN_ORDER.contains(&table) {
            return Ok(None);
        }
        // Two statements, each a single look-up in the table: one statement for both would read the whole table.
        let last = self.number(Sql::new("SELECT MAX(rowid) FROM ").push(table)).await?;
        let first = self.number(Sql::new("SELECT MIN(rowid) FROM ").push(table)).await?;
        Ok(last.zip(first).map(|(last, first)| last - first + 1))
    }

    async fn number(&mut self, sql: Sql) -> Result<Option<i64>, Error> {
        Ok(self.fetch_one(sql).await?.map(|row| row.int_opt(0)).transpose()?.flatten())
    }
}
