//! `auto` handlers: a review is made and resolved in the same commit, so that it is on the record with everything that
//! would have been shown, and nobody waits.

use std::collections::BTreeMap;

use shared::JsonMap;
use shared::decision::{ActionDecision, Via};
use shared::definition::{AutoHandler, ChoiceKind, Handler, Human};
use shared::error::FlowCode;
use shared::review::Outcome;
use shared::run::Step;

use super::builder::{Builder, failure};
use super::remember::Remembered;
use super::review::Question;

impl<'f> Builder<'f> {
    /// The handler that resolves at once, where there is one: that of the node or gate, else of the defaults.
    pub(super) fn auto(&self, step: &Step, own: Option<&'f [Handler]>) -> Option<&'f AutoHandler> {
        let handlers = own.or(self.flow.of(&step.node).flow.defaults.handlers.as_deref())?;
        match handlers {
            [Handler::Auto(auto)] => Some(auto),
            _ => None,
        }
    }

    /// A human node is not asked: the first accept option is taken, or it stops with the reason.
    pub(super) fn human_auto(
        &mut self,
        branch: u32,
        mut step: Step,
        human: &Human,
        question: Question,
        auto: &AutoHandler,
    ) {
        let (kind, reason) = match auto {
            AutoHandler::Approve => (ChoiceKind::Accept, None),
            AutoHandler::Reject(reason) => (ChoiceKind::Stop, Some(reason.as_str())),
        };
        let choice = human.options.iter().find(|choice| choice.kind == kind);
        if reason.is_none() && choice.is_none() {
            let message = "nothing here can be approved: there is no option of kind `accept`";
            let error = failure(FlowCode::FlowInvalid, &step.node, message);
            return self.fail_step(branch, step, error);
        }
        let outcome = if reason.is_none() { Outcome::Accepted } else { Outcome::Stopped };
        self.resolve_at_once(&step, question, outcome, reason);
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
            via: Via::Auto,
        };
        self.remember(&step.node, &remembered);
        step.note = reason.or(choice.map(|choice| choice.label.as_str())).map(|what| format!("{what} (automatically)"));
        match reason {
            None => self.finish_step(branch, step, &nothing),
            Some(reason) => self.stop(branch, step, reason.to_owned()),
        }
    }

    /// Gated calls are not asked about: all are approved, or all rejected with the reason.
    pub(super) fn calls_auto(
        &mut self,
        step: &Step,
        question: Question,
        auto: &AutoHandler,
    ) -> BTreeMap<String, ActionDecision> {
        let (decision, reason) = match auto {
            AutoHandler::Approve => (ActionDecision::APPROVE, None),
            AutoHandler::Reject(reason) => {
                (ActionDecision::Reject { message: Some(reason.clone()) }, Some(reason.as_str()))
            }
        };
        let decisions = question.actions.iter().map(|action| (action.id.clone(), decision.clone())).collect();
        self.resolve_at_once(step, question, Outcome::Decided, reason);
        decisions
    }
}
