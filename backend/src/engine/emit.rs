//! Creates the log entries of a run, from the types of `shared::log`.

use serde_json::Value;
use shared::author::Author;
use shared::error::FlowError;
use shared::log::{
    EventData, ModelAnswered, ModelCall, OfReview, ReviewChange, ReviewUpdated, StepRetrying, ToolExecuted,
};
use shared::review::Review;
use shared::run::{AgentCall, Step};
use shared::time::Timestamp;

use super::builder::Builder;
use super::conversation::ToolCall;
use super::input::{ModelAnswer, ModelToolCall};

impl Builder<'_> {
    /// Emits that a step will be retried at `due_at`.
    pub(super) fn emit_retrying(&mut self, step: &Step, error: &FlowError, due_at: Timestamp) {
        let data = StepRetrying { step: step.clone(), error: error.clone(), due_at };
        self.emit(None, None, EventData::StepRetrying(data));
    }

    /// Emits the answer of a model, with what it was told and its usage.
    pub(super) fn emit_answered(
        &mut self,
        step: &Step,
        turn: u32,
        input: Option<String>,
        answer: &ModelAnswer,
        usage: &AgentCall,
    ) {
        let call = |call: &ModelToolCall| ModelCall { tool: call.tool.clone(), arguments: call.arguments.clone() };
        let calls = answer.calls.iter().map(call).collect();
        let data = ModelAnswered {
            input,
            text: Some(answer.text.clone()),
            calls: Some(calls),
            usage: Some(usage.clone()),
            ..self.call_of(step, turn)
        };
        self.emit(None, None, EventData::ModelAnswered(Box::new(data)));
    }

    /// Emits that a model call failed which used tokens, or for which nothing waited any more.
    pub(super) fn emit_unanswered(&mut self, step: &Step, turn: u32, error: FlowError, usage: Option<&AgentCall>) {
        let data = ModelAnswered { usage: usage.cloned(), error: Some(error), ..self.call_of(step, turn) };
        self.emit(None, None, EventData::ModelAnswered(Box::new(data)));
    }

    fn call_of(&self, step: &Step, turn: u32) -> ModelAnswered {
        ModelAnswered {
            step_id: step.id,
            node: step.node.clone(),
            visit: step.visit,
            turn,
            input: None,
            text: None,
            calls: None,
            usage: None,
            error: None,
            late: self.is_late,
        }
    }

    pub(super) fn emit_executed(&mut self, step: &Step, call: &ToolCall, result: Result<&Value, &FlowError>) {
        let data = ToolExecuted {
            step_id: step.id,
            node: step.node.clone(),
            visit: step.visit,
            call: call.id.clone(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            request: call.request.clone(),
            digest: call.digest.clone(),
            result: result.ok().cloned(),
            error: result.err().cloned(),
            late: self.is_late,
        };
        self.emit(None, None, EventData::ToolExecuted(Box::new(data)));
    }

    pub(super) fn emit_requested(&mut self, review: &Review) {
        let data = EventData::ReviewRequested(OfReview { review: readable(review.clone()) });
        // Without a run, no other entry says who asked.
        let by = review.run_id.is_none().then(|| self.state.launched_by());
        self.emit(Some(review.id), by, data);
    }

    /// Emits that the deadline of a review is near.
    pub(super) fn emit_expiring(&mut self, review: &Review) {
        let data = EventData::ReviewExpiring(OfReview { review: readable(review.clone()) });
        self.emit(Some(review.id), None, data);
    }

    pub(super) fn emit_resolved(&mut self, review: Review, by: Option<Author>) {
        let id = review.id;
        self.emit(Some(id), by, EventData::ReviewResolved(OfReview { review: readable(review) }));
    }

    pub(super) fn emit_updated(&mut self, review: &Review, by: Option<Author>, change: ReviewChange) {
        let data = EventData::ReviewUpdated(ReviewUpdated { review: readable(review.clone()), change });
        self.emit(Some(review.id), by, data);
    }
}

/// Returns the review as everybody may read it, without secret votes.
fn readable(review: Review) -> Box<Review> {
    Box::new(review.seen_by(None))
}
