//! Removes what has expired, from time to time.

use shared::time::Timestamp;

use super::super::db::{Db, Sql};
use super::super::driver_error::DriverError;

/// How long an idempotency key is kept, and a task of an ended run whose worker is silent.
const LIFE_US: i64 = 24 * 3600 * 1_000_000;
/// So many classes of reviews are kept, whether or not reviews of them are pending.
const KEPT_CLASSES: i64 = 1000;
/// How much is cleaned up at once.
const CLEAN_AT_ONCE: i64 = 1000;

/// Removes, on the thread of a writer, some of what has expired: keys after a day, tasks of ended runs a day after their
/// worker was heard last, sessions, tokens and links after their time, and classes of reviews of which none is pending,
/// where there are many. `true`: there may be more.
pub(super) async fn some(db: &Db, now: Timestamp) -> Result<bool, DriverError> {
    let day_ago = now.0.saturating_sub(LIFE_US);
    let expired = [
        (
            "DELETE FROM idempotency WHERE (scope, key) IN (SELECT scope, key FROM idempotency WHERE created_at < ",
            day_ago,
        ),
        ("DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE lane = 'over' AND ready_at < ", day_ago),
        ("DELETE FROM credentials WHERE digest IN (SELECT digest FROM credentials WHERE expires_at <= ", now.0),
        ("DELETE FROM grants WHERE id IN (SELECT id FROM grants WHERE expires_at <= ", now.0),
    ];
    let mut more = false;
    let mut conn = db.write_on_this_thread().await?;
    for (delete, time) in expired {
        let sql = Sql::new(delete).bind(time).push(" LIMIT ").bind(CLEAN_AT_ONCE).push(")");
        more |= conn.execute(sql).await? >= CLEAN_AT_ONCE.unsigned_abs();
    }
    conn.commit().await?;
    let mut conn = db.write_on_this_thread().await?;
    let classes = conn.fetch(Sql::new("SELECT class FROM classes LIMIT ").bind(KEPT_CLASSES + 1)).await?;
    if i64::try_from(classes.len()).unwrap_or(i64::MAX) > KEPT_CLASSES {
        more |= conn.forget_classes().await?;
    }
    conn.commit().await?;
    Ok(more)
}
