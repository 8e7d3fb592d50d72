//! Fills the columns of the queue and of statistics of reviews that an earlier version wrote.

use shared::review::Review;
use shared::time::Timestamp;
use uuid::Uuid;

use super::blobs::{Blobs, Reader};
use super::db::{Arg, Conn, Db, Sql};
use super::{Error, queue, search, statistics};

/// How many reviews are filled in one transaction.
const BATCH: u32 = 500;

/// Fills all that there are.
pub(super) async fn all(db: &Db) -> Result<(), Error> {
    let mut filled = 0;
    loop {
        match db.write(some).await? {
            0 => break,
            count => filled += count,
        }
    }
    if filled > 0 {
        tracing::info!(reviews = filled, "the reviews of an earlier version stand in the queue and in statistics");
    }
    Ok(())
}

/// Fills some; answers with how many.
async fn some(mut conn: Conn) -> Result<usize, Error> {
    let sql = Sql::new("SELECT id, run_id, body, status FROM reviews WHERE facts IS NULL LIMIT ").bind(BATCH);
    // Held until they are written: a server of an earlier version may still run.
    let sql = if conn.locks_rows() { sql.push(" FOR UPDATE") } else { sql };
    let rows = conn.fetch(sql).await?;
    if rows.is_empty() {
        conn.rollback().await?;
        return Ok(0);
    }
    let mut reader = Reader::default();
    for row in &rows {
        reader.add_column(row.uuid(1)?, row.text(2));
    }
    let reviews = reader.finish_each::<Review>("a review", &mut conn, &mut Blobs::default()).await?;
    for (row, review) in rows.iter().zip(reviews) {
        let id = row.uuid(0)?;
        match review {
            Ok(review) => {
                let sql = set(queue::columns_of(&review)?).push(", search = ").bind(search::text_of(&review));
                let sql = sql.push(", facts = ").bind(statistics::column_of(&review)?);
                update(&mut conn, sql, id).await?;
            }
            Err(error) => {
                tracing::error!(%error, "a review cannot be read, and stands in the queue for admins");
                // Of a class of its own, which cannot be read either: only admins see it.
                let class = (row.text(3)? == "pending").then_some(id);
                let sql = set([Timestamp::MAX.0.into(), 3_u32.into(), false.into(), 0_u32.into(), class.into()]);
                update(&mut conn, sql.push(", facts = ").bind(statistics::UNREADABLE), id).await?;
            }
        }
    }
    conn.commit().await?;
    Ok(rows.len())
}

fn set(columns: [Arg; 5]) -> Sql {
    let names = queue::COLUMNS.split(", ").zip(columns).enumerate();
    names.fold(Sql::new("UPDATE reviews SET "), |sql, (index, (name, value))| {
        sql.push(if index > 0 { ", " } else { "" }).push(name).push(" = ").bind(value)
    })
}

async fn update(conn: &mut Conn, sql: Sql, id: Uuid) -> Result<(), Error> {
    conn.execute(sql.push(" WHERE id = ").bind(id)).await?;
    Ok(())
}
