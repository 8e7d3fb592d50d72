//! Determines who is notified of a log entry. Pure: the same entry gives the same deliveries, with the same ids.

use shared::id::Username;
use shared::log::{Cursor, Entry};
use shared::notification::Occasion;
use shared::review::Review;
use shared::time::Timestamp;

use super::Outlets;
use crate::store::{ClaimedDelivery, NewDelivery};

/// The channel of programs.
pub(super) const WEBHOOK: &str = "webhook";
/// The channel of whoever asked.
pub(super) const CALLBACK: &str = "callback";
/// The channel of deliveries to a channel of a chat, which is their receiver.
pub(super) const CHANNEL: &str = "slack_channel";

/// An entry that somebody may be notified of.
pub(super) struct Notice<'a> {
    /// The entry of the log; its cursor is part of what the delivery's id is derived from.
    pub entry: &'a Entry,
    /// The place in the log before it.
    pub before: &'a Cursor,
    /// What it is an occasion of.
    pub occasion: Occasion,
    /// The review that it speaks of.
    pub review: &'a Review,
    /// The one person whom it concerns, where it was handed to them; none: whoever it concerns.
    pub only: Option<&'a Username>,
}

impl Notice<'_> {
    /// A delivery that tells of it. The parts say, together with the entry and the receiver, which it is.
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

/// What a delivery is that changes a message: its review is over, or others are asked.
pub(super) const UPDATE: &str = "message.update";

/// The change of a message since something happened to its review: one for each message, whoever finds out first.
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

/// Since its review is over.
pub(super) const OVER: &str = "over";
/// Since others are asked.
pub(super) const PASSED_ON: &str = "passed_on";

/// The deliveries to programs.
pub(super) fn to_programs(notice: &Notice<'_>, outlets: &Outlets) -> Vec<NewDelivery> {
    let wanted = outlets.webhooks.iter().filter(|(_, webhook)| webhook.wants(notice.occasion, notice.review));
    wanted.map(|(name, _)| notice.delivery(WEBHOOK, name, &[])).collect()
}
