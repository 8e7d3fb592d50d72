//! Lists who decided the reviews that an earlier version stored, in the background. The place in the list of reviews is
//! stored together with the rows, so a crash loses nothing, and only one of several servers continues.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::db::{Sql, on_blocking_thread};
use super::review_row::{DECIDED, decided_rows};
use super::{Error, Inner, Store, stored_review};
use crate::background::rest_after;

/// The number of reviews per transaction. They are read without their large values.
const AT_ONCE: u32 = 100;
/// The wait after a failure, and before the next look while another server lists.
const AGAIN: Duration = Duration::from_secs(5);

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listed {
    /// All reviews that were stored when this version first ran.
    All,
    /// Some reviews; there may be more.
    Some,
    /// Another server is listing, or something was erased meanwhile.
    Elsewhere,
}

/// Lists decisions until all are listed, then waits until the store is closed.
pub(super) async fn run(inner: Arc<Inner>) {
    let (stop, store) = (inner.stop.clone(), Store { inner });
    stop.run_until_cancelled(list_all(&store)).await;
    stop.cancelled().await;
}

async fn list_all(store: &Store) {
    let mut mine = None;
    loop {
        let begun = Instant::now();
        match store.list_earlier_decisions(&mut mine, AT_ONCE).await {
            Ok(Listed::Some) => rest_after(begun).await,
            Ok(Listed::Elsewhere) => sleep(AGAIN).await,
            Ok(Listed::All) if mine.is_none() => return,
            Ok(Listed::All) => {
                tracing::info!("the decisions that an earlier version stored are listed by who made them");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "decisions that an earlier version stored could not be listed; trying again");
                sleep(AGAIN).await;
            }
        }
    }
}

impl Store {
    /// Lists who decided the next reviews, at most `at_once`. `mine` is where this server's previous step ended; if
    /// another server has continued from there, listing is left to it.
    pub(super) async fn list_earlier_decisions(&self, mine: &mut Option<Uuid>, at_once: u32) -> Result<Listed, Error> {
        let (store, before) = (self.clone(), *mine);
        let (listed, place) = on_blocking_thread(async move || store.list_some(before, at_once).await).await?;
        *mine = place;
        Ok(listed)
    }

    /// Like [`Self::list_earlier_decisions`]. Also returns the last review that is listed now.
    async fn list_some(&self, mine: Option<Uuid>, at_once: u32) -> Result<(Listed, Option<Uuid>), Error> {
        let mut conn = self.inner.db.snapshot_on_this_thread().await?;
        let sql = Sql::new("SELECT after_id, last_id FROM unlisted_decisions WHERE after_id < last_id");
        let Some(row) = conn.fetch_one(sql).await? else { return Ok((Listed::All, mine)) };
        let (after, last) = (row.uuid(0)?, row.uuid(1)?);
        if mine.is_some_and(|mine| mine != after) {
            return Ok((Listed::Elsewhere, Some(after)));
        }
        let erasures = conn.last_erasure().await?;
        let sql = stored_review::select().push(" FROM reviews r WHERE r.id > ").bind(after).push(" AND r.id <= ");
        let sql = sql.bind(last).push(" ORDER BY r.id LIMIT ").bind(at_once);
        let reviews = conn.review_outlines(sql).await?;
        conn.rollback().await?;
        let to = match reviews.last() {
            Some(review) if reviews.len() >= at_once as usize => review.id.0,
            _ => last,
        };
        // One that cannot be read has no decisions here. A vote that is replaced meanwhile leaves a row, which lists skip.
        let rows = reviews.iter().flat_map(decided_rows).collect();
        let mut conn = self.inner.db.write_on_this_thread().await?;
        let moved = conn.move_place(("unlisted_decisions", "after_id"), after, to).await?;
        // Nothing is erased while the index is held, so no name returns that was erased since the reviews were read.
        conn.hold_index().await?;
        if !moved || conn.last_erasure().await? != erasures {
            conn.rollback().await?;
            return Ok((Listed::Elsewhere, Some(after)));
        }
        conn.insert(&DECIDED, rows, " ON CONFLICT DO NOTHING").await?;
        conn.commit().await?;
        Ok((Listed::Some, Some(to)))
    }
}
