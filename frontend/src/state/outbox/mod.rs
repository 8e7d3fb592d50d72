//! Decisions under way: held back for a moment in which they can be undone, sent, answered. Nothing here says that it
//! worked before the server has. What could not be sent waits here until somebody sends it again or decides anew.

mod kept;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use shared::api::{Decided, DecisionEffect};
use shared::decision::DecisionRequest;
use shared::error::{Code, Problem};
use shared::id::{ReviewId, Username};
use shared::review::Review;
use shared::time::Timestamp;

use super::drafts::may_ask_password;
pub use kept::{review_of_storage_key, storage_key, storage_prefix};

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
    Unsent(Reason),
    /// The server refused it.
    Refused(Problem),
    /// The review was over before it was sent: it never will be.
    Overtaken,
}

/// Why a decision is not sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// No answer came, or one that says to try again.
    Problem(Problem),
    /// No answer came, and the connection is back since.
    Connected,
    /// The page was loaded anew meanwhile.
    Kept,
}

/// One decision under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    /// The review that was decided.
    pub id: ReviewId,
    /// Its title, as it was shown.
    pub title: String,
    /// What is sent.
    pub request: DecisionRequest,
    /// Its idempotency key.
    pub key: String,
    /// What the button said.
    pub says: String,
    /// Whether it is kept in the memory of the page only, since a password may be in it.
    pub in_memory: bool,
    /// How far it has come.
    pub stage: Stage,
}

impl Sending {
    /// A decision that can be undone until then.
    pub fn held(review: &Review, request: DecisionRequest, key: String, says: String, until: Timestamp) -> Self {
        let (id, title, in_memory) = (review.id, review.title.clone(), may_ask_password(review));
        Self { id, title, request, key, says, in_memory, stage: Stage::Held(until) }
    }

    /// Whether the content has changed since it was decided.
    pub fn is_behind(&self, review: &Review) -> bool {
        self.request.revision < review.revision
    }

    /// Whether a review has it, as a decision or a vote of this person. One on an earlier revision is another one.
    fn is_in(&self, review: &Review, by: &Username) -> bool {
        let DecisionRequest { revision, verdict, edits, comment, metadata, .. } = &self.request;
        review.decisions.iter().any(|decision| {
            decision.by == *by
                && decision.revision >= *revision
                && decision.verdict == *verdict
                && decision.edits == *edits
                && decision.comment == *comment
                && decision.metadata == *metadata
        })
    }
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
        let id = sending.id;
        let busy = self.is_under_way(id);
        if !busy {
            self.by_review.insert(id, sending);
        }
        !busy
    }

    /// Whether the browser would send a decision also from a page that is being closed, with the others that would be
    /// sent then.
    pub fn fits(&self, request: &DecisionRequest) -> bool {
        let others = self.unanswered().map(|sending| size(&sending.request)).fold(0, usize::saturating_add);
        others.saturating_add(size(request)) <= SENT_ON_LEAVING
    }

    /// The decisions that the server has not answered yet, now that the page is being closed, each with whether the browser
    /// still sends it: the smallest first, as long as they fit.
    pub fn on_leaving(&self) -> Vec<(&Sending, bool)> {
        let mut all: Vec<_> = self.unanswered().map(|sending| (size(&sending.request), sending)).collect();
        all.sort_by_key(|(size, sending)| (*size, sending.id));
        let mut sum = 0_usize;
        let fits = |(size, sending)| {
            sum = sum.saturating_add(size);
            (sending, sum <= SENT_ON_LEAVING)
        };
        all.into_iter().map(fits).collect()
    }

    /// The decisions that the server has not answered yet. Closing the page breaks off what is on its way; sent again, it
    /// counts once.
    pub fn unanswered(&self) -> impl Iterator<Item = &Sending> {
        self.by_review.values().filter(|sending| matches!(sending.stage, Stage::Held(_) | Stage::Sending))
    }

    /// The reviews whose decisions were not sent, in a fixed order.
    pub fn unsent(&self) -> Vec<ReviewId> {
        let unsent = self.by_review.values().filter(|sending| matches!(sending.stage, Stage::Unsent(_)));
        let mut unsent: Vec<_> = unsent.map(|sending| sending.id).collect();
        unsent.sort_unstable();
        unsent
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
        held.map(|sending| sending.id).collect()
    }

    /// The reviews whose decisions wait to be sent: now that they can still be undone, or again.
    pub fn waiting(&self) -> Vec<ReviewId> {
        let waits = |sending: &&Sending| matches!(sending.stage, Stage::Held(_) | Stage::Unsent(_));
        self.by_review.values().filter(waits).map(|sending| sending.id).collect()
    }

    /// The review ended before its decision was sent: it never will be. Whether there was one.
    pub fn overtake(&mut self, id: ReviewId) -> bool {
        let waits = |sending: &&mut Sending| matches!(sending.stage, Stage::Held(_) | Stage::Unsent(_));
        let sending = self.by_review.get_mut(&id).filter(waits);
        sending.map(|sending| sending.stage = Stage::Overtaken).is_some()
    }

    /// Forgets a decision of this person that may not have arrived, where its review shows that it has. Whether there was
    /// one.
    pub fn arrive(&mut self, review: &Review, by: &Username) -> bool {
        let arrived = self.is_unsent(review.id) && self.get(review.id).is_some_and(|sending| sending.is_in(review, by));
        if arrived {
            self.by_review.remove(&review.id);
        }
        arrived
    }

    /// The connection is back: what got no answer can be sent now. Whether there is anything.
    pub fn connect(&mut self) -> bool {
        let mut any = false;
        for sending in self.by_review.values_mut() {
            if let Stage::Unsent(Reason::Problem(Problem { code: Code::Unavailable, .. })) = sending.stage {
                sending.stage = Stage::Unsent(Reason::Connected);
                any = true;
            }
        }
        any
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
                Stage::Unsent(Reason::Problem(problem))
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

/// How many bytes a decision has as it is sent.
fn size(request: &DecisionRequest) -> usize {
    serde_json::to_string(request).map_or(usize::MAX, |body| body.len())
}

/// What is said once a decision was taken back, `others` being how many are still on their way.
pub fn undone(title: &str, others: usize) -> String {
    match others {
        0 => format!("Undone: “{title}”. Nothing was sent."),
        1 => format!("Undone: “{title}”. 1 other decision is still being sent."),
        others => format!("Undone: “{title}”. {others} other decisions are still being sent."),
    }
}

/// `2 decisions not sent`.
pub fn not_sent(number: usize) -> String {
    format!("{number} {} not sent", if number == 1 { "decision" } else { "decisions" })
}
