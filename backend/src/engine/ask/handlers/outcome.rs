//! The outcome of asking a handler: its decision, or why it makes none.

use shared::JsonMap;
use shared::decision::Via;
use shared::review::Advice;

use crate::engine::ask::decide::verdict::CheckedVerdict;
use crate::engine::ask::guardrails::check::PutIn;
use crate::engine::question::{Approval, Question};
use crate::flow::guardrail::Inquiry;

/// The question of a handler that is no longer asked, with its outcome. `None` if it is still asked.
pub(in crate::engine::ask) type AfterHandler = Option<(Question, HandlerOutcome)>;

#[derive(Debug)]
pub(in crate::engine::ask) enum HandlerOutcome {
    /// It decides, and no other handler is asked.
    Decides(Advice, Box<HandlerDecision>),
    /// It passes on: the next handler is asked.
    Passes(Advice),
    /// It approves, but guardrails must ask programs about that first.
    Asks(Approval, Vec<Inquiry>),
}

/// The decision of a handler, once it fits its review.
#[derive(Debug)]
pub(in crate::engine::ask) struct HandlerDecision {
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
