//! Where a session stands in the log: it replays from the store until it meets the ring, then follows the ring. No
//! entry is missed or given twice, and no order of cursors is assumed, since only the store can read them.

use std::sync::Arc;
use std::time::Duration;

use shared::log::Cursor;
use tokio::sync::watch;

use super::hub::Handle;
use super::published::Published;
use super::ring::Read;
use crate::store;

/// How many entries a session reads from the store at once.
const PAGE: u32 = 200;
/// How many entries it takes from the ring at once.
const BATCH: usize = 64;
/// How long it waits for a tail that is far behind.
const BEHIND: Duration = Duration::from_millis(50);

/// A session's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// It has not asked for entries.
    Silent,
    /// It wants what comes after this, from the store.
    Replay(Cursor),
    /// It wants this number of the ring next.
    Ring(u64),
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// These entries; afterwards the session stands at this place.
    Entries(Vec<Arc<Published>>, Place),
    /// The place is not of this log, is too old, or comes from the future: a snapshot is needed.
    Unknown,
    /// The session was too slow for the ring.
    Lagged,
}

/// Waits for what comes next at `place`. Changes nothing, so it may be dropped at any time.
pub(super) async fn next(hub: &Handle, grown: &mut watch::Receiver<u64>, place: &Place) -> Result<Next, store::Error> {
    match place {
        Place::Silent => std::future::pending().await,
        Place::Ring(from) => loop {
            grown.mark_unchanged();
            match hub.ring().read(*from, BATCH) {
                Read::Lagged => return Ok(Next::Lagged),
                Read::Entries(entries) if entries.is_empty() => {
                    if grown.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                Read::Entries(entries) => {
                    let after = Place::Ring(from + entries.len() as u64);
                    return Ok(Next::Entries(entries, after));
                }
            }
        },
        // Boxed: only few sessions replay at a time, and the others should not carry the space for it.
        Place::Replay(after) => Box::pin(replay(hub, after)).await,
    }
}

async fn replay(hub: &Handle, after: &Cursor) -> Result<Next, store::Error> {
    loop {
        if let Some(number) = hub.ring().after(after) {
            return Ok(Next::Entries(Vec::new(), Place::Ring(number)));
        }
        // What the ring will get first after its present end. If all of it is visible now, and nothing comes after
        // `after` now, then `after` stands behind all of it: that tells where in the ring to go on.
        let (head, number) = hub.ring().mark();
        let Some(ahead) = hub.store().log(&head, None, PAGE).await? else {
            tokio::time::sleep(BEHIND).await;
            continue;
        };
        let Some(page) = hub.store().log(after, None, PAGE).await? else { return Ok(Next::Unknown) };
        if !page.entries.is_empty() || page.more {
            return Ok(Next::Entries(hub.publish(page.entries).await?, Place::Replay(page.cursor)));
        }
        if ahead.more {
            tokio::time::sleep(BEHIND).await;
            continue;
        }
        return Ok(Next::Entries(Vec::new(), Place::Ring(number + ahead.entries.len() as u64)));
    }
}
