//! Gates: which calls are held back, and which of them are asked about together.

use shared::definition::Gate;
use shared::run::Step;

use super::content::handlers_at;
use super::title;
use crate::engine::builder::Builder;
use crate::engine::conversation::ToolCall;
use crate::engine::question::Subject;
use crate::engine::scope::{self, Visit};
use crate::flow::Scope;

impl<'f> Builder<'f> {
    /// The gate that holds a call back. One whose `when` meets a missing field, or cannot be evaluated, is closed.
    pub(in crate::engine) fn closed_gate(&self, step: &Step, correction: Option<&str>, call: &ToolCall) -> Option<&'f Gate> {
        let flow = self.flow.of(&step.node);
        let gate = flow.tool_gate(&call.tool)?;
        let closed = gate.when.as_ref().is_none_or(|when| !flow.opens(when, &self.gate_scope(step, correction, call)));
        closed.then_some(gate)
    }

    /// What a gate's condition and title see.
    fn gate_scope(&self, step: &Step, correction: Option<&str>, call: &ToolCall) -> Scope {
        let visit = Visit { number: step.visit, correction, arguments: Some(&call.arguments), ..Visit::default() };
        scope::of(self.flow, &self.state, &step.node, visit)
    }

    /// The headline that the gate of a lone call gives it; one that cannot be rendered gives none.
    pub(super) fn given_title(&self, step: &Step, group: &[(&ToolCall, &'f Gate)]) -> Option<String> {
        let [(call, gate)] = group else { return None };
        let scope = || self.gate_scope(step, None, call);
        let rendered = gate.title.as_ref().map(|title| self.flow.of(&step.node).render(title, &scope()));
        rendered?.ok().and_then(|title| title::of_template(&title))
    }

    /// Asks about gated calls of a branch's turn: one question, or one for each set of handlers and reviewers where the
    /// gates name different ones, so that nobody decides what another gate reserves for others. What a grant allows is not
    /// asked.
    pub(in crate::engine) fn ask_about(&mut self, branch: u32, gated: &[(String, &'f Gate)]) {
        let mut groups: Vec<(&'f Gate, Vec<String>)> = Vec::new();
        for (call, gate) in gated {
            let lone = Subject::Calls { branch, calls: vec![call.clone()] };
            if self.is_granted(&lone, gate) {
                continue;
            }
            match groups.iter_mut().find(|(first, _)| self.are_asked_together(&lone, first, gate)) {
                Some((_, calls)) => calls.push(call.clone()),
                None => groups.push((gate, vec![call.clone()])),
            }
        }
        for (_, calls) in groups {
            self.ask(Subject::Calls { branch, calls });
        }
    }

    /// Whether two gates ask the same, now and after an escalation.
    fn are_asked_together(&self, subject: &Subject, one: &'f Gate, other: &'f Gate) -> bool {
        let Some(step) = self.state.step_of(subject) else { return false };
        let escalation = |gate| self.gate_timeout(step, gate).filter(|then| then.escalations().next().is_some());
        let handlers = |gate: &'f Gate| handlers_at(self.flow, &step.node, gate.handlers.as_deref());
        one.reviewers == other.reviewers && handlers(one) == handlers(other) && escalation(one) == escalation(other)
    }
}
