//! Of what an entry notifies people, and whom: one rule for the messages of the server and for the notifications of the
//! browser.

use serde::Deserialize;

use super::{EntryKind, Event, ReviewChange};
use crate::access::{Act, Principal, access};
use crate::id::Username;
use crate::notification::Occasion;
use crate::review::{Assignee, Review};

impl Event {
    /// Returns the occasion for which the event notifies, its review, and the people to notify; `None` for everyone who
    /// may decide it now, as after an escalation. If a review was delegated, reassigned to a person, or given back by
    /// somebody who can no longer decide it, only those are notified who have it now.
    pub fn announces(&self) -> Option<(Occasion, Review, Option<Vec<Username>>)> {
        if self.kind != EntryKind::ReviewUpdated {
            return Some((self.kind.occasion()?, self.review()?, None));
        }
        match ReviewChange::deserialize(&self.data).ok()? {
            ReviewChange::Delegated { .. } => {
                let review = self.review()?;
                let to = review.delegations.last()?.to.clone();
                Some((Occasion::Requested, review, Some(vec![to])))
            }
            ReviewChange::Reassigned { .. } => {
                let review = self.review()?;
                let only = match &review.reassignments.last()?.to {
                    Assignee::User(name) => Some(vec![name.clone()]),
                    Assignee::Role(_) => None,
                };
                Some((Occasion::Requested, review, only))
            }
            ReviewChange::Voters { given_back, .. } if !given_back.is_empty() => {
                Some((Occasion::Requested, self.review()?, Some(given_back)))
            }
            ReviewChange::Escalated { .. } => Some((Occasion::Requested, self.review()?, None)),
            _ => None,
        }
    }
}

/// Whether a person is asked: the review is pending, they may decide it, and have not voted on it.
pub fn is_asked(principal: &Principal, review: &Review) -> bool {
    let voted = review.votes().iter().any(|vote| vote.by == principal.username);
    review.is_pending() && !voted && access(principal, Act::Decide(review)).is_allowed()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_has_paused_a_review_is_still_asked_and_who_has_voted_is_not() {
        let principal = Principal::new("pia".parse().expect("a name"), ["reviewer".to_owned()].into());
        let decision = json!({ "by": "pia", "at": "2026-01-01T00:00:00Z", "via": "human", "revision": 1, "digest": "",
            "verdict": { "type": "choose", "option": "pause" } });
        let mut review = json!({ "id": uuid::Uuid::nil(), "revision": 2, "digest": "", "version": 2,
            "kind": "checkpoint", "status": "pending", "title": "", "prompt": "", "requested_by": "dev",
            "created_at": "2026-01-01T00:00:00Z", "decisions": [decision] });
        let is_asked = |review| is_asked(&principal, &serde_json::from_value(review).expect("a review"));
        assert!(is_asked(review.clone()));
        review["voting"] = json!({ "voters": ["pia"], "votes": 1, "standing": "" });
        assert!(!is_asked(review));
    }
}
