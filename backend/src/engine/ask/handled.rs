//! What a handler decides in place of people: a review is made and resolved in the same commit, so that it is on the record
//! with everything that would have been shown, and nobody waits.

use serde_json::json;
use shared::JsonMap;
use shared::decision::{ActionDecision, Via};
use shared::definition::{AutoHandler, ChoiceKind};
use shared::error::FlowCode;
use shared::id::ReviewId;
use shared::review::{Advice, Outcome};

use super::content::Content;
use super::decision_scope::Remembered;
use crate::engine::builder::{Builder, failure};
use crate::engine::next::{Answer, NodeAnswer, Then};
use crate::engine::question::Subject;

/// What a handler says in place of people.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handled<'a> {
    /// Whether it accepts.
    pub approves: bool,
    /// Why; of a rejection it is what ends the run.
    pub reason: Option<&'a str>,
    /// What kind of handler.
    pub via: Via,
}

impl<'a> From<&'a AutoHandler> for Handled<'a> {
    fn from(auto: &'a AutoHandler) -> Self {
        let reason = match auto {
            AutoHandler::Approve => None,
            AutoHandler::Reject(reason) => Some(reason.as_str()),
        };
        Self { approves: reason.is_none(), reason, via: Via::Auto }
    }
}

impl Builder<'_> {
    /// A handler decides. At a human node the first accept option is taken, or it stops with the reason; calls are all
    /// approved, or all rejected with it.
    pub(super) fn handled(
        &mut self,
        review: ReviewId,
        subject: Subject,
        advice: Vec<Advice>,
        handled: &Handled<'_>,
    ) {
        let content = match self.content(&subject) {
            Ok(content) => content,
            Err(error) => return self.answer(subject, Answer::Failed(error)),
        };
        match subject {
            Subject::Node { .. } => self.node_handled(review, subject, content, advice, handled),
            Subject::Calls { .. } | Subject::Lost { .. } => {
                self.calls_handled(review, subject, content, advice, handled);
            }
        }
    }

    fn node_handled(
        &mut self,
        review: ReviewId,
        subject: Subject,
        content: Content,
        advice: Vec<Advice>,
        handled: &Handled<'_>,
    ) {
        let Handled { approves, reason, via } = *handled;
        let (kind, outcome) =
            if approves { (ChoiceKind::Accept, Outcome::Accepted) } else { (ChoiceKind::Stop, Outcome::Stopped) };
        let option = content.options.iter().find(|option| option.kind == kind).cloned();
        if approves && option.is_none() {
            let message = "nothing here can be approved: there is no option of kind `accept`";
            let error = self.state.step_of(&subject).map(|step| failure(FlowCode::FlowInvalid, &step.node, message));
            return error.into_iter().for_each(|error| self.answer(subject.clone(), Answer::Failed(error)));
        }
        self.resolve_at_once(review, &subject, content, advice, outcome, handled, None);
        let nothing = JsonMap::new();
        let remembered = Remembered {
            option: option.as_ref().map(|option| option.id.as_str()),
            kind: Some(kind),
            text: None,
            comment: reason,
            edits: &nothing,
            metadata: &nothing,
            by: &[],
            at: self.now,
            via,
        };
        let label = option.as_ref().map(|option| option.label.as_str());
        let what = if approves { label.or(reason) } else { reason.or(label) };
        let by = if via == Via::Judge { "by a judge" } else { "automatically" };
        let note = what.map(|what| format!("{what} ({by})"));
        let then = if approves {
            Then::GoOn { edits: JsonMap::new() }
        } else {
            let message = option.as_ref().and_then(|option| option.message.as_deref());
            Then::Stop { message: reason.or(message).or(label).unwrap_or("Rejected.").to_owned() }
        };
        self.answer(subject, Answer::Node(NodeAnswer { decision: json!(remembered), note, then }));
    }

    fn calls_handled(
        &mut self,
        review: ReviewId,
        subject: Subject,
        content: Content,
        advice: Vec<Advice>,
        handled: &Handled<'_>,
    ) {
        let decision = if handled.approves {
            ActionDecision::APPROVE
        } else {
            ActionDecision::Reject { message: handled.reason.map(str::to_owned) }
        };
        let decisions = content.actions.iter().map(|action| (action.id.clone(), decision.clone())).collect();
        let rulings = self.rule(&subject, &decisions);
        self.resolve_at_once(review, &subject, content, advice, Outcome::Decided, handled, Some(&rulings));
        self.answer(subject, Answer::Calls { rulings, instructions: None });
    }
}
