//! Gates: which calls are held back, and what a gate says of those.

use shared::definition::{Gate, OnTimeout};
use shared::run::Step;

use super::title;
use crate::engine::builder::Builder;
use crate::engine::conversation::ToolCall;
use crate::engine::scope::{self, Visit};
use crate::flow::Scope;

impl<'f> Builder<'f> {
    /// The gate that holds a call back. One whose `when` meets a missing field, or cannot be evaluated, is closed.
    pub(in crate::engine) fn closed_gate(
        &self,
        step: &Step,
        correction: Option<&str>,
        call: &ToolCall,
    ) -> Option<&'f Gate> {
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

    /// What happens when nobody decides about a gate's calls in time. What the defaults say of branches is for nodes:
    /// a call runs, or it does not.
    pub(super) fn gate_timeout(&self, step: &Step, gate: &Gate) -> Option<OnTimeout> {
        let default = || self.flow.of(&step.node).flow.defaults.on_timeout.as_ref().map(OnTimeout::for_calls);
        gate.on_timeout.clone().or_else(default)
    }
}
