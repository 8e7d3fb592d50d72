//! The position of a session in the log: it replays from the store until it meets the ring, then follows the ring. No
//! entry is missed or sent twice. A replay that has read too much ends in a snapshot.

use std::sync::Arc;
use std::time::Duration;

use shared::log::Cursor;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::hub::HubHandle;
use super::outgoing::OutgoingEntry;
use super::ring::RingRead;
use crate::store;

/// How many entries a session reads from the store at once.
const PAGE: u32 = 200;
/// How many entries it takes from the ring at once.
const BATCH: usize = 64;
/// How long it waits for a tail that is far behind.
const BEHIND: Duration = Duration::from_millis(50);

/// A session's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplayPlace {
    /// It has not asked for entries.
    Silent,
    /// It wants what comes after this, from the store.
    Replay(Cursor),
    /// It wants this number of the ring next.
    Ring(u64),
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Replayed {
    /// These entries; afterwards the session stands at this place.
    Entries(Vec<Arc<OutgoingEntry>>, ReplayPlace),
    /// The place is not of this log, comes from the future, or is too old to be replayed from: a snapshot is needed.
    Unknown,
    /// The session was too slow for the ring.
    Lagged,
}

/// Follows the log for one session.
pub(super) struct Follower {
    place: ReplayPlace,
    grown: watch::Receiver<u64>,
    /// Reads a page for a replay, whatever the session does meanwhile: a query that is dropped whenever something else
    /// comes first may never end, and one that waits for a slow client would keep its connection from others.
    reading: Option<AbortOnDropHandle<Result<Replayed, store::Error>>>,
    /// How many entries this replay has read.
    replayed: usize,
}

impl Follower {
    pub fn new(hub: &HubHandle) -> Self {
        Self { place: ReplayPlace::Silent, grown: hub.ring().grown(), reading: None, replayed: 0 }
    }

    /// Whether it reads from the store.
    pub fn replays(&self) -> bool {
        matches!(self.place, ReplayPlace::Replay(_))
    }

    /// Begins anew at a place.
    pub fn begin(&mut self, place: ReplayPlace) {
        *self = Self { place, grown: self.grown.clone(), reading: None, replayed: 0 };
    }

    /// Goes on behind entries that [`Self::next`] gave.
    pub fn go_on(&mut self, place: ReplayPlace) {
        self.place = place;
    }

    /// Waits for what comes next. It may be dropped at any time, and goes on where it was.
    pub async fn next(&mut self, hub: &HubHandle) -> Result<Replayed, store::Error> {
        match &self.place {
            ReplayPlace::Silent => std::future::pending().await,
            ReplayPlace::Ring(from) => loop {
                self.grown.mark_unchanged();
                match hub.ring().read(*from, BATCH) {
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
            ReplayPlace::Replay(_) if self.replayed > hub.max_replay() => Ok(Replayed::Unknown),
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

async fn replay(hub: HubHandle, after: Cursor) -> Result<Replayed, store::Error> {
    let mut grown = hub.ring().grown();
    loop {
        let Some(place) = hub.store().place(&after) else { return Ok(Replayed::Unknown) };
        if let Some(number) = hub.ring().after(place) {
            return Ok(Replayed::Entries(Vec::new(), ReplayPlace::Ring(number)));
        }
        let Some(page) = hub.store().log(&after, None, PAGE).await? else { return Ok(Replayed::Unknown) };
        if !page.entries.is_empty() || page.more {
            return Ok(Replayed::Entries(hub.publish(page.entries).await?, ReplayPlace::Replay(page.cursor)));
        }
        // The end of the log, and the tail has not come so far: the place may lie behind a row that the tail will read
        // together with the next ones, and only the ring knows their numbers.
        let _ = timeout(BEHIND, grown.changed()).await;
    }
}
