//! The rows of the log for the audit log, newest first, in batches: those of a run along the index of runs, all others
//! by the index of the log as far as it goes, and the rest directly.

use shared::api::AuditQuery;
use shared::id::RunId;

use super::Error;
use super::cursor::LogPlace;
use super::db::{Conn, Row, Sql};
use super::log::COLUMNS;
use super::log_index::{BLOCK, Block, Sought, padded};

/// How many rows are read at first; then twice as many each time, up to the most.
const FIRST: i64 = 64;
const MOST: i64 = 256;
/// How far the time of an entry can lie before that of its row: a transaction is never so long.
const SLACK_US: i64 = 60_000_000;

/// Which rows are looked at.
pub(super) struct Scan {
    of: Selected,
    /// The first row of the log.
    first: i64,
    /// Rows before this one are indexed.
    indexed: i64,
    /// Of those that are indexed, the first and the last that can be of the time that is asked for.
    in_time: (i64, i64),
    from: Option<i64>,
    to: Option<i64>,
    /// How many rows are read next.
    batch: i64,
}

enum Selected {
    /// Rows of a run.
    Run(RunId),
    All,
    /// Rows that can have what is sought.
    Sought(Sought),
}

/// The rows that one step of the scan has read.
pub(super) struct ScannedRows {
    /// The newest first.
    pub rows: Vec<Row>,
    /// Everything from this row on was looked at, or cannot fit. None: there is nothing more.
    pub down_to: Option<i64>,
    /// How many rows that took.
    pub looked_at: i64,
}

impl Scan {
    /// Rows of the log: of a run, or else those that can have what is sought, or all.
    pub async fn new(
        conn: &mut Conn,
        query: &AuditQuery,
        run: Option<RunId>,
        sought: Option<Sought>,
    ) -> Result<Self, Error> {
        let (from, to) = (query.from.map(|from| from.0), query.to.map(|to| to.0));
        let of = match (run, sought) {
            (Some(run), _) => Selected::Run(run),
            (None, Some(sought)) => Selected::Sought(sought),
            (None, None) => Selected::All,
        };
        let (first, last) = conn.blocks_of_time(from, to).await?;
        let oldest = conn.fetch_one(Sql::new("SELECT MIN(seq) FROM log")).await?;
        let oldest = oldest.map(|row| row.int_opt(0)).transpose()?.flatten().unwrap_or(0);
        let in_time = (oldest.max(first * BLOCK), last.saturating_mul(BLOCK).saturating_add(BLOCK - 1));
        Ok(Self { of, first: oldest, indexed: conn.indexed_to().await?, in_time, from, to, batch: FIRST })
    }

    /// The next rows before a place.
    pub async fn next(&mut self, conn: &mut Conn, before: LogPlace) -> Result<ScannedRows, Error> {
        // `seen` is 0 where the whole row has been looked at, and the row of a cursor has entries before it.
        let top = if before.seen == 0 { before.seq - 1 } else { before.seq };
        let batch = self.batch;
        self.batch = (batch * 2).min(MOST);
        let (first, last) = self.in_time;
        match &self.of {
            Selected::Run(run) => {
                let sql = self.rows().push(" AND run_id = ").bind(run.0).push(" AND seq <= ").bind(top);
                newest_of(conn, sql, batch).await
            }
            // What is not indexed is read as it is.
            _ if top >= self.indexed => self.window(conn, self.indexed.max(self.first), top, batch).await,
            // By rows, not by their numbers: of what was archived, numbers are left without rows. Where times are asked for,
            // rows that do not fit would be read without end: they are looked at so many at a time.
            Selected::All if top.min(last) >= first && self.from.is_none() && self.to.is_none() => {
                let sql = self.rows().push(" AND seq >= ").bind(first).push(" AND seq <= ").bind(top.min(last));
                newest_of(conn, sql, batch).await
            }
            Selected::All if top.min(last) >= first => self.window(conn, first, top.min(last), batch).await,
            Selected::Sought(sought) if top.min(last) >= first => {
                self.sought(conn, sought, (first, top.min(last)), batch).await
            }
            Selected::All | Selected::Sought(_) => Ok(ScannedRows { rows: Vec::new(), down_to: None, looked_at: 0 }),
        }
    }

    /// The newest of the rows between two.
    async fn window(&self, conn: &mut Conn, first: i64, top: i64, batch: i64) -> Result<ScannedRows, Error> {
        let low = first.max(top - batch + 1);
        let rows = conn.fetch(newest(self.rows(), low, top)).await?;
        Ok(ScannedRows { rows, down_to: Some(low).filter(|low| *low > self.first), looked_at: top - low + 1 })
    }

    /// The newest rows that can have what is sought, between two that are indexed.
    async fn sought(&self, conn: &mut Conn, sought: &Sought, of: (i64, i64), batch: i64) -> Result<ScannedRows, Error> {
        let (first, top) = of;
        // Where only words are sought, every row of a block is looked at.
        let most = batch / if sought.terms.is_empty() { BLOCK } else { 4 };
        let blocks = conn.blocks(sought, first / BLOCK, top / BLOCK, most).await?;
        let more = i64::try_from(blocks.len()).unwrap_or(most) >= most;
        let mut down_to = blocks.last().filter(|_| more).map(|block| block.number * BLOCK);
        let rows = blocks.iter().flat_map(Block::rows).filter(|row| (first..=top).contains(row));
        let mut rows: Vec<i64> = rows.take(usize::try_from(batch + 1).unwrap_or(usize::MAX)).collect();
        if i64::try_from(rows.len()).unwrap_or(0) > batch {
            rows.pop();
            down_to = rows.last().copied();
        }
        let looked_at = i64::try_from(rows.len().max(1)).unwrap_or(batch);
        if rows.is_empty() {
            return Ok(ScannedRows { rows: Vec::new(), down_to, looked_at });
        }
        let sql = self.rows().push(" AND seq IN (").list(padded(&rows)).push(") ORDER BY seq DESC");
        Ok(ScannedRows { rows: conn.fetch(sql).await?, down_to, looked_at })
    }

    fn rows(&self) -> Sql {
        rows(self.from, self.to)
    }
}

/// Rows of a time, as far as the time of a row tells that of its entries.
pub(super) fn rows(from: Option<i64>, to: Option<i64>) -> Sql {
    let mut sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM log WHERE true");
    if let Some(from) = from {
        sql = sql.push(" AND at >= ").bind(from);
    }
    if let Some(to) = to {
        sql = sql.push(" AND at < ").bind(to.saturating_add(SLACK_US));
    }
    sql
}

/// Of these those between two, the newest first.
pub(super) fn newest(rows: Sql, first: i64, top: i64) -> Sql {
    rows.push(" AND seq >= ").bind(first).push(" AND seq <= ").bind(top).push(" ORDER BY seq DESC")
}

/// The newest rows of a query, so many at most.
async fn newest_of(conn: &mut Conn, sql: Sql, batch: i64) -> Result<ScannedRows, Error> {
    let rows = conn.fetch(sql.push(" ORDER BY seq DESC LIMIT ").bind(batch)).await?;
    let looked_at = i64::try_from(rows.len()).unwrap_or(batch);
    let down_to = rows.last().filter(|_| looked_at >= batch).map(|row| row.int(0)).transpose()?;
    Ok(ScannedRows { rows, down_to, looked_at })
}
