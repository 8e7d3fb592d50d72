//! Messages in chat channels: in one in which a flow asks the people there to decide, and in those that the settings give
//! reviews, whoever asks for them. A channel gets one message each time a flow asks there, and otherwise one about each
//! review that is new to it, with the same buttons that people get. The message is updated when others are asked instead,
//! and when the review is over.

use serde_json::json;
use shared::decision::Via;
use shared::log::{Announced, AnnouncedSubject, Cursor, Entry, EntryKind, EventData, ReviewChange, ReviewUpdated};
use shared::notification::Occasion;
use shared::review::Review;

use super::Outlets;
use super::failure::{DeliveryFailure, unread};
use super::filter::Filter;
use super::plan::{Announcement, PASSED_ON, update};
use super::sender::Sender;
use super::slack::{self, ShownReview};
use crate::store::{self, DeliveryKind, DeliveryOutcome, DeliverySubject, NewDelivery, Store, StoredDelivery};

impl Outlets {
    /// Plans the deliveries to the channels of the settings.
    pub(super) fn to_channels(&self, notice: &Announcement<'_>) -> Vec<NewDelivery> {
        let Announced { occasion: Occasion::Requested, about: AnnouncedSubject::Review(review), .. } = notice.announced
        else {
            return Vec::new();
        };
        let Some(slack) = self.slack.as_ref().filter(|_| review.is_pending()) else { return Vec::new() };
        let channels = notice.wanted_by(&slack.channels, Filter::passes);
        channels.into_iter().map(|channel| notice.delivery(DeliveryKind::SlackChannel, channel, &[])).collect()
    }

    /// Plans the deliveries to the channel in which a flow asks, if an entry of the log says so.
    pub(super) async fn to_asked_channel(
        &self,
        entry: &Entry,
        before: &Cursor,
        store: &Store,
    ) -> Result<Vec<NewDelivery>, store::Error> {
        let Some((review, asked_before)) = self.slack.as_ref().and_then(|_| asked_review(entry)) else {
            return Ok(Vec::new());
        };
        let messages =
            if asked_before { store.messages(review.id, DeliveryKind::SlackChannel).await? } else { Vec::new() };
        let outdated = messages.iter().filter(|message| !self.gets_anyway(&review, &message.target));
        let mut deliveries: Vec<_> = outdated.map(|message| update(message, PASSED_ON, entry.event.at)).collect();
        // A channel of the settings gets a review when it is requested.
        let has_message = |channel: &str| {
            let was_sent = !asked_before || messages.iter().any(|message| message.target == channel);
            was_sent && self.gets_anyway(&review, channel)
        };
        let channel = channel_of(&review).filter(|channel| !has_message(channel)).map(str::to_owned);
        if let Some(channel) = channel {
            let about = AnnouncedSubject::Review(Box::new(review));
            let announced = Announced { occasion: Occasion::Requested, about, only: None };
            let notice = Announcement { entry, before, announced: &announced };
            deliveries.push(notice.delivery(DeliveryKind::SlackChannel, &channel, &[]));
        }
        Ok(deliveries)
    }

    /// Whether a review waits for people in this channel.
    pub(super) fn is_asked_in(&self, review: &Review, channel: &str) -> bool {
        review.is_pending() && (channel_of(review) == Some(channel) || self.gets_anyway(review, channel))
    }

    /// Whether the settings give a review to this channel, whoever is asked.
    fn gets_anyway(&self, review: &Review, channel: &str) -> bool {
        let filter = self.slack.as_ref().and_then(|slack| slack.channels.get(channel));
        filter.is_some_and(|filter| filter.passes_review(review))
    }
}

impl Sender {
    /// Posts a review to the channel, unless the channel is no longer asked.
    pub(super) async fn to_channel(&self, held: &StoredDelivery) -> Result<DeliveryOutcome, DeliveryFailure> {
        let DeliverySubject::Review(id, _) = held.subject else {
            return Ok(DeliveryOutcome::Dropped("a channel gets reviews only"));
        };
        let review = self.store.review(id).await.map_err(|error| unread(&error))?;
        let Some(review) = review.filter(|review| self.outlets.is_asked_in(review, &held.target)) else {
            return Ok(DeliveryOutcome::Dropped("no one is asked there any longer"));
        };
        let missing = || DeliveryFailure::lasting("Slack is not set up in this server's settings");
        let slack = self.outlets.slack.as_ref().ok_or_else(missing)?;
        let message = slack::open(Occasion::Requested, &review, &self.outlets.link(held.subject), self.clock.now());
        let decides = reactions_decide(&review, &held.target);
        let with_reactions = decides.then(|| message.with_reactions(&review)).flatten();
        let shown = with_reactions.is_some().then(|| json!(ShownReview::of(&review)).to_string());
        let message = with_reactions.unwrap_or(message);
        let posted = slack.post(&self.outlets.clients, &held.target, held.id, &message).await?;
        let receipt = serde_json::to_string(&posted.receipt).ok();
        // A message without the content of the review accepts no reactions.
        Ok(DeliveryOutcome::Sent { receipt, shown: shown.filter(|_| posted.whole) })
    }
}

/// Whether a flow asks in this channel and lets reactions decide there.
pub(super) fn reactions_decide(review: &Review, channel: &str) -> bool {
    channel_of(review) == Some(channel) && review.asked.as_ref().is_some_and(|asked| asked.reactions)
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
