//! The tail of the log: one task per process that reads commits in order and passes them on.

use std::ops::Deref;
use std::sync::Arc;

use shared::log::{Cursor, Entry, EntryKind};
use shared::time::Timestamp;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::count::Counter;
use super::outgoing::OutgoingEntry;
use super::parsed_entry::ParsedEntry;
use super::ring::Ring;
use super::run_visibility::Viewers;
use super::visibility_cache::VisibilityCache;
use crate::clock::SharedClock;
use crate::store::cursor::LogPlace;
use crate::store::{self, CommitFollower, Commits, LogPage, Resume, Store};
use crate::token_stream::Streams;

/// The name of the tail in metrics.
const READER: &str = "live";
const PAGE: u32 = 500;
/// The number of snapshots that are read concurrently.
const SNAPSHOTS_AT_ONCE: usize = 4;

/// An observer of the log. It is told of entries before any session, so that caches of rights are emptied in time.
pub trait Observe: Send + Sync + 'static {
    /// Called for a committed entry. Entries of runs are reported only while someone listens, and some entries twice.
    fn entry(&self, entry: &Entry);
    /// Called if the log was replaced by another one, so that everything remembered may be wrong.
    fn lost(&self);
}

/// The options of the hub.
pub struct HubOptions {
    /// The store whose log is followed.
    pub store: Store,
    /// The source of the server's time, for clients that count down.
    pub clock: SharedClock,
    /// The exchange of running agents' text.
    pub streams: Streams,
    /// The observers of the log, which are told before any session.
    pub observers: Vec<Arc<dyn Observe>>,
    /// The maximum number of entries that a session may lag behind.
    pub ring_entries: usize,
    /// The maximum size of the entries kept for slow sessions, in bytes.
    pub ring_bytes: usize,
    /// The maximum number of entries replayed to a session that reconnects. Beyond it, the session gets a snapshot.
    pub max_replay: usize,
}

impl HubOptions {
    /// Returns the default options: 4,096 entries, 32 MiB, a replay of 50,000 entries, no observers.
    pub fn new(store: Store, clock: SharedClock, streams: Streams) -> Self {
        Self {
            store,
            clock,
            streams,
            observers: Vec::new(),
            ring_entries: 4096,
            ring_bytes: 32 << 20,
            max_replay: 50_000,
        }
    }
}

/// The hub, which tails the log for all sessions. Cheap to clone.
#[derive(Clone)]
pub struct Hub(Arc<HubState>);

/// What the tail of the log and the sessions share.
pub struct HubState {
    pub(super) ring: Ring,
    pub(super) visibility: VisibilityCache,
    pub(super) store: Store,
    clock: SharedClock,
    streams: Streams,
    pub(super) max_replay: usize,
    pub(super) counter: Counter,
    /// Limits how many snapshots are read concurrently.
    pub(super) turns: Semaphore,
    pub(super) stopped: CancellationToken,
}

impl Deref for Hub {
    type Target = HubState;
    fn deref(&self) -> &HubState {
        &self.0
    }
}

/// A listener. While there is one, all entries are read, reported to observers and prepared for sending.
pub struct Listening(Hub);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.ring.leave();
    }
}

impl Hub {
    /// Starts to tail the log from its current end.
    pub async fn run(options: HubOptions) -> Result<Self, store::Error> {
        let tail = Tail::at_end(options).await?;
        let (hub, counting, commits) = (tail.hub.clone(), tail.hub.clone(), tail.commits.clone());
        let count = async move { counting.counter.run(&counting.store, &counting.stopped).await };
        tokio::spawn(hub.store.background().watch("count of reviews", &hub.stopped, count));
        let follow = store::follow(tail, commits, hub.stopped.clone());
        tokio::spawn(hub.store.background().watch("tail of the log", &hub.stopped, follow));
        Ok(hub)
    }

    /// Stops the hub. Every socket is closed with 1001.
    pub fn stop(&self) {
        self.stopped.cancel();
    }

    /// Returns the position up to which the log has been read.
    pub fn head(&self) -> Cursor {
        self.store.cursor(self.ring.head())
    }

    /// Returns the server's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Begins to listen. Entries are kept in the ring while the returned guard is held.
    pub fn listen(&self) -> Listening {
        self.ring.join();
        Listening(self.clone())
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }
}

impl HubState {
    fn place(&self, cursor: &Cursor) -> Result<LogPlace, store::Error> {
        self.store.place(cursor).ok_or(store::Error::Cursor)
    }

    /// Prepares a page of the log for sending.
    pub(super) async fn publish(&self, entries: Vec<ParsedEntry>) -> Result<Vec<Arc<OutgoingEntry>>, store::Error> {
        let mut published = Vec::with_capacity(entries.len());
        for entry in entries {
            let viewers = if_readable(self.visibility.viewers(&entry).await)?.unwrap_or(Viewers::Nobody);
            let place = self.place(&entry.entry.cursor)?;
            published.push(Arc::new(OutgoingEntry::new(entry, place, viewers)));
        }
        Ok(published)
    }
}

/// Returns `None` if what decides who may see an entry cannot be read, which must not hold up all other entries.
fn if_readable<T>(read: Result<T, store::Error>) -> Result<Option<T>, store::Error> {
    match read {
        Err(error @ store::Error::Stored(_)) => {
            tracing::error!(%error, "nobody is told of an entry of the log");
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// The tail of the log, which fills the ring.
pub(super) struct Tail {
    pub hub: Hub,
    observers: Vec<Arc<dyn Observe>>,
    commits: watch::Receiver<Commits>,
    /// The last read while nobody listened: when it was, and the number of commits until then that may have written
    /// rows that belong to no run. `None` after a read for listeners.
    skipped: Option<(Instant, u64)>,
}

impl CommitFollower for Tail {
    type Error = store::Error;
    const TROUBLE: &'static str = "the log could not be read";

    async fn advance(&mut self) -> Result<Resume, store::Error> {
        let head = self.hub.head();
        if !self.hub.ring.has_listeners() {
            return self.skip(head).await;
        }
        self.skipped = None;
        let Some(LogPage { entries, cursor, more }) = self.hub.store.log(&head, None, PAGE).await? else {
            return self.start_anew().await;
        };
        if entries.iter().any(|entry| entry.event.kind.is_review() && entry.event.kind != EntryKind::ReviewViewed) {
            self.hub.counter.changed();
        }
        let mut parsed = Vec::with_capacity(entries.len());
        for entry in entries {
            self.observers.iter().for_each(|observer| observer.entry(&entry));
            let entry = ParsedEntry::new(entry);
            // Learns from the whole page first: whoever may decide a run's first review may see the start of that run
            // too.
            self.hub.visibility.learn(&entry);
            parsed.push(entry);
        }
        let published = self.hub.publish(parsed).await?;
        self.hub.store.has_read(READER, &cursor);
        self.hub.ring.push(published, self.hub.place(&cursor)?);
        Ok(Resume::if_more(more))
    }
}

impl Tail {
    pub async fn at_end(options: HubOptions) -> Result<Self, store::Error> {
        let commits = options.store.commits();
        let head = options.store.head().await?;
        let head = options.store.place(&head).ok_or(store::Error::Cursor)?;
        let hub = Hub(Arc::new(HubState {
            ring: Ring::new(head, options.ring_entries, options.ring_bytes),
            visibility: VisibilityCache::new(options.store.clone()),
            store: options.store,
            clock: options.clock,
            streams: options.streams,
            max_replay: options.max_replay,
            counter: Counter::new(),
            turns: Semaphore::new(SNAPSHOTS_AT_ONCE),
            stopped: CancellationToken::new(),
        }));
        Ok(Self { hub, observers: options.observers, commits, skipped: None })
    }

    /// Advances while nobody listens: only entries that belong to no run are read and reported to observers. If there
    /// are none, the log is not read for each commit, but as often as without commits.
    async fn skip(&mut self, head: Cursor) -> Result<Resume, store::Error> {
        let commits = self.commits.borrow().beside_runs;
        let is_known = |(at, before): (Instant, u64)| before == commits && at.elapsed() < Self::POLL;
        if self.skipped.is_some_and(is_known) {
            return Ok(Resume::OnCommit);
        }
        let begun = Instant::now();
        let Some(LogPage { entries, cursor, more }) = self.hub.store.log_beside_runs(&head, PAGE).await? else {
            return self.start_anew().await;
        };
        for entry in &entries {
            self.observers.iter().for_each(|observer| observer.entry(entry));
        }
        self.hub.store.has_read(READER, &cursor);
        let skipped = self.hub.ring.skip(self.hub.place(&cursor)?, || self.hub.visibility.forget());
        let more = more || !skipped;
        self.skipped = (!more).then_some((begun, commits));
        Ok(Resume::if_more(more))
    }

    async fn start_anew(&self) -> Result<Resume, store::Error> {
        tracing::warn!("the log is a different one than before; every socket has to subscribe again");
        let head = self.hub.store.head().await?;
        self.observers.iter().for_each(|observer| observer.lost());
        self.hub.ring.reset(self.hub.place(&head)?);
        self.hub.counter.changed();
        Ok(Resume::OnCommit)
    }
}
