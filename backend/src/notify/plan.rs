//! Makes deliveries of log entries. Pure: the same entry gives the same deliveries, with the same ids.

use serde::Deserialize as _;
use shared::JsonMap;
use shared::id::Username;
use shared::log::{Cursor, Entry, ReviewChange};
use shared::notification::Occasion;
use shared::review::{Assignee, Reassignment, Review};
use shared::time::Timestamp;

use super::Outlets;
use crate::store::{DeliveryEvent, DeliveryKind, NewDelivery, StoredDelivery};

/// An entry of the log of which someone may be notified.
pub(super) struct Announcement<'a> {
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

impl Announcement<'_> {
    /// Makes a delivery of the entry. Its id is derived from the entry, the kind, the target, the occasion and `parts`.
    pub fn delivery(&self, kind: DeliveryKind, target: &str, parts: &[&str]) -> NewDelivery {
        let event = DeliveryEvent::Announce(self.occasion);
        let mut all = vec![self.entry.cursor.0.as_str(), kind.as_str(), target, event.as_str()];
        all.extend(parts);
        NewDelivery {
            id: NewDelivery::id_of(&all),
            kind,
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

/// Makes the delivery that changes a message. Its id is derived from the message and `since`, so each message is
/// changed once for each reason, no matter which server notices first.
pub(super) fn update(message: &StoredDelivery, since: &str, now: Timestamp) -> NewDelivery {
    let event = DeliveryEvent::Update;
    NewDelivery {
        id: NewDelivery::id_of(&[event.as_str(), &message.id.to_string(), since]),
        kind: message.kind,
        target: message.target.clone(),
        event,
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

/// Makes the deliveries to programs. Those with a filter of roles also want reviews that an escalation or a reassignment
/// makes theirs.
pub(super) fn to_programs(notice: &Announcement<'_>, outlets: &Outlets) -> Vec<NewDelivery> {
    let event = &notice.entry.event;
    let is_first = event.kind.occasion().is_some() || notice.occasion == Occasion::Commented;
    let before = if is_first { None } else { before_new_role(notice.review, &event.data) };
    if !is_first && before.is_none() {
        return Vec::new();
    }
    let wanted = outlets.webhooks.iter().filter(|(_, webhook)| {
        let wants = |review| webhook.wants(notice.occasion, review);
        wants(notice.review) && !before.as_ref().is_some_and(wants)
    });
    wanted.map(|(name, _)| notice.delivery(DeliveryKind::Webhook, name, &[])).collect()
}

/// Returns the review as it was before a change of it gave it to another role; `None` for other changes.
fn before_new_role(review: &Review, change: &JsonMap) -> Option<Review> {
    let mut before = review.clone();
    match ReviewChange::deserialize(change).ok()? {
        ReviewChange::Escalated { role } => {
            before.escalated.pop();
            // The role is among the reviewers too; it stays if an earlier escalation added it.
            let is_new = !before.escalated.contains(&role);
            before.reviewers.roles.retain(|known| *known != role || !is_new);
        }
        ReviewChange::Reassigned { .. } => {
            let Reassignment { from, to, .. } = before.reassignments.pop()?;
            let Assignee::Role(role) = &to else { return None };
            before.reviewers.roles.retain(|known| known != role);
            for assignee in from {
                match assignee {
                    Assignee::Role(role) => before.reviewers.roles.push(role),
                    Assignee::User(user) => before.reviewers.users.push(user),
                }
            }
        }
        _ => return None,
    }
    Some(before)
}
