//! Removes expired rows at intervals.

use shared::time::Timestamp;

use super::super::db::{Db, Sql};
use super::super::driver_error::DriverError;
use super::super::queue::unused_classes;

/// The lifetime of an idempotency key, and of a task of an ended run after its worker's last heartbeat, in
/// microseconds.
const LIFE_US: i64 = 24 * 3600 * 1_000_000;
/// With up to this many classes of reviews, unused ones are kept.
const KEPT_CLASSES: i64 = 1000;
/// The largest number of rows that one statement removes.
const CLEAN_AT_ONCE: i64 = 1000;

/// Removes some expired rows, on the thread of a writer: keys after a day, tasks of ended runs a day after their
/// worker's last heartbeat, credentials and grants after their time, and unused classes of reviews if there are many.
/// Returns whether there may be more.
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
    let classes = Sql::new("SELECT class FROM classes LIMIT ").bind(KEPT_CLASSES + 1);
    let classes = db.read().await?.fetch(classes).await?.len();
    if i64::try_from(classes).unwrap_or(i64::MAX) > KEPT_CLASSES {
        let unused = unused_classes(db).await?;
        let mut conn = db.write_on_this_thread().await?;
        more |= conn.forget_classes(&unused).await?;
        conn.commit().await?;
    }
    Ok(more)
}
