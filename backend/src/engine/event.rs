//! What the log tells of a run: each entry is made here, of the types of `shared::log`.
//!
//! A run is put into the entries that speak of it when the transition is finished: everything that one commit tells of a
//! run is of the same revision, and a fold ignores what is not newer than what it has.

use serde_json::Value;
use shared::JsonMap;
use shared::error::RunError;
use shared::grant::Grant;
use shared::id::{ReviewId, RunId, Username};
use shared::log::{
    Event, EventData, GrantUsed, GuardrailFired, ModelAnswered, ModelCall, OfGrant, OfReview, OfRun, OfStep,
    ReviewChange, ReviewUpdated, ReviewViewed, RunCancelled, RunCompleted, StepCompleted, StepRetrying, ToolExecuted,
};
use shared::review::Review;
use shared::run::{AgentCall, RunSummary, Step};
use shared::time::Timestamp;

use super::builder::Builder;
use super::conversation::ToolCall;
use super::input::{ModelAnswer, ModelToolCall};

/// An entry that waits for the end of its transition.
#[derive(Debug)]
pub(super) struct Emitted {
    review_id: Option<ReviewId>,
    actor: Option<Username>,
    data: Emission,
}

#[derive(Debug)]
enum Emission {
    /// Of the run as it is in the end.
    Run(RunChange),
    /// Of something else.
    Other(EventData),
}

/// What happened to a run as a whole.
#[derive(Debug)]
pub(super) enum RunChange {
    Started,
    Resumed,
    Waiting,
    Completed { output: JsonMap },
    Failed,
    Cancelled { reason: Option<String> },
}

impl RunChange {
    fn of(self, run: Box<RunSummary>) -> EventData {
        match self {
            Self::Started => EventData::RunStarted(OfRun { run }),
            Self::Resumed => EventData::RunResumed(OfRun { run }),
            Self::Waiting => EventData::WorkflowWaiting(OfRun { run }),
            Self::Completed { output } => EventData::RunCompleted(RunCompleted { run, output }),
            Self::Failed => EventData::RunFailed(OfRun { run }),
            Self::Cancelled { reason } => EventData::RunCancelled(RunCancelled { run, reason }),
        }
    }
}

impl Emitted {
    /// The entry, with the run as it is after the transition.
    pub(super) fn event(self, at: Timestamp, id: RunId, run: &RunSummary) -> Event {
        let data = match self.data {
            Emission::Run(change) => change.of(Box::new(run.clone())),
            Emission::Other(data) => data,
        };
        let event = Event::new(at, self.actor, &data);
        Event { run_id: Some(id), review_id: self.review_id, ..event }
    }
}

impl Builder<'_> {
    /// Something about the run as a whole.
    pub(super) fn emit_run(&mut self, change: RunChange, actor: Option<Username>) {
        self.events.push(Emitted { review_id: None, actor, data: Emission::Run(change) });
    }

    /// A step has started.
    pub(super) fn emit_started(&mut self, step: &Step) {
        self.emit(None, None, EventData::StepStarted(OfStep { step: step.clone() }));
    }

    /// A step is tried again.
    pub(super) fn emit_retrying(&mut self, step: &Step, error: &RunError, due_at: Timestamp) {
        let data = StepRetrying { step: step.clone(), error: error.clone(), due_at };
        self.emit(None, None, EventData::StepRetrying(data));
    }

    /// A step is done, having written these keys.
    pub(super) fn emit_completed(&mut self, step: &Step, writes: &JsonMap) {
        let data = StepCompleted { step: step.clone(), writes: writes.clone() };
        self.emit(None, None, EventData::StepCompleted(data));
    }

    /// A step has failed, for the reason that it has.
    pub(super) fn emit_failed(&mut self, step: &Step) {
        self.emit(None, None, EventData::StepFailed(OfStep { step: step.clone() }));
    }

    /// A model answered.
    pub(super) fn emit_answered(&mut self, step: &Step, turn: u32, answer: &ModelAnswer, usage: &AgentCall) {
        let call = |call: &ModelToolCall| ModelCall { tool: call.tool.clone(), arguments: call.arguments.clone() };
        let calls = answer.calls.iter().map(call).collect();
        let data = ModelAnswered {
            text: Some(answer.text.clone()),
            calls: Some(calls),
            usage: Some(usage.clone()),
            ..self.call_of(step, turn)
        };
        self.emit(None, None, EventData::ModelAnswered(data));
    }

    /// A call of a model failed when nobody waited for it any more.
    pub(super) fn emit_unanswered(&mut self, step: &Step, turn: u32, error: RunError) {
        let data = ModelAnswered { error: Some(error), ..self.call_of(step, turn) };
        self.emit(None, None, EventData::ModelAnswered(data));
    }

    fn call_of(&self, step: &Step, turn: u32) -> ModelAnswered {
        ModelAnswered {
            step_id: step.id,
            node: step.node.clone(),
            visit: step.visit,
            turn,
            text: None,
            calls: None,
            usage: None,
            error: None,
            late: self.late,
        }
    }

    /// A call was executed, with what came of it.
    pub(super) fn emit_executed(&mut self, step: &Step, call: &ToolCall, result: Result<&Value, &RunError>) {
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
            late: self.late,
        };
        self.emit(None, None, EventData::ToolExecuted(Box::new(data)));
    }

    /// Somebody is asked.
    pub(super) fn emit_requested(&mut self, review: &Review) {
        let data = EventData::ReviewRequested(OfReview { review: readable(review) });
        self.emit(Some(review.id), None, data);
    }

    /// A deadline is near.
    pub(super) fn emit_expiring(&mut self, review: &Review) {
        let data = EventData::ReviewExpiring(OfReview { review: readable(review) });
        self.emit(Some(review.id), None, data);
    }

    /// A review is over.
    pub(super) fn emit_resolved(&mut self, review: &Review, actor: Option<Username>) {
        let data = EventData::ReviewResolved(OfReview { review: readable(review) });
        self.emit(Some(review.id), actor, data);
    }

    /// Something about a review changed.
    pub(super) fn emit_updated(&mut self, review: &Review, actor: Option<Username>, change: ReviewChange) {
        let data = EventData::ReviewUpdated(ReviewUpdated { review: readable(review), change });
        self.emit(Some(review.id), actor, data);
    }

    /// Somebody opened a review: which revision of it, and the digest of what it showed.
    pub(super) fn emit_viewed(&mut self, review: &Review, actor: Username) {
        let (title, revision, digest) = (review.title.clone(), review.revision, review.digest.clone());
        let data = EventData::ReviewViewed(ReviewViewed { title, revision, digest });
        self.emit(Some(review.id), Some(actor), data);
    }

    /// Somebody allows later calls too.
    pub(super) fn emit_granted(&mut self, grant: &Grant) {
        let data = EventData::GrantMade(OfGrant { grant: Box::new(grant.clone()) });
        self.emit(Some(grant.review_id), Some(grant.given_by.clone()), data);
    }

    /// A call is approved by a grant, at a review that is resolved at once.
    pub(super) fn emit_grant_used(&mut self, grant: &Grant, review: ReviewId, call: &str) {
        let data = EventData::GrantUsed(GrantUsed { grant: Box::new(grant.clone()), call: call.to_owned() });
        self.emit(Some(review), None, data);
    }

    /// What a guardrail found; at the review whose decision it looked at.
    pub(super) fn emit_guardrail(&mut self, fired: GuardrailFired) {
        self.emit(fired.review, None, EventData::GuardrailFired(fired));
    }

    fn emit(&mut self, review_id: Option<ReviewId>, actor: Option<Username>, data: EventData) {
        self.events.push(Emitted { review_id, actor, data: Emission::Other(data) });
    }
}

/// What everybody may read: it says nothing of secret votes.
fn readable(review: &Review) -> Box<Review> {
    let review = review.clone();
    Box::new(if review.is_secret() { review.seen_by(None) } else { review })
}
