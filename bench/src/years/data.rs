//! Creates the log of years: copies of a finished and of a waiting run in the order of time, each row of the log with
//! its HMAC. The server seals and indexes these rows like its own.

use std::sync::Arc;

use anyhow::{Context, Result};
use backend::audit::SealKey;
use backend::clock::{Clock as _, SystemClock};
use backend::store::{RowContent, RowKeys, Store, StoreOptions};
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::json;
use shared::time::Timestamp;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use uuid::Uuid;

use super::copies::{Rows, TABLES, Template, WORDS};
use crate::server::Data;
use crate::store;

/// The flow of all runs, which asks a person about a text.
pub const FLOW: &str = r#"{"id": "years", "input": {"type": "object", "properties": {"text": {"type": "string"}}},
    "nodes": {"ask": {"human": {"prompt": "{{ input.text }}", "options": [{"id": "yes", "label": "Yes"}]}}}}"#;
/// The age of the oldest run, in microseconds.
const YEARS: i64 = 3 * 365 * 86_400 * 1_000_000;
/// The number of entries for each waiting run.
const WAITING: usize = 100;
/// The number of runs that are written at once.
const CHUNK: usize = 5_000;
/// The texts of runs combine one of `SUBJECTS` with one of `NAMES`; a few runs have a rare word too.
const SUBJECTS: [&str; 7] = ["Refund", "Newsletter", "Contract", "Deployment", "Invoice", "Payment", "Answer"];
const NAMES: [&str; 11] =
    ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Ginkgo", "Hazel", "Ironwood", "Juniper", "Larch"];
/// About how many runs have the rare word. It does not grow with the log, so that pages of results stay comparable.
const RARE: usize = 20;

/// The database that is filled.
enum Target {
    Sqlite(Connection),
    Postgres(PgConnection),
}

/// The state for numbering and authenticating rows of the log.
struct Log {
    keys: RowKeys,
    generation: String,
    /// The number (`seq`) of the last row.
    last: i64,
}

/// Fills the database of a stopped server that has been started once. Returns the time in the middle of the log.
pub async fn make(data: &Data, entries: usize) -> Result<String> {
    let [finished, waiting] = templates().await?;
    let mut target = match data.database() {
        Some(url) => Target::Postgres(PgConnection::connect(url).await?),
        None => Target::Sqlite(Connection::open(data.path().join("countersign.db"))?),
    };
    let key = SealKey::find(&data.path().join("seal.key")).context("the server has made no key")?;
    let (generation, last) = target.place().await?;
    let mut log = Log { keys: key.row_keys(), generation, last };
    let pending = entries / WAITING;
    let runs = (entries.saturating_sub(pending * waiting.entries) / finished.entries) + pending;
    let step = YEARS / i64::try_from(runs)?;
    let begin = SystemClock.now().0 - YEARS;
    target.put("classes", "class, outline", waiting.classes.clone()).await?;
    let rare_step = (runs / RARE).max(1);
    let mut number = 0;
    while number < runs {
        let mut rows: Rows = Default::default();
        for number in number..(number + CHUNK).min(runs) {
            // The newest runs wait.
            let template = if number >= runs - pending { &waiting } else { &finished };
            let rare = if number % rare_step == 7 % rare_step { " zebra" } else { "" };
            let words = format!("{} {number} for {}{rare}", SUBJECTS[number % 7], NAMES[number % 11]);
            let at = begin + i64::try_from(number)? * step;
            for (copied, rows) in template.copy(number, at, &words).into_iter().zip(&mut rows) {
                rows.extend(copied);
            }
        }
        target.write(rows, &mut log).await?;
        number += CHUNK;
    }
    target.finish(log.last).await?;
    Ok(Timestamp(begin + YEARS / 2).to_string())
}

/// Lets the store make a finished and a waiting run, and returns them as templates.
async fn templates() -> Result<[Template; 2]> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("template.db");
    let store = Store::open(StoreOptions::new(format!("sqlite:{}", path.display()), Arc::new(SystemClock))).await?;
    store::save_flow(&store, FLOW).await?;
    let input = || json!({ "text": WORDS }).as_object().cloned().unwrap_or_default();
    let (finished, review) = store::launch(&store, "years", input()).await?;
    store::decide(&store, review).await?;
    let (waiting, asked) = store::launch(&store, "years", input()).await?;
    store.close().await;
    let conn = Connection::open(&path)?;
    Ok([Template::of(&conn, finished.0, review.0)?, Template::of(&conn, waiting.0, asked.0)?])
}

impl Log {
    /// Adds the next number and the HMAC to a row of the log.
    fn row(&mut self, row: Vec<Cell>) -> Result<Vec<Cell>> {
        self.last += 1;
        let [Cell::Blob(commit), Cell::Integer(at), Cell::Blob(run), Cell::Text(body)] = &row[..] else {
            anyhow::bail!("a row of the log has other columns")
        };
        let run = Some(Uuid::from_slice(run)?);
        let commit = Uuid::from_slice(commit)?;
        let content = RowContent { generation: &self.generation, seq: self.last, commit, at: *at, run, body };
        let mac = Cell::Blob(self.keys.mac(&content));
        Ok([Cell::Integer(self.last)].into_iter().chain(row).chain([mac]).collect())
    }
}

impl Target {
    /// Returns the generation of the log, and the number of its last row.
    async fn place(&mut self) -> Result<(String, i64)> {
        let sql = "SELECT generation, (SELECT CAST(MAX(seq) AS BIGINT) FROM log) FROM meta";
        Ok(match self {
            Self::Sqlite(conn) => {
                // No durability needed: after a crash, the whole database is discarded.
                conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")?;
                conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?
            }
            Self::Postgres(conn) => {
                let row = sqlx::query(AssertSqlSafe(sql)).fetch_one(conn).await?;
                (row.try_get(0)?, row.try_get(1)?)
            }
        })
    }

    async fn write(&mut self, rows: Rows, log: &mut Log) -> Result<()> {
        if let Self::Sqlite(conn) = self {
            conn.execute_batch("BEGIN")?;
        }
        for ((table, columns, _), rows) in TABLES.into_iter().zip(rows) {
            let of_log = table == "log";
            let columns = if of_log { format!("seq, {columns}, mac") } else { columns.to_owned() };
            let rows: Vec<_> =
                if of_log { rows.into_iter().map(|row| log.row(row)).collect::<Result<_>>()? } else { rows };
            self.put(table, &columns, rows).await?;
        }
        if let Self::Sqlite(conn) = self {
            conn.execute_batch("COMMIT")?;
        }
        Ok(())
    }

    async fn put(&mut self, table: &str, columns: &str, rows: Vec<Vec<Cell>>) -> Result<()> {
        match self {
            Self::Sqlite(conn) => {
                let places = vec!["?"; columns.split(',').count()].join(", ");
                let mut insert = conn.prepare_cached(&format!("INSERT INTO {table} ({columns}) VALUES ({places})"))?;
                for row in rows {
                    insert.execute(rusqlite::params_from_iter(row))?;
                }
            }
            Self::Postgres(conn) => {
                let text: String = rows.into_iter().map(line).collect();
                let mut copy = conn.copy_in_raw(&format!("COPY {table} ({columns}) FROM STDIN")).await?;
                copy.send(text.into_bytes()).await?;
                copy.finish().await?;
            }
        }
        Ok(())
    }

    async fn finish(self, last: i64) -> Result<()> {
        match self {
            Self::Sqlite(conn) => conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?,
            Self::Postgres(mut conn) => {
                let next = format!("SELECT setval(pg_get_serial_sequence('log', 'seq'), {last})");
                sqlx::raw_sql(AssertSqlSafe(next)).execute(&mut conn).await?;
                // Autovacuum would do this after a while.
                sqlx::raw_sql("VACUUM ANALYZE").execute(&mut conn).await?;
                conn.close().await?;
            }
        }
        Ok(())
    }
}

/// A row in the text format of `COPY`. Blobs of 16 bytes are taken for ids.
fn line(row: Vec<Cell>) -> String {
    let cells = row.into_iter().map(|cell| match cell {
        Cell::Null => "\\N".to_owned(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => number.to_string(),
        Cell::Text(text) => text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t"),
        Cell::Blob(bytes) => match Uuid::from_slice(&bytes) {
            Ok(id) => id.to_string(),
            Err(_) => format!("\\\\x{}", hex::encode(bytes)),
        },
    });
    cells.collect::<Vec<_>>().join("\t") + "\n"
}
