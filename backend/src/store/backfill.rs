//! Fills in the columns for the queue and the statistics of reviews that an earlier version stored.

use super::blobs::Blobs;
use super::db::{Arg, Conn, Db, Sql};
use super::{Error, queue, search, statistics, stored_review};

/// The number of reviews per transaction.
const BATCH: u32 = 500;

/// Fills in all reviews that lack the columns.
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
    Ok(())
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
            conn.execute(Sql::new(&queue::QUEUE.insert()).values([row]).push(queue::AGAIN)).await?;
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
