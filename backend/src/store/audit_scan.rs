//! The rows of the log for the audit log, newest first, in batches. Rows of one run are found by the index on runs.
//! Other rows are found by the log index as far as it reaches, and are read directly beyond that.

use shared::api::AuditQuery;
use shared::id::RunId;

use super::Error;
use super::cursor::LogPlace;
use super::db::{Conn, Row, Sql};
use super::log::COLUMNS;
use super::log_index::{BLOCK, Block, Sought, padded};

/// The number of rows in the first batch. It doubles with each batch, up to `MAX_BATCH`.
const FIRST_BATCH: i64 = 64;
const MAX_BATCH: i64 = 256;
/// By how much the time of an entry can precede that of its row, in microseconds; no transaction takes longer.
const SLACK_US: i64 = 60_000_000;

/// A scan over the rows of the log that may match.
pub(super) struct Scan {
    /// The run whose rows are read.
    run: Option<RunId>,
    /// What the rows must match by the index, unless they are those of a run.
    sought: Option<Sought>,
    /// The number of the first row of the log.
    first: i64,
    /// Rows before this one are indexed.
    indexed: i64,
    /// The first and the last indexed row that can have the requested time.
    in_time: (i64, i64),
    from: Option<i64>,
    to: Option<i64>,
    /// The number of rows in the next batch.
    batch: i64,
}

/// The result of one step of the scan.
pub(super) struct ScannedRows {
    /// The rows that may match, newest first.
    pub rows: Vec<Row>,
    /// The lowest row number that this step covers: it and all rows above were examined or cannot match. `None` if no
    /// rows are left.
    pub down_to: Option<i64>,
    /// The number of rows that were examined.
    pub scanned: i64,
}

impl Scan {
    /// Prepares a scan over the rows of a run; without a run, over the rows that may match `sought`, or all rows.
    pub async fn new(
        conn: &mut Conn,
        query: &AuditQuery,
        run: Option<RunId>,
        sought: Option<Sought>,
    ) -> Result<Self, Error> {
        let (from, to) = (query.from.map(|from| from.0), query.to.map(|to| to.0));
        let (first, last) = conn.blocks_of_time(from, to).await?;
        let oldest = conn.first(Sql::new("SELECT MIN(seq) FROM log"), Row::int_opt).await?.flatten().unwrap_or(0);
        let in_time = (oldest.max(first * BLOCK), last.saturating_mul(BLOCK).saturating_add(BLOCK - 1));
        Ok(Self {
            run,
            sought,
            first: oldest,
            indexed: conn.indexed_to().await?,
            in_time,
            from,
            to,
            batch: FIRST_BATCH,
        })
    }

    /// Reads the next batch of rows at or before a place.
    pub async fn next(&mut self, conn: &mut Conn, before: LogPlace) -> Result<ScannedRows, Error> {
        // `seen` is 0 if the whole row was examined. Otherwise the row of the cursor has further entries before the
        // place.
        let top = if before.seen == 0 { before.seq - 1 } else { before.seq };
        let batch = self.batch;
        self.batch = (batch * 2).min(MAX_BATCH);
        if let Some(run) = self.run {
            let sql = self.rows().push(" AND run_id = ").bind(run.0).push(" AND seq <= ").bind(top);
            return newest_of(conn, sql, batch).await;
        }
        // Rows that are not indexed yet are read directly.
        if top >= self.indexed {
            return self.window(conn, self.indexed.max(self.first), top, batch).await;
        }
        let (first, last) = self.in_time;
        let top = top.min(last);
        match &self.sought {
            _ if top < first => Ok(ScannedRows { rows: Vec::new(), down_to: None, scanned: 0 }),
            Some(sought) => self.sought(conn, sought, (first, top), batch).await,
            // Limited by the count of rows, not by their numbers: archived rows leave gaps in the numbers. With a time
            // range, such a query could skip rows without end before it finds a match, so a window of numbers is read
            // instead.
            None if self.from.is_none() && self.to.is_none() => {
                let sql = self.rows().push(" AND seq >= ").bind(first).push(" AND seq <= ").bind(top);
                newest_of(conn, sql, batch).await
            }
            None => self.window(conn, first, top, batch).await,
        }
    }

    /// Reads the last `batch` row numbers between `first` and `top`.
    async fn window(&self, conn: &mut Conn, first: i64, top: i64, batch: i64) -> Result<ScannedRows, Error> {
        let low = first.max(top - batch + 1);
        let rows = conn.fetch(newest(self.rows(), low, top)).await?;
        Ok(ScannedRows { rows, down_to: Some(low).filter(|low| *low > self.first), scanned: top - low + 1 })
    }

    /// Reads the newest rows that may match, within a range that is indexed.
    async fn sought(&self, conn: &mut Conn, sought: &Sought, of: (i64, i64), batch: i64) -> Result<ScannedRows, Error> {
        let (first, top) = of;
        // If only words are searched, every row of a block is examined.
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
        let scanned = i64::try_from(rows.len().max(1)).unwrap_or(batch);
        let sql = self.rows().push(" AND seq").among(padded(&rows)).push(" ORDER BY seq DESC");
        Ok(ScannedRows { rows: conn.fetch(sql).await?, down_to, scanned })
    }

    fn rows(&self) -> Sql {
        rows(self.from, self.to)
    }
}

/// Selects the rows of a time range. The time of an entry may precede that of its row by up to [`SLACK_US`].
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

/// Limits a query to rows between two numbers, newest first.
pub(super) fn newest(rows: Sql, first: i64, top: i64) -> Sql {
    rows.push(" AND seq >= ").bind(first).push(" AND seq <= ").bind(top).push(" ORDER BY seq DESC")
}

/// Reads up to `batch` of the newest rows of a query.
async fn newest_of(conn: &mut Conn, sql: Sql, batch: i64) -> Result<ScannedRows, Error> {
    let rows = conn.fetch(sql.push(" ORDER BY seq DESC LIMIT ").bind(batch)).await?;
    let scanned = i64::try_from(rows.len()).unwrap_or(batch);
    let down_to = rows.last().filter(|_| scanned >= batch).map(|row| row.int(0)).transpose()?;
    Ok(ScannedRows { rows, down_to, scanned })
}
