//! A question between two of its handlers, with the advice of the previous one.

use shared::JsonMap;
use shared::decision::Via;
use shared::id::ReviewId;
use shared::review::Advice;

use super::decide::verdict::CheckedVerdict;
use super::guardrail::PutIn;
use crate::engine::question::{Approval, Asked, Question, Subject, Timer};
use crate::flow::guardrail::Inquiry;

/// A question that is not with anyone: it is about to be put to a handler, or has just been answered by one.
#[derive(Debug)]
pub(super) struct Asking {
    /// The id of its review, which may not exist yet.
    pub review: ReviewId,
    /// What waits for the answer.
    pub subject: Subject,
    /// The index of the handler, from 0.
    pub handler: usize,
    /// The advice of handlers that is on no review yet.
    pub advice: Vec<Advice>,
    /// Whether the review is pending.
    pub pending: bool,
}

impl Asking {
    /// Puts the question to somebody.
    pub fn of(self, asked: Asked, timer: Option<Timer>) -> Question {
        let Self { review, subject, handler, advice, pending } = self;
        Question { review, subject, handler, advice, pending, asked, timer }
    }
}

impl From<Question> for Asking {
    fn from(question: Question) -> Self {
        let Question { review, subject, handler, advice, pending, .. } = question;
        Self { review, subject, handler, advice, pending }
    }
}

#[derive(Debug)]
pub(super) enum HandlerOutcome {
    /// It decides, and no other handler is asked.
    Decides(Advice, Box<HandlerDecision>),
    /// It passes on: the next handler is asked.
    Passes(Advice),
    /// It approves, but guardrails must ask programs about that first.
    Asks(Approval, Vec<Inquiry>),
}

/// The decision of a handler, once it fits its review.
#[derive(Debug)]
pub(super) struct HandlerDecision {
    /// The verdict.
    pub said: CheckedVerdict,
    /// The values that it puts in, as guardrails have left them.
    pub put_in: PutIn,
    /// The reason. If a handler stops a flow, it is the message of the error.
    pub comment: Option<String>,
    /// Metadata for all later steps.
    pub metadata: JsonMap,
    /// The kind of handler.
    pub via: Via,
}
