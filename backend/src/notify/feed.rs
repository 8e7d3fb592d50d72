//! Follows the log and makes deliveries of its entries, off the path of commits. The cursor up to which this was done
//! is stored together with the deliveries, so a crash loses none and makes none twice, with any number of servers. Only
//! one of several servers makes deliveries; meanwhile the others do not read the log for them.

use std::sync::Arc;
use std::time::Duration;

use shared::log::{AnnouncedSubject, Cursor};
use shared::notification::{Channel, Occasion};
use tokio::sync::watch;

use super::Outlets;
use super::callback::runs_to_call_back;
use super::people::People;
use super::plan::{self, Announcement, OVER, update};
use super::recipients;
use crate::clock::SharedClock;
use crate::store::{self, CommitFollower, DeliveryKind, LogPage, NewDelivery, Resume, Store};

/// The feeder's name in metrics.
const READER: &str = "notifications";
const PAGE: u32 = 500;
/// The number of entries without deliveries after which the cursor is stored nevertheless.
const UNSAVED: usize = 2000;
/// The time after which the cursor is stored if nothing is left to read. Runs are not archived before.
const UNSAVED_FOR: Duration = Duration::from_mins(1);
/// The number of deliveries that are collected before they are stored, limited since other writers wait meanwhile.
/// Deliveries of one entry are stored together.
const AT_ONCE: usize = 500;
/// The wait before the next look, while another server makes the deliveries.
const OTHER_SERVER_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Feeder {
    store: Store,
    clock: SharedClock,
    outlets: Arc<Outlets>,
    people: People,
    /// Signalled whenever deliveries were added.
    added: watch::Sender<()>,
    /// The cursor as it is stored.
    saved: Cursor,
    /// The cursor up to which the log was read.
    read: Cursor,
    unsaved: usize,
    /// The uptime when everything that was read was last stored.
    saved_at: Duration,
    /// Whether another server made the deliveries when this one last looked.
    is_elsewhere: bool,
}

impl CommitFollower for Feeder {
    type Error = store::Error;
    const TROUBLE: &'static str = "could not create notifications from the log";
    /// The deliveries of several commits are stored together.
    const GATHER: Duration = Duration::from_millis(50);

    async fn advance(&mut self) -> Result<Resume, store::Error> {
        if self.is_elsewhere {
            let before = self.saved.clone();
            self.restart().await?;
            self.is_elsewhere = self.saved != before;
            if self.is_elsewhere {
                return Ok(self.leave());
            }
        }
        let Some(LogPage { entries, cursor, more }) = self.store.log(&self.read, None, PAGE).await? else {
            tracing::warn!("the log is a different one than before; there are no notifications for earlier entries");
            self.store.forget_outbox().await?;
            self.restart().await?;
            return Ok(Resume::OnCommit);
        };
        let mut deliveries = Vec::new();
        let mut before = self.read.clone();
        let uptime = self.clock.uptime();
        if self.read == self.saved {
            self.saved_at = uptime;
        }
        self.unsaved += entries.len();
        let people = self.people.concerned(&entries, &self.store, &self.outlets, self.clock.now()).await?;
        let called_back = runs_to_call_back(&entries, &self.store).await?;
        for entry in &entries {
            let is_called_back = entry.event.run_id.is_some_and(|run| called_back.contains(&run));
            let may_be_wanted = is_called_back || !people.is_empty() || self.outlets.may_want(entry);
            if let Some(announced) = may_be_wanted.then(|| entry.event.announces()).flatten() {
                let notice = Announcement { entry, before: &before, announced: &announced };
                deliveries.extend(plan::to_programs(&notice, &self.outlets));
                deliveries.extend(self.outlets.to_asker(&notice, &called_back, &self.store).await?);
                deliveries.extend(recipients::plan(&notice, &people, &self.outlets));
                deliveries.extend(self.outlets.to_channels(&notice));
                if let (Occasion::Resolved, AnnouncedSubject::Review(review)) = (announced.occasion, &announced.about)
                    && self.outlets.slack.is_some()
                {
                    for kind in [DeliveryKind::Person(Channel::Slack), DeliveryKind::SlackChannel] {
                        let messages = self.store.messages(review.id, kind).await?;
                        let updates = messages.iter().map(|message| update(message, OVER, entry.event.at));
                        deliveries.extend(updates);
                    }
                }
            }
            let asked = self.outlets.to_asked_channel(entry, &before, &deliveries, &self.store).await?;
            deliveries.extend(asked);
            before = entry.cursor.clone();
            if deliveries.len() >= AT_ONCE && !self.store_up_to(&entry.cursor, std::mem::take(&mut deliveries)).await? {
                return Ok(self.leave());
            }
        }
        let is_due = !more && cursor != self.saved && uptime.saturating_sub(self.saved_at) >= UNSAVED_FOR;
        let saves = !deliveries.is_empty() || self.unsaved > UNSAVED || is_due;
        if saves && !self.store_up_to(&cursor, deliveries).await? {
            return Ok(self.leave());
        }
        self.store.has_read(READER, &cursor);
        self.read = cursor;
        Ok(Resume::if_more(more))
    }
}

impl Feeder {
    /// Creates a feeder that continues at the stored cursor, or at the head of the log if none is stored.
    pub async fn new(
        store: Store,
        clock: SharedClock,
        outlets: Arc<Outlets>,
        added: watch::Sender<()>,
    ) -> Result<Self, store::Error> {
        let (saved, saved_at) = (place(&store).await?, clock.uptime());
        let read = saved.clone();
        let people = People::default();
        Ok(Self { store, clock, outlets, people, added, saved, read, unsaved: 0, saved_at, is_elsewhere: false })
    }

    /// Stores deliveries, and the cursor up to which they are complete. Returns `false`, and stores nothing, if another
    /// server has moved the cursor.
    async fn store_up_to(&mut self, place: &Cursor, deliveries: Vec<NewDelivery>) -> Result<bool, store::Error> {
        if !self.store.feed(Some(&self.saved), place, &deliveries).await? {
            self.restart().await?;
            self.is_elsewhere = true;
            return Ok(false);
        }
        // What is stored is not read again, even if the rest of the page fails.
        self.saved = place.clone();
        self.read = place.clone();
        self.unsaved = 0;
        if !deliveries.is_empty() {
            tracing::debug!(deliveries = deliveries.len(), "deliveries were added");
            self.added.send_replace(());
        }
        Ok(true)
    }

    /// Leaves the deliveries to the server that has moved the cursor.
    fn leave(&self) -> Resume {
        self.store.has_read(READER, &self.saved);
        Resume::After(OTHER_SERVER_PAUSE)
    }

    async fn restart(&mut self) -> Result<(), store::Error> {
        self.saved = place(&self.store).await?;
        self.read = self.saved.clone();
        self.unsaved = 0;
        self.people.forget();
        Ok(())
    }
}

/// Returns the stored cursor. If there is none, stores the head of the log, and returns that.
async fn place(store: &Store) -> Result<Cursor, store::Error> {
    loop {
        if let Some(place) = store.outbox().await? {
            return Ok(place);
        }
        let head = store.head().await?;
        if store.feed(None, &head, &[]).await? {
            return Ok(head);
        }
    }
}
