//! Of what an entry notifies people, and whom: one rule for the messages of the server and for the notifications of the
//! browser.

use serde::Deserialize;

use super::{EntryKind, Event, ReviewChange};
use crate::access::{Act, Principal, access};
use crate::id::Username;
use crate::notification::Occasion;
use crate::review::{Assignee, Review};
use crate::run::RunSummary;

/// What an event notifies of, and whom.
#[derive(Debug, Clone, PartialEq)]
pub struct Announced {
    /// The event as notifications name it.
    pub occasion: Occasion,
    /// The review or the run that it is about.
    pub about: AnnouncedSubject,
    /// The only people to notify; `None` for everyone whom the occasion concerns, such as everyone who may decide the
    /// review now after an escalation. If a review was delegated, reassigned to a person, or given back by somebody who
    /// can no longer decide it, only those are notified who have it now.
    pub only: Option<Vec<Username>>,
}

/// A review or a run of which people and programs are notified, as it was after the commit.
#[derive(Debug, Clone, PartialEq)]
pub enum AnnouncedSubject {
    /// A review.
    Review(Box<Review>),
    /// A run.
    Run(Box<RunSummary>),
}

impl Event {
    /// Returns what the event notifies of; `None` for most events.
    pub fn announces(&self) -> Option<Announced> {
        let of_review = |occasion, review, only| {
            let about = AnnouncedSubject::Review(Box::new(review));
            Some(Announced { occasion, about, only })
        };
        if self.kind != EntryKind::ReviewUpdated {
            let occasion = self.kind.occasion()?;
            if self.kind.is_review() {
                return of_review(occasion, self.review()?, None);
            }
            let about = AnnouncedSubject::Run(Box::new(self.run()?));
            return Some(Announced { occasion, about, only: None });
        }
        match ReviewChange::deserialize(&self.data).ok()? {
            ReviewChange::Delegated { .. } => {
                let review = self.review()?;
                let to = review.delegations.last()?.to.clone();
                of_review(Occasion::Requested, review, Some(vec![to]))
            }
            ReviewChange::Reassigned { .. } => {
                let review = self.review()?;
                let only = match &review.reassignments.last()?.to {
                    Assignee::User(name) => Some(vec![name.clone()]),
                    Assignee::Role(_) => None,
                };
                of_review(Occasion::Requested, review, only)
            }
            ReviewChange::Voters { given_back, .. } if !given_back.is_empty() => {
                of_review(Occasion::Requested, self.review()?, Some(given_back))
            }
            ReviewChange::Escalated { .. } => of_review(Occasion::Requested, self.review()?, None),
            ReviewChange::Comment { .. } => of_review(Occasion::Commented, self.review()?, None),
            _ => None,
        }
    }

    /// Whether this person did it themselves, and so need not be told. What a program does with a token of theirs may be
    /// news to them.
    pub fn is_done_by(&self, name: &Username) -> bool {
        self.actor.as_ref() == Some(name) && self.token.is_none()
    }
}

/// Whether a person is notified of a run: they started it.
pub fn has_started(principal: &Principal, run: &RunSummary) -> bool {
    run.requested_by == principal.username
}

/// Whether a person is asked: the review is pending, they may decide it, and have not voted on it.
pub fn is_asked(principal: &Principal, review: &Review) -> bool {
    let voted = review.votes().iter().any(|vote| vote.by == principal.username);
    review.is_pending() && !voted && access(principal, Act::Decide(review)).is_allowed()
}

/// Whether a person takes part in a review, and so is notified of comments on it: they started its run, are asked by
/// name (or stand in for somebody who is), or have commented, claimed, delegated or decided. While votes are secret,
/// whoever has only voted is not notified: whom a comment notifies would tell who has voted.
pub fn takes_part(principal: &Principal, review: &Review) -> bool {
    let is_me = |name: &Username| *name == principal.username;
    let is_for_me = |name: &Username| is_me(name) || principal.stands_for.iter().any(|absent| absent.username == *name);
    let takes_part = is_me(&review.requested_by)
        || review.reviewers.users.iter().any(is_for_me)
        || review.delegations.iter().any(|handed| is_me(&handed.from) || is_for_me(&handed.to))
        || review.claimed_by.as_ref().is_some_and(|claim| is_me(&claim.by))
        || review.comments.iter().any(|comment| is_me(&comment.by))
        || (!review.is_secret() && review.decisions.iter().any(|decision| is_me(&decision.by)));
    takes_part && access(principal, Act::SeeReview(review)).is_allowed()
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

    #[test]
    fn who_takes_part_in_a_review_is_who_did_something_or_is_asked_by_name_and_may_see_it() {
        let at = "2026-01-01T00:00:00Z";
        let vote = json!({ "by": "pia", "at": at, "via": "human", "revision": 1, "digest": "",
            "verdict": { "type": "choose", "option": "yes" } });
        let voting = json!({ "voters": ["pia", "tom"], "votes": 1, "standing": "" });
        let takes_part = |roles: &[&str], more: serde_json::Value| {
            let mut review = json!({ "id": uuid::Uuid::nil(), "revision": 1, "digest": "", "version": 1,
                "kind": "approval", "status": "pending", "title": "", "prompt": "", "requested_by": "dev",
                "created_at": at });
            review.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            let roles = roles.iter().map(|role| (*role).to_owned()).collect();
            let principal = Principal::new("pia".parse().expect("a name"), roles);
            takes_part(&principal, &serde_json::from_value(review).expect("a review"))
        };
        for part in [
            json!({ "requested_by": "pia" }),
            json!({ "reviewers": { "users": ["pia"] } }),
            json!({ "delegations": [{ "from": "pia", "to": "tom", "at": at }] }),
            json!({ "delegations": [{ "from": "tom", "to": "pia", "at": at }] }),
            json!({ "claimed_by": { "by": "pia", "until": at } }),
            json!({ "comments": [{ "by": "pia", "at": at, "text": "Hm." }] }),
            json!({ "decisions": [vote], "voting": voting }),
        ] {
            assert!(takes_part(&["reviewer"], part.clone()), "{part}");
        }
        assert!(!takes_part(&["reviewer"], json!({})), "who only could decide is not bothered");
        let hidden = json!({ "comments": [{ "by": "pia", "at": at, "text": "Hm." }] });
        assert!(!takes_part(&[], hidden), "who may not see it any more hears nothing");
        assert!(!takes_part(&["reviewer"], json!({ "decisions": [vote], "voting": voting, "blind": true })));
    }
}
