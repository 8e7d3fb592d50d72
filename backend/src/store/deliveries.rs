//! Deliveries: claimed under a lease by one sender at a time, as tasks are, in a table of their own, so that a slow
//! receiver never stands in the way of a run. What was sent is kept for a while: to change a message when its review is
//! resolved, and to count how much somebody was told lately.

use std::time::Duration;

use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page};
use shared::id::{DeliveryId, ReviewId, RunId};
use shared::log::Cursor;
use shared::notification::{Delivery, DeliveryQuery, DeliveryStatus};
use shared::time::Timestamp;

use super::cursor::ListPlace;
use super::db::{Conn, Db, Row, Sql};
use super::outbox::uuids;
use super::tasks::{NOW, micros};
use super::{Error, Store};

const COLUMNS: &str = "id, channel, target, event, review_id, run_id, place, attempt, failures, receipt";

/// A delivery with the lease under which it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// The same for every attempt.
    pub id: DeliveryId,
    /// `webhook`, `slack` or `email`.
    pub channel: String,
    /// The webhook's or the person's name.
    pub target: String,
    /// What it tells.
    pub event: String,
    /// Of which review.
    pub review: ReviewId,
    /// Of which run.
    pub run: Option<RunId>,
    /// The place in the log before the entry that it tells of.
    pub place: Cursor,
    /// Raised by every claim; what came of it counts only while it is the same.
    pub attempt: u32,
    /// How often it has failed.
    pub failures: u32,
    /// What the receiver calls the message that it changes.
    pub receipt: Option<String>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// It was taken; the receiver may have a name for it.
    Taken {
        /// That name.
        receipt: Option<String>,
        /// What the message shows, where a reaction to it decides.
        shown: Option<String>,
    },
    /// It was part of another message, or changed one.
    Joined,
    /// There was nothing to tell any more, for this reason.
    Dropped(&'static str),
    /// It failed and is tried again after a while.
    Failed {
        /// How long.
        after: Duration,
        /// What the receiver or the network said, for admins.
        error: String,
    },
    /// It is not time yet: so much was told lately.
    Later {
        /// How long.
        after: Duration,
    },
    /// It failed for good.
    GivenUp {
        /// What the receiver or the network said, for admins.
        error: String,
    },
}

impl Sent {
    /// It was taken, and cannot be changed later.
    pub const TAKEN: Self = Self::Taken { receipt: None, shown: None };
}

impl Store {
    /// Takes deliveries that are due, oldest first, under a lease on the database's clock.
    pub async fn claim_deliveries(
        &self,
        sender: &str,
        limit: u32,
        lease: Duration,
    ) -> Result<Vec<ClaimedDelivery>, Error> {
        let postgres = self.inner.db.is_postgres();
        let store = self.clone();
        let due = move |columns: &str| {
            let sql =
                Sql::new("SELECT ").push(columns).push(" FROM deliveries WHERE status = 'waiting' AND ready_at <= ");
            let sql = store.now(sql).push(" ORDER BY ready_at, id LIMIT ").bind(limit);
            if postgres { sql.push(" FOR UPDATE SKIP LOCKED") } else { sql }
        };
        let (now, sender) = (self.inner.clock.now(), sender.to_owned());
        // Looking first keeps an idle sender off the write lock.
        if !postgres && self.inner.db.read().await?.fetch_one(due("1")).await?.is_none() {
            return Ok(Vec::new());
        }
        let claim = async move |mut conn: Conn| {
            let rows = conn.fetch(due(COLUMNS)).await?;
            let mut claimed = rows.iter().map(stored).collect::<Result<Vec<_>, Error>>()?;
            for delivery in &mut claimed {
                delivery.attempt = delivery.attempt.saturating_add(1);
            }
            if claimed.is_empty() {
                conn.rollback().await?;
                return Ok(claimed);
            }
            let ids: Vec<DeliveryId> = claimed.iter().map(|delivery| delivery.id).collect();
            let sql = Sql::new("UPDATE deliveries SET attempt = attempt + 1, owner = ").bind(sender.as_str());
            let sql = sql.push(", ready_at = ");
            let sql =
                if postgres { sql.push(NOW).push(" + ").bind(micros(lease)) } else { sql.bind(now.after(lease).0) };
            conn.execute(sql.push(" WHERE id IN (").list(uuids(&ids)).push(")")).await?;
            conn.commit().await?;
            Ok(claimed)
        };
        self.inner.db.write(claim).await
    }

    /// When the next delivery is due, or its lease runs out.
    pub async fn next_delivery(&self) -> Result<Option<Timestamp>, Error> {
        let sql = Sql::new("SELECT ready_at FROM deliveries WHERE status = 'waiting' ORDER BY ready_at LIMIT 1");
        let row = self.inner.db.read().await?.fetch_one(sql).await?;
        Ok(row.map(|row| row.int(0)).transpose()?.map(Timestamp))
    }

    /// Writes down what came of an attempt. False: somebody else holds it by now, and nothing was written.
    pub async fn sent(&self, held: &ClaimedDelivery, sent: &Sent) -> Result<bool, Error> {
        let failed = |failures: &str| Sql::new("UPDATE deliveries SET owner = NULL, failures = ").push(failures);
        let end = |status: &str| failed("failures").push(", status = '").push(status).push("', ready_at = ");
        let sql = match sent {
            Sent::Taken { receipt, shown } => {
                let sql = self.now(end("sent")).push(", error = NULL, receipt = ").bind(receipt.clone());
                sql.push(", shown = ").bind(shown.clone())
            }
            Sent::Joined => self.now(end("sent")).push(", error = NULL, joined = 1"),
            Sent::Dropped(why) => self.now(end("dropped")).push(", error = ").bind(*why),
            Sent::Failed { after, error } => {
                let sql = self.now(failed("failures + 1").push(", ready_at = "));
                sql.push(" + ").bind(micros(*after)).push(", error = ").bind(error.replace('\0', ""))
            }
            Sent::Later { after } => {
                self.now(failed("failures").push(", ready_at = ")).push(" + ").bind(micros(*after))
            }
            Sent::GivenUp { error } => {
                let sql = failed("failures + 1").push(", status = 'given_up', ready_at = ");
                self.now(sql).push(", error = ").bind(error.replace('\0', ""))
            }
        };
        let sql = sql.push(" WHERE id = ").bind(held.id.0).push(" AND attempt = ").bind(held.attempt);
        Ok(self.inner.db.execute(sql.push(" AND status = 'waiting'")).await? > 0)
    }

    /// Tries a delivery again that was given up. False: there is none.
    pub async fn retry_delivery(&self, id: DeliveryId) -> Result<bool, Error> {
        let sql = Sql::new("UPDATE deliveries SET status = 'waiting', failures = 0, owner = NULL, ready_at = ");
        let sql = self.now(sql).push(" WHERE status = 'given_up' AND id = ").bind(id.0);
        Ok(self.inner.db.execute(sql).await? > 0)
    }

    /// How many messages somebody was sent on a channel within this time, and when the first of them.
    pub async fn sent_lately(
        &self,
        channel: &str,
        target: &str,
        within: Duration,
    ) -> Result<(u32, Option<Timestamp>), Error> {
        let sql = Sql::new(
            "SELECT COUNT(*), MIN(ready_at) FROM deliveries WHERE status = 'sent' AND joined = 0 AND target = ",
        )
        .bind(target)
        .push(" AND channel = ")
        .bind(channel)
        .push(" AND ready_at > ");
        let sql = self.now(sql).push(" - ").bind(micros(within));
        let Some(row) = self.inner.db.read().await?.fetch_one(sql).await? else { return Ok((0, None)) };
        Ok((u32::try_from(row.int(0)?).unwrap_or(u32::MAX), row.int_opt(1)?.map(Timestamp)))
    }

    /// The messages about a review that can still be changed.
    pub async fn messages(&self, review: ReviewId, channel: &str) -> Result<Vec<ClaimedDelivery>, Error> {
        let sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM deliveries WHERE review_id = ").bind(review.0);
        let sql = sql.push(" AND channel = ").bind(channel).push(" AND status = 'sent' AND receipt IS NOT NULL");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(stored).collect()
    }

    /// The message to which a reaction decides, by what its receiver calls it: of which review it is, whom it went to, and
    /// what it shows.
    pub async fn message_with_reactions(&self, receipt: &str) -> Result<Option<(ReviewId, String, String)>, Error> {
        let sql = Sql::new("SELECT review_id, target, shown FROM deliveries WHERE shown IS NOT NULL AND receipt = ");
        let row = self.inner.db.read().await?.fetch_one(sql.bind(receipt)).await?;
        row.map(|row| Ok((ReviewId(row.uuid(0)?), row.text(1)?, row.text(2)?))).transpose()
    }

    /// Deliveries that stand so, newest first.
    pub async fn deliveries(&self, query: &DeliveryQuery) -> Result<Page<Delivery>, Error> {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let status = query.status.unwrap_or(DeliveryStatus::GivenUp);
        let sql = Sql::new("SELECT ")
            .push(COLUMNS)
            .push(", joined, error, created_at, ready_at FROM deliveries WHERE status = ");
        let mut sql = sql.bind(status.as_str());
        if let Some(place) = ListPlace::of(query.cursor.as_deref())? {
            sql = place.condition(sql, "created_at", "id");
        }
        let sql = sql.push(" ORDER BY created_at DESC, id DESC LIMIT ").bind(limit + 1);
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        let mut items = rows.iter().map(|row| delivery(row, status)).collect::<Result<Vec<_>, Error>>()?;
        let place = |last: &Delivery| ListPlace { at: last.created_at.0, id: last.id.0 }.encode();
        let next_cursor = super::cut(&mut items, limit, place);
        Ok(Page { items, next_cursor })
    }

    /// Removes some of what ended so long ago.
    pub async fn forget_deliveries(&self, older_than: Duration) -> Result<(), Error> {
        let sql = Sql::new(
            "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE status IN ('sent', 'dropped', 'given_up') AND ready_at < ",
        );
        let sql = self.now(sql).push(" - ").bind(micros(older_than)).push(" LIMIT 1000)");
        self.inner.db.execute(sql).await?;
        Ok(())
    }

    /// The clock by which deliveries are due: the database's, in SQLite the injected one.
    fn now(&self, sql: Sql) -> Sql {
        match &self.inner.db {
            Db::Postgres { .. } => sql.push(NOW),
            Db::Sqlite { .. } => sql.bind(self.inner.clock.now().0),
        }
    }
}

/// A row of [`COLUMNS`].
fn stored(row: &Row) -> Result<ClaimedDelivery, Error> {
    let number = |index| row.int(index).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    Ok(ClaimedDelivery {
        id: DeliveryId(row.uuid(0)?),
        channel: row.text(1)?,
        target: row.text(2)?,
        event: row.text(3)?,
        review: ReviewId(row.uuid(4)?),
        run: row.uuid_opt(5)?.map(RunId),
        place: Cursor(row.text(6)?),
        attempt: number(7)?,
        failures: number(8)?,
        receipt: row.text_opt(9)?,
    })
}

fn delivery(row: &Row, status: DeliveryStatus) -> Result<Delivery, Error> {
    let held = stored(row)?;
    Ok(Delivery {
        id: held.id,
        channel: held.channel,
        target: held.target,
        event: held.event,
        review_id: held.review,
        run_id: held.run,
        status,
        attempts: held.attempt,
        joined: row.int(10)? != 0,
        error: row.text_opt(11)?,
        created_at: Timestamp(row.int(12)?),
        at: Timestamp(row.int(13)?),
    })
}
