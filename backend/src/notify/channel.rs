//! Messages in chat channels: in one in which a flow asks the people there to decide, and in those that the settings give
//! reviews, whoever asks for them. A channel gets one message each time a flow asks there, and otherwise one about each
//! review that is new to it, with the same buttons that people get. If both are the case, one message is enough, unless it
//! lacks the reactions that the flow wants. A message is updated when others are asked instead, and when the review is
//! over.

use serde_json::json;
use shared::decision::Via;
use shared::log::{Announced, AnnouncedSubject, Cursor, Entry, EntryKind, EventData, ReviewChange, ReviewUpdated};
use shared::notification::Occasion;
use shared::review::Review;

use super::Outlets;
use super::failure::DeliveryFailure;
use super::filter::Filter;
use super::plan::{Announcement, PASSED_ON, update};
use super::sender::Sender;
use super::slack::{self, ShownReview};
use crate::store::{
    self, DeliveryEvent, DeliveryKind, DeliveryOutcome, DeliverySubject, NewDelivery, Store, StoredDelivery,
};

impl Outlets {
    pub(super) fn to_channels(&self, notice: &Announcement<'_>) -> Vec<NewDelivery> {
        let Announced { occasion: Occasion::Requested, about: AnnouncedSubject::Review(review), .. } = notice.announced
        else {
            return Vec::new();
        };
        let Some(slack) = self.slack.as_ref().filter(|_| review.is_pending()) else { return Vec::new() };
        let channels = notice.wanted_by(&slack.channels, Filter::passes);
        channels.into_iter().map(|channel| notice.delivery(DeliveryKind::SlackChannel, channel, &[])).collect()
    }

    /// Plans the deliveries to channels if an entry of the log says who is asked now: to the one in which a flow asks,
    /// and to those that are no longer asked. `planned` are deliveries of earlier entries that are not stored yet.
    pub(super) async fn to_asked_channel(
        &self,
        entry: &Entry,
        before: &Cursor,
        planned: &[NewDelivery],
        store: &Store,
    ) -> Result<Vec<NewDelivery>, store::Error> {
        let Some((review, asking)) = self.slack.as_ref().and_then(|_| asking_of(entry)) else {
            return Ok(Vec::new());
        };
        let messages = match asking {
            Asking::First => Vec::new(),
            Asking::Next | Asking::Reassigned => store.messages(review.id, DeliveryKind::SlackChannel).await?,
        };
        let stays = |message: &StoredDelivery| match asking {
            // A flow that asks again where it asked before does so in a new message.
            Asking::First | Asking::Next => self.gets_anyway(&review, &message.target),
            Asking::Reassigned => self.is_asked_in(&review, &message.target),
        };
        let outdated = messages.iter().filter(|message| !stays(message));
        let mut deliveries: Vec<_> = outdated.map(|message| update(message, PASSED_ON, entry.event.at)).collect();
        let Some(channel) = channel_of(&review).map(str::to_owned) else { return Ok(deliveries) };
        let has_message = match asking {
            // The settings give it the review with this entry.
            Asking::First => self.gets_anyway(&review, &channel),
            Asking::Next => {
                // A message without reactions does not do if the flow wants them. One that waits gets them when it is
                // sent.
                let is_there = messages.iter().any(|message| message.target == channel);
                self.gets_anyway(&review, &channel)
                    && (is_there && !reactions_decide(&review, &channel)
                        || planned.iter().any(|planned| asks_in(planned, &review, &channel))
                        || store.is_request_waiting(review.id, DeliveryKind::SlackChannel, &channel).await?)
            }
            Asking::Reassigned => true,
        };
        if !has_message {
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
        let review = self.store.review(id).await?;
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
        let posted = slack.post(&held.target, held.id, &message).await?;
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

fn asks_in(delivery: &NewDelivery, review: &Review, channel: &str) -> bool {
    delivery.kind == DeliveryKind::SlackChannel
        && delivery.event == DeliveryEvent::Announce(Occasion::Requested)
        && delivery.subject.review() == Some(review.id)
        && delivery.target == channel
}

/// How an entry says who is asked.
#[derive(Clone, Copy)]
enum Asking {
    /// Nobody was asked before.
    First,
    /// The flow asks the next handler.
    Next,
    /// An admin gave the review to others. The flow asks where it asked before.
    Reassigned,
}

/// Returns the review of an entry that says who is asked.
fn asking_of(entry: &Entry) -> Option<(Review, Asking)> {
    match entry.event.kind {
        EntryKind::ReviewRequested => Some((entry.event.review()?, Asking::First)),
        EntryKind::ReviewUpdated => match entry.event.read()? {
            EventData::ReviewUpdated(ReviewUpdated { review, change: ReviewChange::Asked }) => {
                Some((*review, Asking::Next))
            }
            EventData::ReviewUpdated(ReviewUpdated { review, change: ReviewChange::Reassigned { .. } }) => {
                Some((*review, Asking::Reassigned))
            }
            _ => None,
        },
        _ => None,
    }
}
