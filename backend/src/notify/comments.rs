//! Messages about comments. A person gets at most one about a review in ten minutes on each channel, however many
//! comments there are: it tells of all that wait, and quotes the newest.

use std::time::Duration;

use shared::id::Username;
use shared::notification::Occasion;
use shared::review::{Comment, Review};

use super::failure::{DeliveryFailure, unread};
use super::sender::Sender;
use crate::store::{DeliveryEvent, DeliveryKind, StoredDelivery};

/// The shortest time between two messages to a person about comments on one review.
const PAUSE: Duration = Duration::from_mins(10);

/// The comments of which a message tells.
#[derive(Clone, Copy)]
pub(super) struct NewComments<'a> {
    pub newest: &'a Comment,
    pub count: usize,
}

impl<'a> NewComments<'a> {
    /// Returns the newest comment by others than `reader`, as one of `count`.
    pub fn for_reader(reader: &Username, review: &'a Review, count: usize) -> Option<Self> {
        let newest = review.comments.iter().rev().find(|comment| comment.by != *reader)?;
        Some(Self { newest, count })
    }

    /// The line of ours before the quotation of the newest comment.
    pub fn line(&self) -> String {
        let by = &self.newest.by;
        match self.count {
            0 | 1 => format!("Comment by {by}:"),
            count => format!("{count} comments, the newest by {by}:"),
        }
    }
}

/// Whether the person has commented after everyone else, so that they know the other comments.
pub(super) fn has_answered(reader: &Username, review: &Review) -> bool {
    review.comments.last().is_some_and(|comment| comment.by == *reader)
}

/// Whether a delivery tells a person of a comment.
fn tells_of_comment(held: &StoredDelivery) -> bool {
    matches!(held.kind, DeliveryKind::Person(_)) && held.event == DeliveryEvent::Announce(Occasion::Commented)
}

impl Sender {
    /// Adds to a group the deliveries of further comments on the same reviews that still wait for the end of a pause or
    /// a delay: the message is about the newest comment in any case. The reviews are read afterwards, so none of these
    /// comments is left out.
    pub async fn with_further_comments(&self, mut group: Vec<StoredDelivery>) -> Vec<StoredDelivery> {
        for index in 0..group.len() {
            let held = &group[index];
            let is_first = group[..index].iter().all(|other| other.subject != held.subject || !tells_of_comment(other));
            if !tells_of_comment(held) || !is_first {
                continue;
            }
            match self.store.waiting_like(held).await {
                Ok(further) => group.extend(further),
                // They wait, and are sent later.
                Err(error) => tracing::warn!(%error, "could not read the further comments of a notification"),
            }
        }
        group
    }

    /// Returns the rest of the pause after the last message to the person about comments on this review.
    pub async fn comment_pause(&self, held: &StoredDelivery) -> Result<Option<Duration>, DeliveryFailure> {
        let last = self.store.last_sent_like(held).await.map_err(|error| unread(&error))?;
        let rest = last.map(|last| last.after(PAUSE).since(self.clock.now()));
        Ok(rest.filter(|rest| !rest.is_zero()))
    }
}
