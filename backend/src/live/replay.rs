//! The position of a session in the log. It replays from the store until it meets the ring, then follows the ring. No
//! entry is missed or sent twice. A replay of too many entries ends in a snapshot.

use std::sync::Arc;
use std::time::Duration;

use shared::log::Cursor;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::hub::Hub;
use super::outgoing::OutgoingEntry;
use super::parsed_entry::ParsedEntry;
use super::ring::RingRead;
use crate::store;

const PAGE: u32 = 200;
/// The maximum number of entries taken from the ring at once.
const BATCH: usize = 64;
/// How long a session waits for a tail that lags behind.
const BEHIND: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplayPlace {
    /// The session has not subscribed.
    Silent,
    /// The session replays from the store what follows this cursor.
    Replay(Cursor),
    /// The session needs the entry of this number from the ring next.
    Ring(u64),
}

#[derive(Debug)]
pub(super) enum Replayed {
    /// The next entries, and the position of the session after them.
    Entries(Vec<Arc<OutgoingEntry>>, ReplayPlace),
    /// The position belongs to another log, is ahead of this one, or is too old for a replay: a snapshot is needed.
    Unknown,
    /// The session was too slow for the ring.
    Lagged,
}

/// Follows the log for one session.
pub(super) struct Follower {
    /// The position, which advances to the one that [`Self::next`] returns with entries once they are sent.
    pub place: ReplayPlace,
    grown: watch::Receiver<u64>,
    /// The task that reads a page for a replay, whatever the session does meanwhile. A query that is dropped whenever
    /// another event comes first might never end, and one that waits for a slow client would occupy its connection.
    reading: Option<AbortOnDropHandle<Result<Replayed, store::Error>>>,
    /// The number of entries that this replay has read.
    replayed: usize,
}

impl Follower {
    pub fn new(hub: &Hub) -> Self {
        Self { place: ReplayPlace::Silent, grown: hub.ring.grown(), reading: None, replayed: 0 }
    }

    /// Whether the session still replays from the store.
    pub fn replays(&self) -> bool {
        matches!(self.place, ReplayPlace::Replay(_))
    }

    /// Starts anew at a position.
    pub fn begin(&mut self, place: ReplayPlace) {
        *self = Self { place, grown: self.grown.clone(), reading: None, replayed: 0 };
    }

    /// Waits for the next entries. Cancel safe.
    pub async fn next(&mut self, hub: &Hub) -> Result<Replayed, store::Error> {
        match &self.place {
            ReplayPlace::Silent => std::future::pending().await,
            ReplayPlace::Ring(from) => loop {
                self.grown.mark_unchanged();
                match hub.ring.read(*from, BATCH) {
                    RingRead::Lagged => return Ok(Replayed::Lagged),
                    RingRead::Entries(entries) if entries.is_empty() => {
                        if self.grown.changed().await.is_err() {
                            std::future::pending::<()>().await;
                        }
                    }
                    RingRead::Entries(entries) => {
                        let after = ReplayPlace::Ring(from + entries.len() as u64);
                        return Ok(Replayed::Entries(entries, after));
                    }
                }
            },
            ReplayPlace::Replay(_) if self.replayed > hub.max_replay => Ok(Replayed::Unknown),
            ReplayPlace::Replay(after) => {
                let begin = || AbortOnDropHandle::new(tokio::spawn(replay(hub.clone(), after.clone())));
                let read = self.reading.get_or_insert_with(begin).await;
                self.reading = None;
                let next = read.map_err(|error| store::Error::Stored(format!("a replay failed: {error}")))?;
                if let Ok(Replayed::Entries(entries, _)) = &next {
                    self.replayed += entries.len();
                }
                next
            }
        }
    }
}

async fn replay(hub: Hub, after: Cursor) -> Result<Replayed, store::Error> {
    let mut grown = hub.ring.grown();
    loop {
        let Some(place) = hub.store.place(&after) else { return Ok(Replayed::Unknown) };
        if let Some(number) = hub.ring.after(place) {
            return Ok(Replayed::Entries(Vec::new(), ReplayPlace::Ring(number)));
        }
        let Some(page) = hub.store.log(&after, None, PAGE).await? else { return Ok(Replayed::Unknown) };
        if !page.entries.is_empty() || page.more {
            let entries = page.entries.into_iter().map(ParsedEntry::new).collect();
            return Ok(Replayed::Entries(hub.publish(entries).await?, ReplayPlace::Replay(page.cursor)));
        }
        // This is the end of the log, but the tail lags behind. The position may be inside a row that the tail will
        // read together with the next ones, and only the ring knows their numbers.
        let _ = timeout(BEHIND, grown.changed()).await;
    }
}
