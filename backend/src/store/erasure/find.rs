//! Finds where a person is still named. Every run is read once, in batches, and so are log rows without a run.
//!
//! The index of the log is not used: it has actors, but not the people who are named in an input of the engine.

use shared::id::RunId;
use uuid::Uuid;

use super::super::db::{Conn, Row, Sql};
use super::super::{Error, Store, packed};
use super::{Erasing, place};

/// The number of runs that one statement examines.
const RUNS: u32 = 64;
/// The number of log rows that one statement examines.
const ROWS: i64 = 2000;
/// The number of log rows without a run that one step changes.
const AT_ONCE: u32 = 64;

/// A place in the list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPlace(Uuid);

/// The columns that can name a person, in the tables of a run, each with the column for the run's id. Results under
/// idempotency keys name nobody else.
const COLUMNS: [(&str, &str, &str); 7] = [
    ("id", "runs", "state"),
    ("id", "runs", "steps"),
    ("run_id", "log", "body"),
    ("run_id", "reviews", "body"),
    ("run_id", "steps", "body"),
    ("run_id", "blobs", "body"),
    ("run_id", "feedback", "body"),
];

impl Store {
    /// Returns runs after `after` that may name the person, and the place at which to continue; `None` once all runs
    /// were examined.
    pub async fn runs_naming(
        &self,
        erasing: &Erasing,
        after: Option<RunPlace>,
    ) -> Result<(Vec<RunId>, Option<RunPlace>), Error> {
        let mut conn = self.inner.db.read().await?;
        let sql = Sql::new("SELECT id FROM runs WHERE id > ").bind(after.map_or(Uuid::nil(), |place| place.0));
        let runs = conn.all(sql.push(" ORDER BY id LIMIT ").bind(RUNS), Row::uuid).await?;
        let next = runs.last().filter(|_| runs.len() >= usize::try_from(RUNS).unwrap_or(usize::MAX));
        let mut naming = Vec::new();
        for (run, table, column) in COLUMNS {
            naming.extend(conn.naming(erasing, run, table, column, &runs).await?);
        }
        naming.sort_unstable();
        naming.dedup();
        Ok((naming.into_iter().map(RunId).collect(), next.map(|run| RunPlace(*run))))
    }

    /// Returns log rows without a run, after `after`, that may name the person, and the row after which to continue.
    /// `None` if there are no more rows.
    pub async fn rows_naming(&self, erasing: &Erasing, after: i64) -> Result<(Vec<i64>, Option<i64>), Error> {
        let mut conn = self.inner.db.read().await?;
        let sql = Sql::new("SELECT MAX(seq) FROM (SELECT seq FROM log WHERE seq > ").bind(after);
        let sql = sql.push(" ORDER BY seq LIMIT ").bind(ROWS).push(") AS l");
        let Some(last) = conn.first(sql, Row::int_opt).await?.flatten() else { return Ok((Vec::new(), None)) };
        let sql =
            Sql::new("SELECT seq, body FROM log WHERE run_id IS NULL AND seq > ").bind(after).push(" AND seq <= ");
        let marks = erasing.marks();
        let sql = may_name(&conn, sql.bind(last).push(" AND "), "body", &marks);
        let rows = conn.fetch(sql.push(" ORDER BY seq LIMIT ").bind(AT_ONCE)).await?;
        let full = rows.len() >= usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
        let next = rows.last().filter(|_| full).map(|row| row.int(0)).transpose()?.unwrap_or(last);
        let rows = rows.iter().filter(|row| names(row, 1, &marks)).map(|row| row.int(0)).collect::<Result<_, _>>()?;
        Ok((rows, Some(next)))
    }
}

impl Conn {
    async fn naming(
        &mut self,
        erasing: &Erasing,
        run: &str,
        table: &str,
        column: &str,
        runs: &[Uuid],
    ) -> Result<Vec<Uuid>, Error> {
        let sql = Sql::new("SELECT ").push(run).push(", ").push(column).push(" FROM ").push(table).push(" WHERE ");
        let sql = sql.push(run).among(runs.iter().copied()).push(" AND ");
        let marks = [erasing.quoted()];
        let rows = self.fetch(may_name(self, sql, column, &marks)).await?;
        let naming = rows.iter().filter(|row| names(row, 1, &marks));
        Ok(naming.map(|row| row.uuid(0)).collect::<Result<_, _>>()?)
    }
}

/// Adds the condition that a column contains one of the marks of the person, or is compressed, so that only the program
/// can tell.
fn may_name(conn: &Conn, sql: Sql, column: &str, marks: &[String]) -> Sql {
    let any = |sql, mark: &String| place(conn, sql, column, mark).push(" > 0 OR ");
    place(conn, marks.iter().fold(sql.push("("), any), column, packed::MARK).push(" = 1)")
}

/// Whether a column names the person. `true` if it cannot be read: reading the whole run then reports the error.
fn names(row: &Row, index: usize, marks: &[String]) -> bool {
    let json = row.text(index).and_then(packed::unpack);
    json.map_or(true, |json| marks.iter().any(|mark| json.contains(mark)))
}
