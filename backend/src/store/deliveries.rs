//! Deliveries and their outcomes. They are claimed under leases (`store/leases.rs`), like tasks, but from their own
//! table, so that a slow receiver never delays a run. Sent deliveries are kept for a while, to count the recent
//! messages to a person; a message that can be changed is kept at least until its review is resolved.

use std::time::Duration;

use shared::api::{DEFAULT_LIMIT, MAX_LIMIT, Page};
use shared::id::{DeliveryId, ReviewId, RunId};
use shared::log::Cursor;
use shared::notification::{Delivery, DeliveryQuery, DeliveryStatus, Occasion};
use shared::time::Timestamp;

use super::cursor::ListPlace;
use super::db::{Conn, Row, Sql};
use super::delivery_kind::{DeliveryEvent, DeliveryKind, DeliveryLane, DeliverySubject};
use super::leases::{Lease, NextReady, Readiness, Selection, WorkTable, micros};
use super::{Error, Store};

const COLUMNS: &str = "id, channel, target, event, review_id, run_id, place, attempt, failures, receipt, owner";
/// The number of deliveries removed per transaction, since other writers wait meanwhile.
const FORGOTTEN_AT_ONCE: u32 = 1000;

/// A delivery as it is stored: one that a sender has claimed, or one that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelivery {
    /// The id, the same for every attempt.
    pub id: DeliveryId,
    /// The kind of receiver.
    pub kind: DeliveryKind,
    /// The name of the webhook or the person, or the channel in Slack.
    pub target: String,
    /// What the delivery does.
    pub event: DeliveryEvent,
    /// The review or the run that the event is about.
    pub subject: DeliverySubject,
    /// The cursor just before the log entry that is announced.
    pub place: Cursor,
    /// The number of claims so far. An outcome counts only if it is still the same.
    pub attempt: u32,
    /// How often the delivery has failed, or its sender ended without recording an outcome.
    pub failures: u32,
    /// The receipt of the message: its own once it was sent, or that of the message to change.
    pub receipt: Option<String>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The receiver accepted the message.
    Sent {
        /// How the receiver identifies the message, if it can be changed later.
        receipt: Option<String>,
        /// What the message shows, if reactions to it decide.
        shown: Option<String>,
    },
    /// The delivery was part of another message, or changed one.
    Joined,
    /// The message is no longer useful; the reason.
    Dropped(&'static str),
    /// The attempt failed, and another follows.
    Failed {
        /// The wait before the next attempt.
        after: Duration,
        /// The error of the receiver or the network, for admins.
        error: String,
    },
    /// The receiver got too many messages lately, so this one is sent later.
    Postponed {
        /// The wait before the next attempt. This does not count as a failure.
        after: Duration,
    },
    /// The delivery failed for good.
    GivenUp {
        /// The error of the receiver or the network, for admins.
        error: String,
    },
}

impl DeliveryOutcome {
    /// The message was accepted, and cannot be changed later.
    pub const SENT: Self = Self::Sent { receipt: None, shown: None };
}

impl Store {
    /// Claims up to `limit` deliveries of a lane that are due, oldest first. Leaves out those that the sender still has
    /// `held`.
    pub async fn claim_deliveries(
        &self,
        lane: DeliveryLane,
        sender: &str,
        limit: u32,
        lease: Duration,
        held: &[Lease],
    ) -> Result<Vec<StoredDelivery>, Error> {
        let claimed = |row: &Row| {
            let before = stored(row)?;
            let failures = before.failures.saturating_add(u32::from(row.text_opt(10)?.is_some()));
            Ok(StoredDelivery { attempt: before.attempt.saturating_add(1), failures, ..before })
        };
        let first = move |of: &Selection<'_>| first(lane, limit, of);
        self.claim_rows(WorkTable::Deliveries, COLUMNS, (sender, lease), held, first, claimed).await
    }

    /// Returns when the next delivery of a lane is due, or its lease ends, beside those that are `held`. `None` if none
    /// is waiting.
    pub async fn next_delivery(&self, lane: DeliveryLane, held: &[Lease]) -> Result<Option<NextReady>, Error> {
        self.next_ready(held, |of| first(lane, 1, of)).await
    }

    /// Records the outcomes of an attempt, all or none. Returns for each whether it was recorded; if not, another
    /// server has claimed the delivery since.
    pub async fn settle(&self, outcomes: &[(&StoredDelivery, DeliveryOutcome)]) -> Result<Vec<bool>, Error> {
        let statements: Vec<Sql> = outcomes.iter().map(|(held, outcome)| self.outcome(held, outcome)).collect();
        let settle = async move |mut conn: Conn| {
            let mut recorded = Vec::with_capacity(statements.len());
            for sql in statements {
                recorded.push(conn.execute(sql).await? > 0);
            }
            conn.commit().await?;
            Ok(recorded)
        };
        self.inner.db.write(settle).await
    }

    /// Builds the statement that records an outcome.
    fn outcome(&self, held: &StoredDelivery, outcome: &DeliveryOutcome) -> Sql {
        let set = |failures: u32, status: DeliveryStatus| {
            let sql = Sql::new("UPDATE deliveries SET owner = NULL, failures = ").bind(failures);
            sql.push(", status = ").bind(status.as_str()).push(", ready_at = ")
        };
        let error_of = |sql: Sql, error: &str| sql.push(", error = ").bind(error.replace('\0', ""));
        let sql = match outcome {
            DeliveryOutcome::Sent { receipt, shown } => {
                let sql = self.now(set(held.failures, DeliveryStatus::Sent)).push(", error = NULL, receipt = ");
                sql.bind(receipt.clone()).push(", shown = ").bind(shown.clone())
            }
            DeliveryOutcome::Joined => {
                self.now(set(held.failures, DeliveryStatus::Sent)).push(", error = NULL, joined = 1")
            }
            DeliveryOutcome::Dropped(why) => error_of(self.now(set(held.failures, DeliveryStatus::Dropped)), why),
            DeliveryOutcome::Failed { after, error } => {
                error_of(self.time_in(set(held.failures.saturating_add(1), DeliveryStatus::Waiting), *after), error)
            }
            DeliveryOutcome::Postponed { after } => self.time_in(set(held.failures, DeliveryStatus::Waiting), *after),
            DeliveryOutcome::GivenUp { error } => {
                error_of(self.now(set(held.failures.saturating_add(1), DeliveryStatus::GivenUp)), error)
            }
        };
        let sql = sql.push(" WHERE id = ").bind(held.id.0).push(" AND attempt = ").bind(held.attempt);
        sql.push(" AND status = 'waiting'")
    }

    /// Retries a delivery that was given up. Returns `false` if there is no such delivery.
    pub async fn retry_delivery(&self, id: DeliveryId) -> Result<bool, Error> {
        let sql = Sql::new("UPDATE deliveries SET status = 'waiting', failures = 0, owner = NULL, ready_at = ");
        let sql = self.now(sql).push(" WHERE status = 'given_up' AND id = ").bind(id.0);
        Ok(self.inner.db.execute(sql).await? > 0)
    }

    /// Counts the messages that a receiver of this kind was sent within this time. Also returns when the first was
    /// sent.
    pub async fn sent_since(
        &self,
        kind: DeliveryKind,
        target: &str,
        within: Duration,
    ) -> Result<(u32, Option<Timestamp>), Error> {
        let sql = Sql::new(
            "SELECT COUNT(*), MIN(ready_at) FROM deliveries WHERE status = 'sent' AND joined = 0 AND target = ",
        )
        .bind(target)
        .push(" AND channel = ")
        .bind(kind.as_str())
        .push(" AND ready_at > ");
        let sql = self.now(sql).push(" - ").bind(micros(within));
        let Some(row) = self.inner.db.read().await?.fetch_one(sql).await? else { return Ok((0, None)) };
        Ok((u32::try_from(row.int(0)?).unwrap_or(u32::MAX), row.int_opt(1)?.map(Timestamp)))
    }

    /// Returns the deliveries that announce the same event of the same subject to the same receiver as this one, and
    /// that no sender holds.
    pub async fn waiting_like(&self, held: &StoredDelivery) -> Result<Vec<StoredDelivery>, Error> {
        let sql = like(Sql::new("SELECT ").push(COLUMNS), held).push(" AND status = 'waiting' AND owner IS NULL");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        rows.iter().map(stored).collect()
    }

    /// Returns when the receiver of this delivery was last sent a message about the same event of the same subject.
    pub async fn last_sent_like(&self, held: &StoredDelivery) -> Result<Option<Timestamp>, Error> {
        let sql = like(Sql::new("SELECT MAX(ready_at)"), held).push(" AND status = 'sent'");
        Ok(self.inner.db.read().await?.first(sql, Row::int_opt).await?.flatten().map(Timestamp))
    }

    /// Returns the messages about a review that can still be changed. Those that this version cannot read are left out,
    /// so that they do not keep others from being sent.
    pub async fn messages(&self, review: ReviewId, kind: DeliveryKind) -> Result<Vec<StoredDelivery>, Error> {
        let sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM deliveries WHERE review_id = ").bind(review.0);
        let sql = sql.push(" AND channel = ").bind(kind.as_str()).push(" AND status = 'sent' AND receipt IS NOT NULL");
        let rows = self.inner.db.read().await?.fetch(sql).await?;
        let read = rows.iter().filter_map(|row| {
            let unread = |error: &Error| {
                tracing::error!(%error, %review, delivery = ?row.uuid(0).ok(), "a message cannot be read, and stays as it is");
            };
            stored(row).inspect_err(unread).ok()
        });
        Ok(read.collect())
    }

    /// Whether a message that asks this receiver about a review is still to be sent.
    pub async fn is_request_waiting(&self, review: ReviewId, kind: DeliveryKind, target: &str) -> Result<bool, Error> {
        let sql = Sql::new("SELECT 1 FROM deliveries WHERE status = 'waiting' AND review_id = ").bind(review.0);
        let sql = sql.push(" AND channel = ").bind(kind.as_str()).push(" AND target = ").bind(target);
        let sql = sql.push(" AND event = ").bind(DeliveryEvent::Announce(Occasion::Requested).as_str());
        Ok(self.inner.db.read().await?.fetch_one(sql.push(" LIMIT 1")).await?.is_some())
    }

    /// Returns the message with this receipt, if reactions to it decide: its review, its target, and what it shows.
    pub async fn message_with_reactions(&self, receipt: &str) -> Result<Option<(ReviewId, String, String)>, Error> {
        let sql = Sql::new("SELECT review_id, target, shown FROM deliveries WHERE shown IS NOT NULL AND receipt = ");
        let row = self.inner.db.read().await?.fetch_one(sql.bind(receipt)).await?;
        row.map(|row| Ok((ReviewId(row.uuid(0)?), row.text(1)?, row.text(2)?))).transpose()
    }

    /// Lists deliveries with a status, newest first; by default those that were given up.
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

    /// Removes up to 1,000 deliveries that ended longer ago than this. Messages that can still be changed are kept
    /// while their review is pending, or its end was not announced yet. With the delivery that posted the end of a run,
    /// the URL of its callback is removed. Returns whether there may be more.
    pub async fn forget_deliveries(&self, older_than: Duration) -> Result<bool, Error> {
        let announced = self.outbox().await?.and_then(|place| self.place(&place)).map_or(i64::MAX, |place| place.seq);
        let sql = Sql::new(
            "DELETE FROM deliveries WHERE id IN (SELECT d.id FROM deliveries d \
             WHERE d.status IN ('sent', 'dropped', 'given_up') AND d.ready_at < ",
        );
        let sql = self.now(sql).push(" - ").bind(micros(older_than));
        // Scalar subqueries instead of EXISTS: each review is looked up by its id, and PostgreSQL never reads all
        // pending ones.
        let sql = sql.push(
            " AND (d.receipt IS NULL OR (\
             COALESCE((SELECT v.status FROM reviews v WHERE v.id = d.review_id), '') <> 'pending' \
             AND COALESCE((SELECT MAX(l.seq) FROM log l WHERE l.run_id = \
             (SELECT v.run_id FROM reviews v WHERE v.id = d.review_id)), 0) <= ",
        );
        let sql = sql.bind(announced).push(")) LIMIT ").bind(FORGOTTEN_AT_ONCE);
        // Deliveries that are being retried at this moment are skipped.
        let sql = sql.push(if self.inner.db.is_postgres() { " FOR UPDATE OF d SKIP LOCKED)" } else { ")" });
        let sql = sql.push(" RETURNING channel, review_id, run_id");
        let forget = async move |mut conn: Conn| {
            let rows = conn.fetch(sql).await?;
            let mut runs = Vec::new();
            for row in &rows {
                if row.text(0)? == DeliveryKind::Callback.as_str() && row.uuid_opt(1)?.is_none() {
                    runs.extend(row.uuid_opt(2)?);
                }
            }
            // A run ends once, so nothing needs the URL any more.
            conn.execute(Sql::new("DELETE FROM run_callbacks WHERE run_id").among(runs)).await?;
            conn.commit().await?;
            Ok(rows.len() as u64 >= u64::from(FORGOTTEN_AT_ONCE))
        };
        self.inner.db.write(forget).await
    }
}

impl StoredDelivery {
    /// The lease under which the delivery is held.
    pub fn lease(&self) -> Lease {
        Lease { id: self.id.0, attempt: self.attempt }
    }
}

/// Selects the deliveries with the subject, receiver and event of this one.
fn like(sql: Sql, held: &StoredDelivery) -> Sql {
    let sql = sql.push(" FROM deliveries WHERE ");
    let sql = match held.subject {
        DeliverySubject::Review(review, _) => sql.push("review_id = ").bind(review.0),
        DeliverySubject::Run(run) => sql.push("review_id IS NULL AND run_id = ").bind(run.0),
    };
    let sql = sql.push(" AND channel = ").bind(held.kind.as_str()).push(" AND target = ").bind(held.target.clone());
    sql.push(" AND event = ").bind(held.event.as_str())
}

/// Selects the waiting deliveries of a lane that come first.
fn first(lane: DeliveryLane, limit: u32, of: &Selection<'_>) -> Sql {
    let sql = of.columns(Sql::new("SELECT "), Readiness::Lease).push(" FROM deliveries WHERE status = 'waiting'");
    let sql = sql.push(lane.condition());
    of.ready(sql, Readiness::Lease).push(" ORDER BY ready_at, id LIMIT ").bind(limit).push(of.lock)
}

fn number(row: &Row, index: usize) -> Result<u32, Error> {
    Ok(u32::try_from(row.int(index)?).unwrap_or(u32::MAX))
}

/// Reads the ids of the review and the run in a row of [`COLUMNS`].
fn ids(row: &Row) -> Result<(Option<ReviewId>, Option<RunId>), Error> {
    Ok((row.uuid_opt(4)?.map(ReviewId), row.uuid_opt(5)?.map(RunId)))
}

/// Reads a row of [`COLUMNS`].
fn stored(row: &Row) -> Result<StoredDelivery, Error> {
    let (kind, event) = (row.text(1)?, row.text(3)?);
    let unknown = || Error::Stored(format!("a delivery of the unknown kind `{kind}` and event `{event}`"));
    let nothing = || Error::Stored("a delivery about neither a review nor a run".to_owned());
    let (review, run) = ids(row)?;
    Ok(StoredDelivery {
        id: DeliveryId(row.uuid(0)?),
        kind: DeliveryKind::of_word(&kind).ok_or_else(unknown)?,
        target: row.text(2)?,
        event: DeliveryEvent::of_word(&event).ok_or_else(unknown)?,
        subject: DeliverySubject::of_ids(review, run).ok_or_else(nothing)?,
        place: Cursor(row.text(6)?),
        attempt: number(row, 7)?,
        failures: number(row, 8)?,
        receipt: row.text_opt(9)?,
    })
}

/// Reads a row of [`COLUMNS`] and more for a list, also one that this version could not send.
fn delivery(row: &Row, status: DeliveryStatus) -> Result<Delivery, Error> {
    let (review_id, run_id) = ids(row)?;
    Ok(Delivery {
        id: DeliveryId(row.uuid(0)?),
        channel: row.text(1)?,
        target: row.text(2)?,
        event: row.text(3)?,
        review_id,
        run_id,
        status,
        attempts: number(row, 7)?,
        joined: row.int(11)? != 0,
        error: row.text_opt(12)?,
        created_at: Timestamp(row.int(13)?),
        at: Timestamp(row.int(14)?),
    })
}
