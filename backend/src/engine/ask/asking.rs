//! A question between two of its handlers, with the advice of the previous one.

use shared::JsonMap;
use shared::decision::Via;
use shared::id::ReviewId;
use shared::review::Advice;

use super::decide::verdict::CheckedVerdict;
use super::guardrail::PutIn;
use crate::engine::question::{Approval, Asked, Question, Subject, Timer};
use crate::flow::guardrail::Inquiry;

/// A question, and the place of the handler that is asked.
#[derive(Debug)]
pub(super) struct Asking {
    /// The review that is, or will be, on the record.
    pub review: ReviewId,
    /// What waits for the answer.
    pub subject: Subject,
    /// The place among the handlers, from 0.
    pub handler: usize,
    /// What handlers said that is on no review yet.
    pub advice: Vec<Advice>,
    /// Whether the review is pending already.
    pub pending: bool,
}

impl Asking {
    /// Somebody is asked now.
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

/// What a handler said.
#[derive(Debug)]
pub(super) enum HandlerOutcome {
    /// It decides, and no other handler is asked.
    Decides(Advice, Box<HandlerDecision>),
    /// The next one is asked.
    Passes(Advice),
    /// It approves, and guardrails ask programs about that.
    Asks(Approval, Vec<Inquiry>),
}

/// What a handler decides in place of people, once it fits what is asked.
#[derive(Debug)]
pub(super) struct HandlerDecision {
    /// What it says.
    pub said: CheckedVerdict,
    /// What of it goes into the state.
    pub put_in: PutIn,
    /// Why; of a rejection it is what ends the run.
    pub comment: Option<String>,
    /// What all later steps know.
    pub metadata: JsonMap,
    /// What kind of handler.
    pub via: Via,
}
