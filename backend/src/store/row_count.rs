//! The number of rows of each table, for metrics. Large tables are estimated, so that counting does not read years of
//! data: in PostgreSQL from its statistics, in SQLite from the numbers of the first and the last row.

use std::collections::BTreeMap;

use super::db::{Conn, Sql};
use super::{Error, Store};

/// From how many rows on an estimate is enough.
const LARGE: i64 = 100_000;
/// The tables that are counted.
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
/// Those of them that only grow at one end, and shrink at the other: their numbers have hardly a gap.
const IN_ORDER: [&str; 10] =
    ["runs", "reviews", "steps", "log", "seals", "blobs", "feedback", "idempotency", "deliveries", "archives"];

impl Store {
    /// How many rows each table has; of large ones an estimate.
    pub async fn counts(&self) -> Result<BTreeMap<&'static str, u64>, Error> {
        let mut conn = self.inner.db.read().await?;
        let mut counts = BTreeMap::new();
        for table in TABLES {
            let count = match conn.estimate(table).await? {
                Some(rows) if rows >= LARGE => rows,
                _ => conn.number(Sql::new("SELECT COUNT(*) FROM ").push(table)).await?.unwrap_or(0),
            };
            counts.insert(table, u64::try_from(count).unwrap_or(0));
        }
        Ok(counts)
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
        // Apart: each is one step along the table, and both together would read all of it.
        let last = self.number(Sql::new("SELECT MAX(rowid) FROM ").push(table)).await?;
        let first = self.number(Sql::new("SELECT MIN(rowid) FROM ").push(table)).await?;
        Ok(last.zip(first).map(|(last, first)| last - first + 1))
    }

    async fn number(&mut self, sql: Sql) -> Result<Option<i64>, Error> {
        Ok(self.fetch_one(sql).await?.map(|row| row.int_opt(0)).transpose()?.flatten())
    }
}
