//! Messages in a chat channel, if a flow asks the people there to decide. Each time the channel is asked, it gets one
//! message, with the same buttons that people get. The message is updated when others are asked instead, and when the
//! review is over.

use serde_json::json;
use shared::decision::Via;
use shared::log::{Cursor, Entry, EntryKind, EventData, ReviewChange, ReviewUpdated};
use shared::notification::Occasion;
use shared::review::Review;

use super::Outlets;
use super::failure::{DeliveryFailure, unread};
use super::plan::{Announcement, PASSED_ON, update};
use super::sender::Sender;
use super::slack::{self, ShownReview};
use crate::store::{self, DeliveryKind, DeliveryOutcome, NewDelivery, Store, StoredDelivery};

impl Outlets {
    /// Plans the deliveries to channels that follow from an entry of the log.
    pub(super) async fn to_channel(
        &self,
        entry: &Entry,
        before: &Cursor,
        store: &Store,
    ) -> Result<Vec<NewDelivery>, store::Error> {
        let Some((review, asked_before)) = self.slack.as_ref().and_then(|_| asked_review(entry)) else {
            return Ok(Vec::new());
        };
        let mut deliveries = Vec::new();
        if asked_before {
            let messages = store.messages(review.id, DeliveryKind::SlackChannel).await?;
            deliveries.extend(messages.iter().map(|message| update(message, PASSED_ON, entry.event.at)));
        }
        if let Some(channel) = channel_of(&review) {
            let notice = Announcement { entry, before, occasion: Occasion::Requested, review: &review, only: None };
            deliveries.push(notice.delivery(DeliveryKind::SlackChannel, channel, &[]));
        }
        Ok(deliveries)
    }
}

impl Sender {
    /// Posts a review to the channel, unless the channel is no longer asked.
    pub(super) async fn to_channel(&self, held: &StoredDelivery) -> Result<DeliveryOutcome, DeliveryFailure> {
        let review = self.store.review(held.review).await.map_err(|error| unread(&error))?;
        let Some(review) = review.filter(|review| is_asked(review, &held.target)) else {
            return Ok(DeliveryOutcome::Dropped("no one is asked there any longer"));
        };
        let missing = || DeliveryFailure::lasting("Slack is not set up in this server's settings");
        let slack = self.outlets.slack.as_ref().ok_or_else(missing)?;
        let message = slack::open(Occasion::Requested, &review, &self.outlets.link(held.review), self.clock.now());
        let with_reactions = reactions_decide(&review).then(|| message.with_reactions(&review)).flatten();
        let shown = with_reactions.is_some().then(|| json!(ShownReview::of(&review)).to_string());
        let message = with_reactions.unwrap_or(message);
        let posted = slack.post(&self.outlets.clients, &held.target, held.id, &message).await?;
        let receipt = serde_json::to_string(&posted.receipt).ok();
        // A message without the content of the review accepts no reactions.
        Ok(DeliveryOutcome::Sent { receipt, shown: shown.filter(|_| posted.whole) })
    }
}

/// Whether the asked channel lets reactions decide.
pub(super) fn reactions_decide(review: &Review) -> bool {
    review.asked.as_ref().is_some_and(|asked| asked.reactions)
}

/// Whether a review waits for people in this channel.
pub(super) fn is_asked(review: &Review, channel: &str) -> bool {
    review.is_pending() && channel_of(review) == Some(channel)
}

fn channel_of(review: &Review) -> Option<&str> {
    review.asked.as_ref().filter(|asked| asked.via == Via::Slack).map(|asked| asked.by.as_str())
}

/// Returns the review of an entry that says who is asked, and whether others were asked before.
fn asked_review(entry: &Entry) -> Option<(Review, bool)> {
    match entry.event.kind {
        EntryKind::ReviewRequested => Some((entry.event.review()?, false)),
        EntryKind::ReviewUpdated => match entry.event.read()? {
            EventData::ReviewUpdated(ReviewUpdated { review, change: ReviewChange::Asked }) => Some((*review, true)),
            _ => None,
        },
        _ => None,
    }
}
