//! `auto` handlers: a review is made and resolved in the same commit, so that it is on the record with everything that
//! would have been shown, and nobody waits.

use shared::JsonMap;
use shared::decision::{ActionDecision, Via};
use shared::definition::{AutoHandler, ChoiceKind, Gate, Handler, Human};
use shared::error::FlowCode;
use shared::review::Outcome;
use shared::run::Step;

use super::builder::{Builder, failure};
use super::conversation::ToolCall;
use super::decision_scope::Remembered;
use super::guardrail::Rulings;
use super::judge;
use super::review::Question;

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

impl<'f> Builder<'f> {
    /// The handler that resolves at once, where there is one: that of the node or gate, else of the defaults.
    pub(super) fn auto(&self, step: &Step, own: Option<&'f [Handler]>) -> Option<&'f AutoHandler> {
        match judge::handlers(self.flow, &step.node, own) {
            [Handler::Auto(auto)] => Some(auto),
            _ => None,
        }
    }

    /// A handler decides in place of people: the first accept option is taken, or it stops with the reason.
    pub(super) fn handled(
        &mut self,
        branch: u32,
        mut step: Step,
        human: &Human,
        question: Question,
        handled: &Handled<'_>,
    ) {
        let Handled { approves, reason, via } = *handled;
        let (kind, outcome) =
            if approves { (ChoiceKind::Accept, Outcome::Accepted) } else { (ChoiceKind::Stop, Outcome::Stopped) };
        let choice = human.options.iter().find(|choice| choice.kind == kind);
        if approves && choice.is_none() {
            let message = "nothing here can be approved: there is no option of kind `accept`";
            let error = failure(FlowCode::FlowInvalid, &step.node, message);
            return self.fail_step(branch, step, error);
        }
        self.resolve_at_once(&step, question, outcome, reason, via, &Rulings::default());
        let nothing = JsonMap::new();
        let remembered = Remembered {
            option: choice.map(|choice| choice.id.as_str()),
            kind: Some(kind),
            text: None,
            comment: reason,
            edits: &nothing,
            metadata: &nothing,
            by: &[],
            at: self.now,
            via,
        };
        self.remember(&step.node, &remembered);
        let label = choice.map(|choice| choice.label.as_str());
        let what = if approves { label.or(reason) } else { reason.or(label) };
        let by = if via == Via::Judge { "by a judge" } else { "automatically" };
        step.note = what.map(|what| format!("{what} ({by})"));
        if approves {
            self.finish_step(branch, step, &nothing);
        } else {
            let message = choice.and_then(|choice| choice.message.as_deref());
            let why = reason.or(message).or(label).unwrap_or("Rejected.").to_owned();
            self.stop(branch, step, why);
        }
    }

    /// Gated calls are not asked about: all are approved, or all rejected with the reason.
    pub(super) fn calls_auto(
        &mut self,
        step: &Step,
        agent: Option<&str>,
        question: Question,
        group: &[(&ToolCall, &Gate)],
        auto: &AutoHandler,
    ) -> Rulings {
        let (decision, reason) = match auto {
            AutoHandler::Approve => (ActionDecision::APPROVE, None),
            AutoHandler::Reject(reason) => {
                (ActionDecision::Reject { message: Some(reason.clone()) }, Some(reason.as_str()))
            }
        };
        let decisions = question.actions.iter().map(|action| (action.id.clone(), decision.clone())).collect();
        let rulings = self.rule(step, agent, group.iter().map(|(call, _)| *call), &decisions);
        self.resolve_at_once(step, question, Outcome::Decided, reason, Via::Auto, &rulings);
        rulings
    }
}
