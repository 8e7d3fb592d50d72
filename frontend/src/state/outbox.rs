//! Decisions in progress: held back for a moment in which they can be undone, sent, answered. Nothing claims success
//! before the server does.

use std::collections::HashMap;
use std::sync::Arc;

use shared::api::{Decided, DecisionEffect};
use shared::decision::DecisionRequest;
use shared::error::{Code, Problem};
use shared::id::ReviewId;
use shared::review::Review;
use shared::time::Timestamp;

/// How long a decision can be undone before it is sent, in microseconds.
pub const UNDO: i64 = 5_000_000;

/// How long the answer to a decision stays to be looked at, in microseconds.
const LINGER: i64 = 60_000_000;

/// How long before its deadline a decision is sent at the latest, in microseconds: the timer must not be first.
const MARGIN: i64 = 2_000_000;

/// How many bytes of bodies a page that is being closed may still send: 64 KiB by the Fetch standard, and some are left.
const SENT_ON_LEAVING: usize = 60 * 1024;

/// Until when a decision on a review can be undone: for five seconds, but not into its deadline.
pub fn held_until(review: &Review, now: Timestamp) -> Timestamp {
    let latest = review.expires_at.map_or(i64::MAX, |at| at.0 - MARGIN);
    Timestamp((now.0 + UNDO).min(latest).max(now.0))
}

/// How far a decision has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// It can be undone until then.
    Held(Timestamp),
    /// It is on its way.
    Sending,
    /// The server has it.
    Accepted(DecisionEffect, Timestamp),
    /// It was not sent, or nobody knows: it can be sent again under the same key.
    Unsent(Problem),
    /// The server refused it.
    Refused(Problem),
}

/// One decision under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    /// What was decided, as it was shown.
    pub review: Arc<Review>,
    /// What is sent.
    pub request: DecisionRequest,
    /// Its idempotency key.
    pub key: String,
    /// What the button said.
    pub says: String,
    /// How far it has come.
    pub stage: Stage,
}

/// The decisions under way, one a review.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outbox {
    by_review: HashMap<ReviewId, Sending>,
}

impl Outbox {
    /// The decision on a review.
    pub fn get(&self, id: ReviewId) -> Option<&Sending> {
        self.by_review.get(&id)
    }

    /// Holds a decision back. Refused while another one on the same review is on its way, or was accepted.
    pub fn hold(&mut self, sending: Sending) -> bool {
        let id = sending.review.id;
        let busy = self.is_under_way(id);
        if !busy {
            self.by_review.insert(id, sending);
        }
        !busy
    }

    /// Whether the browser would send a decision also from a page that is being closed, with the others that would be
    /// sent then.
    pub fn fits(&self, request: &DecisionRequest) -> bool {
        let size = |request: &DecisionRequest| serde_json::to_string(request).map_or(usize::MAX, |body| body.len());
        let others = self.unanswered().map(|sending| size(&sending.request)).sum::<usize>();
        others.saturating_add(size(request)) <= SENT_ON_LEAVING
    }

    /// The decisions that the server has not answered yet. Closing the page breaks off what is on its way; sent again, it
    /// counts once.
    pub fn unanswered(&self) -> impl Iterator<Item = &Sending> {
        self.by_review.values().filter(|sending| matches!(sending.stage, Stage::Held(_) | Stage::Sending))
    }

    /// Whether a decision on a review did not arrive, or may not have.
    pub fn is_unsent(&self, id: ReviewId) -> bool {
        self.get(id).is_some_and(|sending| matches!(sending.stage, Stage::Unsent(_)))
    }

    /// Whether a decision on a review is held back or being sent.
    pub fn is_under_way(&self, id: ReviewId) -> bool {
        self.get(id).is_some_and(|sending| matches!(sending.stage, Stage::Held(_) | Stage::Sending))
    }

    /// Takes a decision back that was not sent yet.
    pub fn undo(&mut self, id: ReviewId) -> Option<Sending> {
        let held = self.get(id).is_some_and(|sending| matches!(sending.stage, Stage::Held(_)));
        if held { self.by_review.remove(&id) } else { None }
    }

    /// The reviews whose decisions can still be undone.
    pub fn held(&self) -> Vec<ReviewId> {
        let held = self.by_review.values().filter(|sending| matches!(sending.stage, Stage::Held(_)));
        held.map(|sending| sending.review.id).collect()
    }

    /// The review ended before a held decision was sent: it never will be.
    pub fn overtake(&mut self, id: ReviewId) {
        if let Some(sending) = self.by_review.get_mut(&id).filter(|sending| matches!(sending.stage, Stage::Held(_))) {
            sending.stage = Stage::Refused(Problem::new(Code::ReviewResolved));
        }
    }

    /// The decision that can be undone and was made last.
    pub fn newest_held(&self) -> Option<&Sending> {
        let until = |sending: &Sending| match sending.stage {
            Stage::Held(until) => Some(until),
            _ => None,
        };
        self.by_review.values().filter(|sending| until(sending).is_some()).max_by_key(|sending| until(sending))
    }

    /// The decisions whose time to undo is over at `now`, or all that are held where there is no `now`; they are on
    /// their way from here on.
    pub fn take_due(&mut self, now: Option<Timestamp>) -> Vec<Sending> {
        let mut due = Vec::new();
        for sending in self.by_review.values_mut() {
            if let Stage::Held(until) = sending.stage
                && now.is_none_or(|now| until <= now)
            {
                sending.stage = Stage::Sending;
                due.push(sending.clone());
            }
        }
        due
    }

    /// Sends one again, or at once.
    pub fn take(&mut self, id: ReviewId) -> Option<Sending> {
        let sending = self.by_review.get_mut(&id)?;
        matches!(sending.stage, Stage::Held(_) | Stage::Unsent(_)).then(|| {
            sending.stage = Stage::Sending;
            sending.clone()
        })
    }

    /// What the server said to the decision with this key.
    pub fn answered(&mut self, id: ReviewId, key: &str, answer: Result<&Decided, Problem>, now: Timestamp) {
        let Some(sending) = self.by_review.get_mut(&id).filter(|sending| sending.key == key) else { return };
        sending.stage = match answer {
            Ok(decided) => Stage::Accepted(decided.outcome, now),
            Err(problem)
                if matches!(
                    problem.code,
                    Code::Unavailable | Code::Internal | Code::TooManyRequests | Code::Unauthenticated
                ) =>
            {
                Stage::Unsent(problem)
            }
            Err(problem) => Stage::Refused(problem),
        };
    }

    /// Forgets a decision that has come to its end, so that another one can be made.
    pub fn dismiss(&mut self, id: ReviewId) {
        if self.get(id).is_some_and(|sending| !matches!(sending.stage, Stage::Sending)) {
            self.by_review.remove(&id);
        }
    }

    /// The reviews for which a decision is under way, or was answered a moment ago.
    pub fn reviews(&self) -> Vec<ReviewId> {
        self.by_review.keys().copied().collect()
    }

    /// Lets go what was accepted long enough ago, but not of what is `open`. Whether there was anything.
    pub fn sweep(&mut self, now: Timestamp, open: Option<ReviewId>) -> bool {
        let before = self.by_review.len();
        self.by_review.retain(|id, sending| match sending.stage {
            Stage::Accepted(_, at) => Some(*id) == open || now.0 - at.0 < LINGER,
            _ => true,
        });
        self.by_review.len() < before
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::decision::Verdict;

    use super::*;
    use crate::state::fixtures::review;

    fn sending(until: i64) -> Sending {
        let review = Arc::new(review(1, 1, json!({})));
        let request = DecisionRequest {
            revision: 1,
            digest: review.digest.clone(),
            verdict: Verdict::Text { text: "Shorter".into() },
            edits: shared::JsonMap::new(),
            comment: None,
            metadata: shared::JsonMap::new(),
        };
        Sending { review, request, key: "k".into(), says: "Ask".into(), stage: Stage::Held(Timestamp(until)) }
    }

    #[test]
    fn a_decision_can_be_undone_only_until_it_is_sent() {
        let mut outbox = Outbox::default();
        let one = sending(5);
        assert!(outbox.hold(one.clone()));
        assert!(!outbox.hold(one.clone()), "the second click does nothing");
        assert!(outbox.take_due(Some(Timestamp(4))).is_empty());
        assert_eq!(outbox.take_due(Some(Timestamp(5))).len(), 1);
        assert_eq!(outbox.undo(one.review.id), None);
        assert!(outbox.take_due(None).is_empty(), "it is sent once");
    }

    #[test]
    fn a_decision_is_sent_before_the_deadline_takes_it() {
        let due = |at: i64| review(1, 1, json!({ "expires_at": Timestamp(at) }));
        assert_eq!(held_until(&due(60_000_000), Timestamp(0)).0, UNDO);
        assert_eq!(held_until(&due(4_000_000), Timestamp(0)).0, 2_000_000);
        assert_eq!(held_until(&due(1_000_000), Timestamp(0)).0, 0, "at once");
        assert_eq!(held_until(&review(1, 1, json!({})), Timestamp(7)).0, 7 + UNDO);
    }

    #[test]
    fn what_a_page_that_is_being_closed_could_not_send_is_not_held_back() {
        let mut outbox = Outbox::default();
        let mut long = sending(5);
        long.request.verdict = Verdict::Text { text: "x".repeat(SENT_ON_LEAVING / 2) };
        assert!(outbox.fits(&long.request));
        outbox.hold(long.clone());
        assert!(!outbox.fits(&long.request), "both are too long together");
        assert!(outbox.fits(&sending(5).request));
        outbox.take_due(None);
        assert_eq!(outbox.unanswered().count(), 1, "what is on its way is broken off, too");
    }

    #[test]
    fn a_held_decision_on_what_somebody_else_has_ended_is_not_sent() {
        let mut outbox = Outbox::default();
        let one = sending(5);
        outbox.hold(one.clone());
        assert_eq!(outbox.held(), [one.review.id]);
        outbox.overtake(one.review.id);
        assert!(outbox.take_due(None).is_empty() && outbox.take(one.review.id).is_none());
        assert!(matches!(outbox.get(one.review.id).unwrap().stage, Stage::Refused(_)));
    }

    #[test]
    fn what_never_arrived_keeps_its_key_and_can_be_sent_again() {
        let mut outbox = Outbox::default();
        let id = sending(5).review.id;
        outbox.hold(sending(5));
        outbox.take_due(None);
        outbox.answered(id, "k", Err(Problem::new(Code::Unavailable)), Timestamp(9));
        assert!(matches!(outbox.get(id).unwrap().stage, Stage::Unsent(_)));
        assert_eq!(outbox.take(id).unwrap().key, "k");
        outbox.answered(id, "k", Err(Problem::new(Code::ReviewResolved)), Timestamp(9));
        assert!(matches!(outbox.get(id).unwrap().stage, Stage::Refused(_)));
        assert_eq!(outbox.take(id), None);
    }

    #[test]
    fn what_was_accepted_is_let_go_after_a_while_unless_it_is_open() {
        let mut outbox = Outbox::default();
        assert!(outbox.hold(sending(5)));
        let id = outbox.reviews()[0];
        assert!(!outbox.sweep(Timestamp(i64::MAX), None), "what is not answered yet stays");
        outbox.by_review.get_mut(&id).unwrap().stage = Stage::Accepted(DecisionEffect::Resolved, Timestamp(10));
        assert!(!outbox.sweep(Timestamp(9 + LINGER), None) && !outbox.sweep(Timestamp(10 + LINGER), Some(id)));
        assert!(outbox.sweep(Timestamp(10 + LINGER), None) && outbox.reviews().is_empty());
    }
}
