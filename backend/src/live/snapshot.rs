//! The start of a session: the number of pending reviews, the most urgent of them, and the place in the log at the same
//! moment. After a restart, all consoles ask at once, so only a few snapshots are read at a time, and each is small.

use axum::extract::ws::{Utf8Bytes, close_code};
use shared::access::Principal;
use shared::api::DEFAULT_LIMIT;
use shared::id::ReviewId;
use shared::protocol::ServerMessage;

use super::close_reason::CloseReason;
use super::hub::Hub;
use super::outgoing::text;
use crate::problem;
use crate::store::{Pending, Tally};

/// The maximum total size of the reviews in a snapshot, in bytes.
const MAX_BYTES: usize = 1 << 20;

pub(super) struct LiveSnapshot {
    /// The snapshot as a message, in JSON.
    pub text: Utf8Bytes,
    /// The ids of the reviews in the snapshot.
    pub shown: Vec<ReviewId>,
    /// The counts, and the position in the log that they belong to.
    pub tally: Tally,
}

impl LiveSnapshot {
    /// Reads a snapshot for `viewer`. `with_reviews`: it contains reviews; without them, it still has their number.
    pub async fn read(hub: &Hub, viewer: &Principal, with_reviews: bool) -> Result<Self, CloseReason> {
        let _turn = hub.turns.acquire().await;
        let limit = if with_reviews { DEFAULT_LIMIT } else { 0 };
        let Pending { tally, reviews } = hub.store.pending(viewer, limit, MAX_BYTES).await.map_err(|error| {
            problem::of_store(&error);
            CloseReason::Close(close_code::AGAIN, "the reviews were not read; reconnect".to_owned())
        })?;
        let shown = reviews.iter().map(|review| review.id).collect();
        let pending = tally.numbers(viewer).0;
        let text = text(&ServerMessage::Snapshot { cursor: tally.cursor.clone(), pending, reviews });
        Ok(Self { text, shown, tally })
    }
}
