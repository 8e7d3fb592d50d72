//! Messages about comments. A person gets at most one about a review in ten minutes on each channel, however many
//! comments there are: it tells of all that wait, and quotes the newest.

use std::time::Duration;

use shared::author::Author;
use shared::id::Username;
use shared::notification::Occasion;
use shared::review::{Comment, Review};

use super::failure::DeliveryFailure;
use super::sender::Sender;
use crate::store::{DeliveryEvent, DeliveryKind, StoredDelivery};

/// The shortest time between two messages to a person about comments on one review.
const PAUSE: Duration = Duration::from_mins(10);

#[derive(Clone, Copy)]
pub(super) struct NewComments<'a> {
    pub newest: &'a Comment,
    pub count: usize,
}

impl<'a> NewComments<'a> {
    /// Returns the newest comment that `reader` has not written, as one of `count`.
    pub fn for_reader(reader: &Username, review: &'a Review, count: usize) -> Option<Self> {
        let newest = review.comments.iter().rev().find(|comment| !is_by(reader, comment))?;
        Some(Self { newest, count })
    }

    /// The line of ours before the quotation of the newest comment.
    pub fn line(&self) -> String {
        let by = Author::from(self.newest);
        match self.count {
            0 | 1 => format!("Comment by {by}:"),
            count => format!("{count} comments, the newest by {by}:"),
        }
    }
}

/// Whether the person has commented after everyone else, so that they know the other comments.
pub(super) fn has_answered(reader: &Username, review: &Review) -> bool {
    review.comments.last().is_some_and(|comment| is_by(reader, comment))
}

/// Whether a person has written a comment themselves. What a program writes with a token of theirs may be news to them.
fn is_by(reader: &Username, comment: &Comment) -> bool {
    comment.by == *reader && comment.token.is_none()
}

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
        let rest = self.store.last_sent_like(held).await?.map(|last| last.after(PAUSE).since(self.clock.now()));
        Ok(rest.filter(|rest| !rest.is_zero()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_program_answers_with_a_token_is_news_to_its_person() {
        let comment = |by: &str, token: Option<uuid::Uuid>, text: &str| json!({ "by": by, "at": "2026-01-01T00:00:00Z", "token": token, "text": text });
        let mut review = json!({ "id": uuid::Uuid::nil(), "revision": 1, "digest": "", "version": 3,
            "kind": "approval", "status": "pending", "title": "", "prompt": "", "requested_by": "dev",
            "created_at": "2026-01-01T00:00:00Z",
            "comments": [comment("ana", None, "Why?"), comment("dev", Some(uuid::Uuid::from_u128(7)), "Because.")] });
        let dev: Username = "dev".parse().expect("a name");
        let read = |review: &serde_json::Value| serde_json::from_value::<Review>(review.clone()).expect("a review");
        let by_agent = read(&review);
        assert!(!has_answered(&dev, &by_agent));
        let newest = NewComments::for_reader(&dev, &by_agent, 2).expect("news");
        assert_eq!(
            (newest.line().as_str(), newest.newest.text.as_str()),
            ("2 comments, the newest by a token of dev:", "Because.")
        );
        review["comments"][1] = comment("dev", None, "Because.");
        let by_dev = read(&review);
        assert!(has_answered(&dev, &by_dev));
        assert_eq!(NewComments::for_reader(&dev, &by_dev, 1).expect("news").newest.text, "Why?");
    }
}
