//! Decisions on their way to the server: first held for some seconds in which they can be undone, then sent, then
//! answered. A decision counts as successful only once the server has accepted it. Those that could not be sent wait
//! here until the person sends them again or decides anew.

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
pub use kept::{lock_name, review_of_storage_key, storage_key, storage_prefix};

/// How long a decision can be undone before it is sent, in microseconds.
pub const UNDO: i64 = 5_000_000;

/// How long an accepted decision stays visible, in microseconds.
const LINGER: i64 = 60_000_000;

/// How long before the review's deadline a decision is sent at the latest, in microseconds, so that the timer is not
/// first.
const MARGIN: i64 = 2_000_000;

/// The total size of request bodies that a closing page may still send, in bytes. The Fetch standard allows 64 KiB;
/// some is left as a margin.
const SENT_ON_LEAVING: usize = 60 * 1024;

/// The time until which a decision on a review can be undone: five seconds from `now`, or until shortly before the
/// deadline.
pub fn held_until(review: &Review, now: Timestamp) -> Timestamp {
    let latest = review.expires_at.map_or(i64::MAX, |at| at.0 - MARGIN);
    Timestamp((now.0 + UNDO).min(latest).max(now.0))
}

/// How far a decision has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// It can be undone until this time; then it is sent.
    Held(Timestamp),
    /// It was sent and is not answered yet.
    Sending,
    /// The server accepted it, with this effect, at this time.
    Accepted(DecisionEffect, Timestamp),
    /// It was not sent, or it is unknown whether it arrived. It can be sent again with the same key.
    Unsent(Reason),
    /// The server refused it.
    Refused(Problem),
    /// The review was resolved before the decision was sent, so it never will be.
    Overtaken,
}

/// Why a decision is unsent.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// No answer came, or one that allows another attempt.
    Problem(Problem),
    /// No answer came, and the connection has been restored since.
    Connected,
    /// The page was reloaded meanwhile.
    Kept,
}

/// A decision and its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Sending {
    pub id: ReviewId,
    /// The title of the review when it was decided.
    pub title: String,
    pub request: DecisionRequest,
    pub key: String,
    /// The text of the button that was pressed.
    pub says: String,
    /// Whether it is kept only in the memory of the page, since it may contain a password.
    pub in_memory: bool,
    pub stage: Stage,
}

impl Sending {
    /// A decision that can be undone until `until`.
    pub fn held(review: &Review, request: DecisionRequest, key: String, says: String, until: Timestamp) -> Self {
        let (id, title, in_memory) = (review.id, review.title.clone(), may_ask_password(review));
        Self { id, title, request, key, says, in_memory, stage: Stage::Held(until) }
    }

    /// Whether the review has a newer revision than the one that was decided.
    pub fn is_behind(&self, review: &Review) -> bool {
        self.request.revision < review.revision
    }

    /// Whether the review contains this decision, as a decision or a vote of `by`. The same on an earlier revision does
    /// not count.
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

/// The decisions that are not settled yet, at most one for each review.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outbox {
    by_review: HashMap<ReviewId, Sending>,
}

impl Outbox {
    /// The decision on a review; `None` if there is none here.
    pub fn get(&self, id: ReviewId) -> Option<&Sending> {
        self.by_review.get(&id)
    }

    /// Adds a decision that can still be undone, replacing an earlier one. Returns `false`, and adds nothing, while
    /// another one on the same review is held or being sent.
    pub fn hold(&mut self, sending: Sending) -> bool {
        let id = sending.id;
        let busy = self.is_under_way(id);
        if !busy {
            self.by_review.insert(id, sending);
        }
        !busy
    }

    /// Whether the browser could still send a decision if the page were closed now, together with the unanswered ones.
    pub fn fits(&self, request: &DecisionRequest) -> bool {
        let others = self.unanswered().map(|sending| size(&sending.request)).fold(0, usize::saturating_add);
        others.saturating_add(size(request)) <= SENT_ON_LEAVING
    }

    /// The unanswered decisions, for a page that is being closed, each with whether the browser still sends it: the
    /// smallest first, as long as they fit.
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

    /// The decisions that the server has not answered yet. Closing the page aborts requests in flight; if such a
    /// decision is sent again, it counts once.
    pub fn unanswered(&self) -> impl Iterator<Item = &Sending> {
        self.by_review.values().filter(|sending| matches!(sending.stage, Stage::Held(_) | Stage::Sending))
    }

    /// The reviews with unsent decisions, ordered by id.
    pub fn unsent(&self) -> Vec<ReviewId> {
        let unsent = self.by_review.values().filter(|sending| matches!(sending.stage, Stage::Unsent(_)));
        let mut unsent: Vec<_> = unsent.map(|sending| sending.id).collect();
        unsent.sort_unstable();
        unsent
    }

    /// Whether the decision on a review is unsent, or may not have arrived.
    pub fn is_unsent(&self, id: ReviewId) -> bool {
        self.get(id).is_some_and(|sending| matches!(sending.stage, Stage::Unsent(_)))
    }

    /// Whether a decision on a review is held or being sent.
    pub fn is_under_way(&self, id: ReviewId) -> bool {
        self.get(id).is_some_and(|sending| matches!(sending.stage, Stage::Held(_) | Stage::Sending))
    }

    /// Removes and returns a decision that is still held; `None` if it was sent already.
    pub fn undo(&mut self, id: ReviewId) -> Option<Sending> {
        let held = self.get(id).is_some_and(|sending| matches!(sending.stage, Stage::Held(_)));
        if held { self.by_review.remove(&id) } else { None }
    }

    /// The reviews whose decisions can still be undone.
    pub fn held(&self) -> Vec<ReviewId> {
        let held = self.by_review.values().filter(|sending| matches!(sending.stage, Stage::Held(_)));
        held.map(|sending| sending.id).collect()
    }

    /// The reviews whose decisions are not on their way: they are held, or unsent.
    pub fn waiting(&self) -> Vec<ReviewId> {
        let waits = |sending: &&Sending| matches!(sending.stage, Stage::Held(_) | Stage::Unsent(_));
        self.by_review.values().filter(waits).map(|sending| sending.id).collect()
    }

    /// Marks a held or unsent decision as overtaken, since its review has ended. Returns whether there was one.
    pub fn overtake(&mut self, id: ReviewId) -> bool {
        let waits = |sending: &&mut Sending| matches!(sending.stage, Stage::Held(_) | Stage::Unsent(_));
        let sending = self.by_review.get_mut(&id).filter(waits);
        sending.map(|sending| sending.stage = Stage::Overtaken).is_some()
    }

    /// Removes an unsent decision if its review shows that it has arrived after all. Returns whether it did.
    pub fn arrive(&mut self, review: &Review, by: &Username) -> bool {
        let arrived = self.is_unsent(review.id) && self.get(review.id).is_some_and(|sending| sending.is_in(review, by));
        if arrived {
            self.by_review.remove(&review.id);
        }
        arrived
    }

    /// Notes that the connection is back: unanswered decisions can be sent again. Returns whether there are any.
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

    /// The latest decision that can still be undone.
    pub fn newest_held(&self) -> Option<&Sending> {
        let until = |sending: &Sending| match sending.stage {
            Stage::Held(until) => Some(until),
            _ => None,
        };
        self.by_review.values().filter(|sending| until(sending).is_some()).max_by_key(|sending| until(sending))
    }

    /// Marks decisions as being sent and returns them: those whose time to undo is over at `now`, or all held ones if
    /// `now` is `None`.
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

    /// Marks a held or unsent decision as being sent, and returns it. `None` if there is none.
    pub fn take(&mut self, id: ReviewId) -> Option<Sending> {
        let sending = self.by_review.get_mut(&id)?;
        matches!(sending.stage, Stage::Held(_) | Stage::Unsent(_)).then(|| {
            sending.stage = Stage::Sending;
            sending.clone()
        })
    }

    /// Records the server's answer to the decision with this key.
    pub fn answered(&mut self, id: ReviewId, key: &str, answer: Result<&Decided, Problem>, now: Timestamp) {
        let Some(sending) = self.by_review.get_mut(&id).filter(|sending| sending.key == key) else { return };
        sending.stage = match answer {
            Ok(decided) => Stage::Accepted(decided.outcome, now),
            Err(problem) if can_be_sent_again(&problem) => Stage::Unsent(Reason::Problem(problem)),
            Err(problem) => Stage::Refused(problem),
        };
    }

    /// Removes a decision unless it is being sent, so that another one can be made.
    pub fn dismiss(&mut self, id: ReviewId) {
        if self.get(id).is_some_and(|sending| !matches!(sending.stage, Stage::Sending)) {
            self.by_review.remove(&id);
        }
    }

    /// The reviews that have a decision here, in any stage.
    pub fn reviews(&self) -> Vec<ReviewId> {
        self.by_review.keys().copied().collect()
    }

    /// Removes decisions that were accepted long enough ago, except that on the `open` review. Returns whether there
    /// were any.
    pub fn sweep(&mut self, now: Timestamp, open: Option<ReviewId>) -> bool {
        let before = self.by_review.len();
        self.by_review.retain(|id, sending| match sending.stage {
            Stage::Accepted(_, at) => Some(*id) == open || now.0 - at.0 < LINGER,
            _ => true,
        });
        self.by_review.len() < before
    }
}

/// Whether a decision with this answer did not arrive, or may not have, so that the person can send it again.
pub fn can_be_sent_again(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unavailable | Code::Internal | Code::TooManyRequests | Code::Unauthenticated)
}

/// The size of a request body in bytes.
fn size(request: &DecisionRequest) -> usize {
    serde_json::to_string(request).map_or(usize::MAX, |body| body.len())
}

/// The message after a decision was undone; `others` is the number of decisions that are still on their way.
pub fn undone(title: &str, others: usize) -> String {
    match others {
        0 => format!("Undone: “{title}”. Nothing was sent."),
        1 => format!("Undone: “{title}”. 1 other decision is still being sent."),
        others => format!("Undone: “{title}”. {others} other decisions are still being sent."),
    }
}

/// `1 decision not sent`, `2 decisions not sent`.
pub fn not_sent(number: usize) -> String {
    format!("{number} {} not sent", if number == 1 { "decision" } else { "decisions" })
}
