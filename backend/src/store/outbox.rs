//! The outbox: the cursor up to which the log was turned into deliveries, and the new deliveries. Both are written in
//! one transaction, so a crash neither loses nor repeats a notification. If several servers read the same entries, the
//! one that moves the cursor makes the deliveries.

use shared::id::DeliveryId;
use shared::log::Cursor;
use shared::time::Timestamp;

use super::db::{Conn, Row, Sql};
use super::delivery_kind::{DeliveryEvent, DeliveryKind, DeliverySubject};
use super::{Error, Store};

/// The number of rows per statement.
const CHUNK: usize = 64;

/// A delivery to add: a message to one receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// The id, derived from the entry and the receiver.
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
    /// How the receiver identifies the message to change. `None` for a new message.
    pub receipt: Option<String>,
    /// The earliest time for sending it.
    pub due_at: Timestamp,
}

impl Store {
    /// Returns the cursor up to which the log was turned into deliveries. `None` if there is none.
    pub async fn outbox(&self) -> Result<Option<Cursor>, Error> {
        let place = self.inner.db.read().await?.first(Sql::new("SELECT place FROM outbox"), Row::text).await?;
        Ok(place.map(Cursor))
    }

    /// Moves that cursor from `seen` to `to`, and adds the deliveries for the entries in between. Returns `false`, and
    /// writes nothing, if another server has moved it.
    pub async fn feed(&self, seen: Option<&Cursor>, to: &Cursor, deliveries: &[NewDelivery]) -> Result<bool, Error> {
        let (seen, to) = (seen.cloned(), to.clone());
        let (deliveries, now) = (deliveries.to_vec(), self.inner.clock.now());
        let feed = async move |mut conn: Conn| {
            if !conn.move_outbox(seen.as_ref(), &to).await? {
                conn.rollback().await?;
                return Ok(false);
            }
            conn.add_deliveries(&deliveries, now).await?;
            conn.commit().await?;
            Ok(true)
        };
        self.inner.db.write(feed).await
    }

    /// Removes the cursor, so that channels that are set up later get nothing about earlier events.
    pub async fn forget_outbox(&self) -> Result<(), Error> {
        if self.outbox().await?.is_some() {
            self.inner.db.execute(Sql::new("DELETE FROM outbox")).await?;
        }
        Ok(())
    }

    /// Adds deliveries that follow from others. Existing ones stay as they are.
    pub async fn add_deliveries(&self, deliveries: &[NewDelivery]) -> Result<(), Error> {
        if deliveries.is_empty() {
            return Ok(());
        }
        let (deliveries, now) = (deliveries.to_vec(), self.inner.clock.now());
        let add = async move |mut conn: Conn| {
            conn.add_deliveries(&deliveries, now).await?;
            Ok(conn.commit().await?)
        };
        self.inner.db.write(add).await
    }
}

impl Conn {
    /// Moves the cursor, or creates it if `seen` is `None`.
    async fn move_outbox(&mut self, seen: Option<&Cursor>, to: &Cursor) -> Result<bool, Error> {
        let to = to.0.as_str();
        if let Some(seen) = seen {
            return Ok(self.move_place(("outbox", "place"), seen.0.as_str(), to).await?);
        }
        self.shorten_idle_timeout().await?;
        let sql = Sql::new("INSERT INTO outbox (one, place) VALUES (1, ").bind(to);
        Ok(self.execute(sql.push(") ON CONFLICT (one) DO NOTHING")).await? > 0)
    }

    async fn add_deliveries(&mut self, deliveries: &[NewDelivery], now: Timestamp) -> Result<(), Error> {
        for chunk in deliveries.chunks(CHUNK) {
            let rows = chunk.iter().map(|new| {
                vec![
                    new.id.0.into(),
                    new.kind.as_str().into(),
                    new.target.as_str().into(),
                    new.event.as_str().into(),
                    new.subject.review().map(|review| review.0).into(),
                    new.subject.run().map(|run| run.0).into(),
                    new.place.0.as_str().into(),
                    "waiting".into(),
                    new.due_at.0.into(),
                    0_u32.into(),
                    0_u32.into(),
                    new.receipt.clone().into(),
                    now.0.into(),
                ]
            });
            let sql = Sql::new(
                "INSERT INTO deliveries (id, channel, target, event, review_id, run_id, place, status, ready_at, \
                 attempt, failures, receipt, created_at) ",
            );
            self.execute(sql.values(rows).push(" ON CONFLICT (id) DO NOTHING")).await?;
        }
        Ok(())
    }
}

impl NewDelivery {
    /// Derives an id from these parts: the same announcement to the same receiver always has the same id.
    pub fn id_of(parts: &[&str]) -> DeliveryId {
        use sha2::{Digest as _, Sha256};
        let digest = parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part).chain_update([0]));
        let digest: [u8; 32] = digest.finalize().into();
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&digest[..16]);
        DeliveryId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}
