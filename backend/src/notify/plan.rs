//! Makes deliveries of log entries. Pure: the same entry gives the same deliveries, with the same ids.

use std::collections::BTreeMap;

use serde::Deserialize as _;
use shared::JsonMap;
use shared::log::{Announced, AnnouncedSubject, Cursor, Entry, ReviewChange};
use shared::notification::Occasion;
use shared::review::{Assignee, Reassignment, Review};
use shared::time::Timestamp;

use super::Outlets;
use crate::store::{DeliveryEvent, DeliveryKind, DeliverySubject, NewDelivery, StoredDelivery};

/// An entry of the log of which someone may be notified.
pub(super) struct Announcement<'a> {
    /// The entry. Its cursor is part of what the ids of deliveries are derived from.
    pub entry: &'a Entry,
    /// The cursor just before the entry.
    pub before: &'a Cursor,
    /// The occasion, the review or the run, and whom to notify.
    pub announced: &'a Announced,
}

impl Announcement<'_> {
    /// Makes a delivery of the entry. Its id is derived from the entry, the kind, the target, the occasion and `parts`.
    pub fn delivery(&self, kind: DeliveryKind, target: &str, parts: &[&str]) -> NewDelivery {
        let event = DeliveryEvent::Announce(self.announced.occasion);
        let mut all = vec![self.entry.cursor.0.as_str(), kind.as_str(), target, event.as_str()];
        all.extend(parts);
        NewDelivery {
            id: NewDelivery::id_of(&all),
            kind,
            target: target.to_owned(),
            event,
            subject: subject_of(&self.announced.about),
            place: self.before.clone(),
            receipt: None,
            due_at: self.entry.event.at,
        }
    }

    /// Returns the names of the receivers in the settings that want to be notified of the entry. Of the changes of a
    /// review, they are notified only of comments, and if an escalation or a reassignment gives the review to a role of
    /// theirs.
    pub fn wanted_by<'s, R>(
        &self,
        receivers: &'s BTreeMap<String, R>,
        wants: impl Fn(&R, &AnnouncedSubject) -> bool,
    ) -> Vec<&'s str> {
        let (event, Announced { occasion, about, .. }) = (&self.entry.event, self.announced);
        let is_first = event.kind.occasion().is_some() || *occasion == Occasion::Commented;
        let before = match about {
            AnnouncedSubject::Review(review) if !is_first => before_new_role(review, &event.data),
            _ => None,
        };
        if !is_first && before.is_none() {
            return Vec::new();
        }
        let before = before.map(|review| AnnouncedSubject::Review(Box::new(review)));
        let wanting = receivers.iter().filter(|&(_, receiver)| {
            wants(receiver, about) && !before.as_ref().is_some_and(|before| wants(receiver, before))
        });
        wanting.map(|(name, _)| name.as_str()).collect()
    }
}

pub(super) fn subject_of(about: &AnnouncedSubject) -> DeliverySubject {
    match about {
        AnnouncedSubject::Review(review) => of_review(review),
        AnnouncedSubject::Run(run) => DeliverySubject::Run(run.id),
    }
}

pub(super) fn of_review(review: &Review) -> DeliverySubject {
    DeliverySubject::Review(review.id, review.run_id)
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
        subject: message.subject,
        place: message.place.clone(),
        receipt: message.receipt.clone(),
        due_at: now,
    }
}

/// Reason for an update: the review is over.
pub(super) const OVER: &str = "over";
/// Reason for an update: others are asked now.
pub(super) const PASSED_ON: &str = "passed_on";

pub(super) fn to_programs(notice: &Announcement<'_>, outlets: &Outlets) -> Vec<NewDelivery> {
    let occasion = notice.announced.occasion;
    let names = notice.wanted_by(&outlets.webhooks, |webhook, about| webhook.wants(occasion, about));
    names.into_iter().map(|name| notice.delivery(DeliveryKind::Webhook, name, &[])).collect()
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
