//! Makes deliveries of log entries. Pure: the same entry gives the same deliveries, with the same ids.

use shared::id::Username;
use shared::log::{Cursor, Entry};
use shared::notification::Occasion;
use shared::review::Review;
use shared::time::Timestamp;

use super::Outlets;
use crate::store::{ClaimedDelivery, NewDelivery};

/// The channel of deliveries to programs, by webhook.
pub(super) const WEBHOOK: &str = "webhook";
/// The channel of deliveries to a program that asked without a flow.
pub(super) const CALLBACK: &str = "callback";
/// The channel of deliveries to a channel in Slack, which is their target.
pub(super) const CHANNEL: &str = "slack_channel";

/// An entry of the log of which someone may be notified.
pub(super) struct Notice<'a> {
    /// The entry. Its cursor is part of what the ids of deliveries are derived from.
    pub entry: &'a Entry,
    /// The cursor just before the entry.
    pub before: &'a Cursor,
    /// The occasion for the notification.
    pub occasion: Occasion,
    /// The review in the entry.
    pub review: &'a Review,
    /// The only people to notify, if the review was delegated or given back to them. `None` notifies everyone concerned.
    pub only: Option<&'a [Username]>,
}

impl Notice<'_> {
    /// Makes a delivery of the entry. Its id is derived from the entry, the channel, the target, the occasion and
    /// `parts`.
    pub fn delivery(&self, channel: &'static str, target: &str, parts: &[&str]) -> NewDelivery {
        let event = self.occasion.as_str();
        let mut all = vec![self.entry.cursor.0.as_str(), channel, target, event];
        all.extend(parts);
        NewDelivery {
            id: NewDelivery::id_of(&all),
            channel,
            target: target.to_owned(),
            event,
            review: self.review.id,
            run: self.review.run_id,
            place: self.before.clone(),
            receipt: None,
            due_at: self.entry.event.at,
        }
    }
}

/// The event of deliveries that change a message, because its review is over or others are asked.
pub(super) const UPDATE: &str = "message.update";

/// Makes the delivery that changes a message. Its id is derived from the message and `since`, so each message is
/// changed once for each reason, no matter which server notices first.
pub(super) fn update(message: &ClaimedDelivery, channel: &'static str, since: &str, now: Timestamp) -> NewDelivery {
    NewDelivery {
        id: NewDelivery::id_of(&[UPDATE, &message.id.to_string(), since]),
        channel,
        target: message.target.clone(),
        event: UPDATE,
        review: message.review,
        run: message.run,
        place: message.place.clone(),
        receipt: message.receipt.clone(),
        due_at: now,
    }
}

/// Reason for an update: the review is over.
pub(super) const OVER: &str = "over";
/// Reason for an update: others are asked now.
pub(super) const PASSED_ON: &str = "passed_on";

/// Makes the deliveries to programs.
pub(super) fn to_programs(notice: &Notice<'_>, outlets: &Outlets) -> Vec<NewDelivery> {
    let wanted = outlets.webhooks.iter().filter(|(_, webhook)| webhook.wants(notice.occasion, notice.review));
    wanted.map(|(name, _)| notice.delivery(WEBHOOK, name, &[])).collect()
}
