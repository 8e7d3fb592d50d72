//! Fills in what the migrations cannot: the columns for the queue and the statistics of reviews that an earlier version
//! stored, and the endings of its failed runs.

use shared::run::Ending;
use uuid::Uuid;

use super::blobs::Blobs;
use super::db::{Arg, Conn, Db, Sql};
use super::runs::RUNS_BY_STATUS;
use super::{Error, queue, search, statistics, stored_review};

/// The number of reviews or runs per transaction.
const BATCH: u32 = 500;

/// The word under which a migration lists failed runs whose ending is not known.
const UNSORTED: &str = "unsorted";

/// Fills in all reviews that lack the columns, and lists all failed runs by their endings.
pub(super) async fn all(db: &Db) -> Result<(), Error> {
    let mut filled = 0;
    loop {
        match db.write(some).await? {
            0 => break,
            count => filled += count,
        }
    }
    if filled > 0 {
        tracing::info!(reviews = filled, "added the reviews of an earlier version to the queue and the statistics");
    }
    let mut listed = 0;
    loop {
        match db.write(endings).await? {
            0 => break,
            count => listed += count,
        }
    }
    if listed > 0 {
        tracing::info!(runs = listed, "read the failed runs of an earlier version, to list them by their endings");
    }
    Ok(())
}

/// Lists up to [`BATCH`] failed runs by their endings, and returns how many.
async fn endings(mut conn: Conn) -> Result<usize, Error> {
    let sql = Sql::new("SELECT created_at, id FROM runs_by_status WHERE status = ").bind(UNSORTED);
    let sql = sql.push(" ORDER BY created_at, id LIMIT ").bind(BATCH);
    let rows = conn.fetch(if conn.locks_rows() { sql.push(" FOR UPDATE") } else { sql }).await?;
    let row = |word: &str, at: i64, id: Uuid| vec![word.into(), at.into(), id.into()];
    let (mut ids, mut left) = (Vec::new(), Vec::new());
    for found in &rows {
        let (at, id) = (found.int(0)?, found.uuid(1)?);
        ids.push(id);
        left.push(row(UNSORTED, at, id));
    }
    let runs = conn.summaries(&ids).await?;
    let known = runs.iter().filter_map(|run| Some((Ending::of(run.error.as_ref())?, run)));
    let listed = known.map(|(ending, run)| row(ending.as_str(), run.created_at.0, run.id.0)).collect();
    conn.delete_rows(&RUNS_BY_STATUS, left).await?;
    conn.insert(&RUNS_BY_STATUS, listed, " ON CONFLICT DO NOTHING").await?;
    conn.commit().await?;
    Ok(rows.len())
}

/// Fills in up to [`BATCH`] reviews, and returns how many.
async fn some(mut conn: Conn) -> Result<usize, Error> {
    let sql =
        stored_review::select().push(" FROM reviews r WHERE r.severity_rank IS NULL ORDER BY r.id LIMIT ").bind(BATCH);
    // The rows stay locked until they are written, since several servers may start at once.
    let sql = if conn.locks_rows() { sql.push(" FOR UPDATE") } else { sql };
    let found = conn.reviews_with_runs(sql, &mut Blobs::default()).await?;
    if found.is_empty() {
        conn.rollback().await?;
        return Ok(0);
    }
    for (_, review) in &found {
        let mut sql = set(queue::columns_of(review)).push(", facts = ");
        if review.unreadable {
            tracing::error!(review = %review.id, "a review cannot be read, and is in the queue for admins");
            sql = sql.bind(statistics::UNREADABLE);
        } else {
            sql = sql.bind(statistics::column_of(review)?).push(", search = ").bind(search::text_of(review));
        }
        conn.execute(sql.push(" WHERE id = ").bind(review.id.0)).await?;
        if review.is_pending() {
            let (row, class, outline) = queue::row_of(review)?;
            let sql = Sql::new(&queue::CLASSES.insert()).values([vec![class.into(), outline.into()]]);
            conn.execute(sql.push(" ON CONFLICT (class) DO NOTHING")).await?;
            conn.execute(Sql::new(&queue::QUEUE.insert()).values([row]).push(queue::ON_CONFLICT_UPDATE)).await?;
        }
    }
    conn.commit().await?;
    Ok(found.len())
}

fn set(columns: [Arg; 4]) -> Sql {
    let names = queue::COLUMNS.split(", ").zip(columns).enumerate();
    names.fold(Sql::new("UPDATE reviews SET "), |sql, (index, (name, value))| {
        sql.push(if index > 0 { ", " } else { "" }).push(name).push(" = ").bind(value)
    })
}
