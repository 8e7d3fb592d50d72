//! A question between two of its handlers, and what one of them said.

use shared::decision::Via;
use shared::definition::AutoHandler;
use shared::id::ReviewId;
use shared::review::{Advice, Changes};

use crate::engine::question::{Question, Subject};

/// A question, and the place of the handler that is asked.
#[derive(Debug)]
pub(super) struct Asking {
    /// The review that will be on the record.
    pub review: ReviewId,
    /// What waits for the answer.
    pub subject: Subject,
    /// The place among the handlers, from 0.
    pub handler: usize,
    /// What the handlers before said.
    pub advice: Vec<Advice>,
}

impl From<Question> for Asking {
    fn from(question: Question) -> Self {
        let Question { review, subject, handler, advice, .. } = question;
        Self { review, subject, handler, advice }
    }
}

/// What a handler said.
#[derive(Debug)]
pub(super) enum Heard {
    /// It decides.
    Decides(Advice, Box<Handled>),
    /// The next one is asked.
    Passes(Advice),
}

/// What a handler decides in place of people.
#[derive(Debug, Clone)]
pub(super) struct Handled {
    /// Whether it accepts.
    pub approves: bool,
    /// Why; of a rejection it is what ends the run.
    pub reason: Option<String>,
    /// What kind of handler.
    pub via: Via,
    /// What it changes of what it accepts.
    pub changes: Changes,
}

impl From<&AutoHandler> for Handled {
    fn from(auto: &AutoHandler) -> Self {
        let reason = match auto {
            AutoHandler::Approve => None,
            AutoHandler::Reject(reason) => Some(reason.clone()),
        };
        Self { approves: reason.is_none(), reason, via: Via::Auto, changes: Changes::default() }
    }
}
