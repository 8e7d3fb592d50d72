//! Who is told of an entry of the log. Pure: the same entry gives the same deliveries, with the same ids.

use shared::log::{Cursor, Entry};
use shared::notification::Occasion;
use shared::review::Review;

use super::Outlets;
use crate::store::NewDelivery;

/// The channel of programs.
pub(super) const WEBHOOK: &str = "webhook";

/// An entry that somebody may be told of.
pub(super) struct Told<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// The place in the log before it.
    pub before: &'a Cursor,
    /// What it is an occasion of.
    pub occasion: Occasion,
    /// The review that it speaks of.
    pub review: &'a Review,
}

impl Told<'_> {
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

/// The deliveries to programs.
pub(super) fn to_programs(told: &Told<'_>, outlets: &Outlets) -> Vec<NewDelivery> {
    let wanted = outlets.webhooks.iter().filter(|(_, webhook)| webhook.wants(told.occasion, told.review));
    wanted.map(|(name, _)| told.delivery(WEBHOOK, name, &[])).collect()
}
