//! Gates: what is held back, and what a gate says of it.

use shared::definition::{Gate, OnTimeout};
use shared::id::NodeId;
use shared::run::Step;

use super::title;
use crate::engine::builder::Builder;
use crate::engine::conversation::{CallingAgent, ToolCall};
use crate::engine::question::Subject;
use crate::engine::scope::{self, Visit};
use crate::engine::state::RunState;
use crate::flow::Compiled;

/// The gate of a call: of several, the first that closes.
fn gate_of_call<'f>(
    flow: &'f Compiled,
    state: &RunState,
    step: &Step,
    agent: Option<CallingAgent<'_>>,
    call: &ToolCall,
) -> Option<&'f Gate> {
    let mut gates = flow.of(&step.node).tool_gates(agent.map(|agent| agent.gates_of), &call.tool);
    let (first, second) = (gates.next()?, gates.next());
    let seen = Visit { agent: agent.map(|agent| agent.name), ..call.seen(step) };
    Some(second.filter(|_| !closes(flow, state, first, &step.node, seen)).unwrap_or(first))
}

/// Whether a gate closes before what its condition sees. One whose `when` meets a missing field, or cannot be evaluated, does.
fn closes(flow: &Compiled, state: &RunState, gate: &Gate, node: &NodeId, seen: Visit<'_>) -> bool {
    let scope = || scope::of(flow, state, node, seen);
    gate.when.as_ref().is_none_or(|when| !flow.of(node).opens(when, &scope()))
}

/// The gate that holds back what a question is about: of several calls, that of the first. None at a human node.
pub(super) fn gate_of<'f>(flow: &'f Compiled, state: &RunState, subject: &Subject) -> Option<&'f Gate> {
    let step = state.step_of(subject)?;
    let of = flow.of(&step.node);
    match subject {
        Subject::Node { .. }
        | Subject::Ask { .. }
        | Subject::Takeover { .. }
        | Subject::Specialist { .. }
        | Subject::Handoff { .. } => None,
        Subject::Calls { .. } | Subject::Lost { .. } => {
            let (agent, mut calls) = state.calls_of(subject);
            gate_of_call(flow, state, step, agent, calls.next()?)
        }
        Subject::Agent { branch } => {
            let CallingAgent { name, gates_of } = state.branches.get(branch)?.phase.conversation()?.calling_agent();
            of.agent_gate(name, gates_of)
        }
        Subject::Output { .. } => of.return_gate(),
    }
}

impl<'f> Builder<'f> {
    /// The gate that holds back what a question is about.
    pub(super) fn gate_of(&self, subject: &Subject) -> Option<&'f Gate> {
        gate_of(self.flow, &self.state, subject)
    }

    /// The gate of a call, whatever its condition says.
    pub(super) fn tool_gate(&self, step: &Step, agent: Option<CallingAgent<'_>>, call: &ToolCall) -> Option<&'f Gate> {
        gate_of_call(self.flow, &self.state, step, agent, call)
    }

    /// The gate that holds a call back.
    pub(in crate::engine) fn closed_gate(
        &self,
        step: &Step,
        correction: Option<&str>,
        agent: Option<CallingAgent<'_>>,
        call: &ToolCall,
    ) -> Option<&'f Gate> {
        let gate = self.tool_gate(step, agent, call)?;
        let seen = Visit { correction, agent: agent.map(|agent| agent.name), ..call.seen(step) };
        self.closes(gate, &step.node, seen).then_some(gate)
    }

    /// Whether a gate closes before what its condition sees.
    pub(in crate::engine) fn closes(&self, gate: &Gate, node: &NodeId, seen: Visit<'_>) -> bool {
        closes(self.flow, &self.state, gate, node, seen)
    }

    /// The headline that a gate gives; one that cannot be rendered gives none.
    pub(super) fn given_title(&self, step: &Step, gate: &Gate, seen: Visit<'_>) -> Option<String> {
        let scope = || scope::of(self.flow, &self.state, &step.node, Visit { number: step.visit, ..seen });
        let rendered = gate.title.as_ref().map(|title| self.flow.of(&step.node).render(title, &scope()));
        rendered?.ok().and_then(|title| title::of_template(&title))
    }

    /// What happens when nobody decides in time. What the defaults say of branches is for nodes: an action happens, or it
    /// does not.
    pub(super) fn gate_timeout(&self, step: &Step, gate: &Gate) -> Option<OnTimeout> {
        let default = || self.flow.of(&step.node).flow.defaults.on_timeout.as_ref().map(OnTimeout::for_calls);
        gate.on_timeout.clone().or_else(default)
    }
}

impl ToolCall {
    /// What a gate's condition and title see of it.
    pub(super) fn seen(&self, step: &Step) -> Visit<'_> {
        Visit { number: step.visit, arguments: Some(&self.arguments), ..Visit::default() }
    }
}
