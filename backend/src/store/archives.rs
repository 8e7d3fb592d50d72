//! Archived runs, and where archives are. A log entry has the same data for each archive, and that entry is
//! authoritative; these rows only serve to find it.

use shared::id::{ReviewId, RunId, Username};
use shared::run::ArchivedRun;
use shared::time::Timestamp;

use super::batch::Table;
use super::cursor::LogPlace;
use super::db::{Conn, Row, Sql};
use super::driver_error::DriverError;
use super::{Error, RecordRow, Store};

pub(super) const ARCHIVES: Table =
    Table { name: "archives", key: "number", others: "seq, file, position, bytes, at, up_to" };
pub(super) const ARCHIVED_RUNS: Table =
    Table { name: "archived_runs", key: "id", others: "flow, requested_by, ended_at, archive, removed" };
pub(super) const ARCHIVED_REVIEWS: Table = Table { name: "archived_reviews", key: "id", others: "run_id" };

/// An archive: a range of a file that holds finished runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The number of the archive: from 1, without gaps.
    pub number: u64,
    /// The number of the log row that records the archive.
    pub row: i64,
    /// The name of the file.
    pub file: String,
    /// The offset of its first byte in the file.
    pub position: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

const COLUMNS: &str = "a.number, a.seq, a.file, a.position, a.bytes";

impl Store {
    /// Returns up to `limit` archives with a number above `after`, in order.
    pub async fn archives(&self, after: u64, limit: u32) -> Result<Vec<Archive>, Error> {
        let sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM archives a WHERE a.number > ").bind(signed(after));
        let sql = sql.push(" ORDER BY a.number LIMIT ").bind(limit);
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        Ok(rows.iter().map(archive).collect::<Result<_, _>>()?)
    }

    /// Returns the numbers of the log rows that record the newest archive and the newest erased entries, if any.
    pub async fn newest_explanations(&self) -> Result<Vec<i64>, Error> {
        let newest = |table: &str| format!("(SELECT seq FROM {table} ORDER BY number DESC LIMIT 1)");
        let sql = Sql::new("SELECT ").push(&newest("archives")).push(", ").push(&newest("erasures"));
        let Some(row) = self.inner.db.read().await?.fetch_one(sql).await? else { return Ok(Vec::new()) };
        Ok([row.int_opt(0)?, row.int_opt(1)?].into_iter().flatten().collect())
    }

    /// Returns the number of the newest archive, or 0 if there is none.
    pub async fn last_archive(&self) -> Result<u64, Error> {
        let sql = Sql::new("SELECT COALESCE(MAX(number), 0) FROM archives");
        let find = async move |mut conn: Conn| {
            // In PostgreSQL, a commit of a server that has died may still be running. It holds the lock of the log
            // until it is visible, so this waits for that lock.
            if conn.is_postgres() {
                conn.fetch(Sql::new("SELECT pg_advisory_xact_lock(1668248942, 1)::text")).await?;
            }
            let last = conn.first(sql, Row::int).await?;
            conn.rollback().await?;
            Ok(last.map_or(0, unsigned))
        };
        self.inner.db.write(find).await
    }

    /// Returns the offset at which the last archive in a file ends, or 0 if the file has none.
    pub async fn end_of_archive_file(&self, file: &str) -> Result<u64, Error> {
        let sql = Sql::new("SELECT COALESCE(MAX(position + bytes), 0) FROM archives WHERE file = ").bind(file);
        Ok(self.inner.db.read().await?.first(sql, Row::int).await?.map_or(0, unsigned))
    }

    /// Returns an archived run and its archive, or `None` if no such run was archived.
    pub async fn archived_run(&self, id: RunId) -> Result<Option<(ArchivedRun, Archive)>, Error> {
        let sql = Sql::new("SELECT ").push(COLUMNS).push(
            ", a.at, r.flow, r.requested_by, r.ended_at FROM archived_runs r JOIN archives a ON a.number = r.archive \
             WHERE r.id = ",
        );
        let Some(row) = self.inner.db.read().await?.fetch_one(sql.bind(id.0)).await? else { return Ok(None) };
        let archive = archive(&row)?;
        let unreadable = |why: String| Error::Stored(format!("the archived run {id}: {why}"));
        let run = ArchivedRun {
            id,
            flow: row.text(6)?.parse().map_err(|error| unreadable(format!("{error}")))?,
            requested_by: Username::try_from(row.text(7)?).map_err(|error| unreadable(format!("{error}")))?,
            ended_at: Timestamp(row.int(8)?),
            archived_at: Timestamp(row.int(5)?),
            file: archive.file.clone(),
        };
        Ok(Some((run, archive)))
    }

    /// Returns the archived run to which a review belonged, or `None` if the review was not archived, or by a version that
    /// did not keep this.
    pub async fn archived_run_of(&self, review: ReviewId) -> Result<Option<ArchivedRun>, Error> {
        let sql = Sql::new("SELECT run_id FROM archived_reviews WHERE id = ").bind(review.0);
        let Some(run) = self.inner.db.read().await?.first(sql, Row::uuid).await? else { return Ok(None) };
        Ok(self.archived_run(RunId(run)).await?.map(|(run, _)| run))
    }

    /// Returns the log row with this number, if it exists.
    pub async fn row_of_record(&self, number: i64) -> Result<Option<RecordRow>, Error> {
        let log = &self.inner.log;
        let place = |seq| LogPlace { seq, seen: 0 }.cursor(log);
        let page = self.record(&place(number.saturating_sub(1)), Some(&place(number)), 1).await?;
        Ok(page.and_then(|page| page.rows.into_iter().find(|row| row.number == number)))
    }

    /// The id that distinguishes this log from others.
    pub fn log_id(&self) -> &str {
        &self.inner.log.generation
    }
}

fn archive(row: &Row) -> Result<Archive, DriverError> {
    Ok(Archive {
        number: unsigned(row.int(0)?),
        row: row.int(1)?,
        file: row.text(2)?,
        position: unsigned(row.int(3)?),
        bytes: unsigned(row.int(4)?),
    })
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
