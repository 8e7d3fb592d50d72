//! Gates: what they hold back, and their settings.

mod grant;
mod grantable;
mod group;

use shared::definition::{Gate, Handler, OnTimeout};
use shared::id::NodeId;
use shared::run::Step;

use super::content::title;
use crate::engine::builder::Builder;
use crate::engine::conversation::{CallSite, CallingAgent, GatePass, ToolCall, ToolCallState};
use crate::engine::question::Subject;
use crate::engine::scope::{self, Visit};
use crate::engine::state::RunState;
use crate::flow::Compiled;

/// The maximum number of passes by the gates of a call, before it is refused: programs that undo each other's edits
/// would go on for ever.
const MAX_PASSES: usize = 20;

/// Returns the gate that asks about a call, or asked last. If none has asked yet, it is the first gate that closes, or
/// else the first one.
fn gate_of_call<'f>(flow: &'f Compiled, state: &RunState, at: CallSite<'_>, call: &ToolCall) -> Option<&'f Gate> {
    let gates = || flow.of(&at.step.node).tool_gates(at.agent.map(|agent| agent.gates_of), &call.tool);
    if let Some(gate) = call.gate {
        return gates().nth(gate);
    }
    gates().find(|gate| closes(flow, state, gate, &at.step.node, at.seen(call))).or_else(|| gates().next())
}

/// Whether a gate closes, given what its condition sees. It also closes if its `when` meets a missing field or cannot
/// be evaluated.
fn closes(flow: &Compiled, state: &RunState, gate: &Gate, node: &NodeId, seen: Visit<'_>) -> bool {
    let scope = || scope::of(flow, state, node, seen);
    gate.when.as_ref().is_none_or(|when| !flow.of(node).opens(when, &scope()))
}

/// Returns the gate that holds back what a question is about: of several calls, that of the first. `None` if no gate is
/// involved, as at a human node.
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
            gate_of_call(flow, state, CallSite::new(step, agent), calls.next()?)
        }
        Subject::Agent { branch } => {
            let CallingAgent { name, gates_of } = state.branches.get(branch)?.phase.conversation()?.calling_agent();
            of.agent_gate(name, gates_of)
        }
        Subject::Output { .. } => of.return_gate(),
    }
}

impl<'f> Builder<'f> {
    /// Returns the gate that holds back what a question is about.
    pub(super) fn gate_of(&self, subject: &Subject) -> Option<&'f Gate> {
        gate_of(self.flow, &self.state, subject)
    }

    /// Returns the gate of a call, whether it closes or not.
    pub(super) fn tool_gate(&self, at: CallSite<'_>, call: &ToolCall) -> Option<&'f Gate> {
        gate_of_call(self.flow, &self.state, at, call)
    }

    /// Holds a call back if one of its gates closes and has not let it pass in its present form. Returns that gate,
    /// which asks next.
    pub(in crate::engine) fn hold_back(&self, at: CallSite<'_>, call: &mut ToolCall) -> Option<&'f Gate> {
        let CallSite { step, agent, .. } = at;
        let gates: Vec<_> = self.gates_of_call(at, call).collect();
        let passed = |gate: &'f Gate| {
            let passes = call.passes.iter().filter(|pass| pass.digest == call.digest);
            passes.filter_map(|pass| gates.get(pass.gate)).any(|passed| are_alike(passed, gate))
        };
        let of = self.flow.of(&step.node);
        let permission = of.permission_gate(agent.map(|agent| agent.gates_of), &call.tool).map(|_| gates.len() - 1);
        // If the gate before it, that of the same tool, has asked about the call in its present form, the permission is
        // given.
        let is_permitted = |place: usize| {
            permission == Some(place)
                && call.passes.iter().any(|pass| pass.gate + 1 == place && pass.digest == call.digest)
        };
        let closes = |(place, gate): &(usize, &&'f Gate)| {
            self.closes(gate, &step.node, at.seen(call)) && !passed(gate) && !is_permitted(*place)
        };
        let (place, gate) = gates.iter().enumerate().find(closes)?;
        (call.gate, call.state) = (Some(place), ToolCallState::Gated);
        Some(gate)
    }

    /// Records that the gate at the index `asked` has let a call pass in its present form. Returns the next gate that
    /// closes, if there is one. `Err` says why the call does not happen at all.
    pub(in crate::engine) fn pass_gate(
        &self,
        at: CallSite<'_>,
        asked: Option<usize>,
        call: &mut ToolCall,
    ) -> Result<Option<&'f Gate>, String> {
        call.passes.extend(asked.map(|gate| GatePass { gate, digest: call.digest.clone() }));
        let next = self.hold_back(at, call);
        if next.is_some() && call.passes.len() >= MAX_PASSES {
            return Err(format!("its gates have edited it for each other {MAX_PASSES} times"));
        }
        Ok(next)
    }

    /// Returns the index of the gate that asks about a call; `None` if none does.
    pub(in crate::engine) fn asking_gate(&self, at: CallSite<'_>, call: &ToolCall) -> Option<usize> {
        let gated = call.state == ToolCallState::Gated;
        let asking = gated.then(|| self.tool_gate(at, call)).flatten()?;
        let of_old_state = || self.gates_of_call(at, call).position(|gate| gate == asking);
        call.gate.or_else(of_old_state)
    }

    /// Whether guardrails check a call: unless each gate that has asked about it turns them off.
    pub(super) fn is_guarded(&self, at: CallSite<'_>, call: &ToolCall) -> bool {
        let gates: Vec<_> = self.gates_of_call(at, call).collect();
        let passed = call.passes.iter().filter_map(|pass| gates.get(pass.gate).copied());
        let mut asked = passed.chain(self.tool_gate(at, call)).peekable();
        asked.peek().is_none() || asked.any(|gate| gate.guardrails != Some(false))
    }

    /// Whether two gates ask the same handlers and people, also after an escalation.
    pub(super) fn ask_the_same(&self, step: &Step, one: &'f Gate, other: &'f Gate) -> bool {
        let escalation = |gate| self.gate_timeout(step, gate).filter(|then| then.escalations().next().is_some());
        let handlers = |gate: &'f Gate| before_people(self.flow.of(&step.node).handlers(gate.handlers.as_deref()));
        one.reviewers == other.reviewers && handlers(one) == handlers(other) && escalation(one) == escalation(other)
    }

    fn gates_of_call(&self, at: CallSite<'_>, call: &ToolCall) -> impl Iterator<Item = &'f Gate> {
        self.flow.of(&at.step.node).tool_gates(at.agent.map(|agent| agent.gates_of), &call.tool)
    }

    /// Whether a gate closes, given what its condition sees.
    pub(in crate::engine) fn closes(&self, gate: &Gate, node: &NodeId, seen: Visit<'_>) -> bool {
        closes(self.flow, &self.state, gate, node, seen)
    }

    /// Returns the title that a gate gives; `None` if it gives none, or one that cannot be rendered.
    pub(super) fn given_title(&self, step: &Step, gate: &Gate, seen: Visit<'_>) -> Option<String> {
        let rendered = self.render(step, gate.title.as_ref()?, seen);
        rendered.ok().and_then(|title| title::of_template(&title))
    }

    /// Returns what happens if nobody decides in time: as the gate says, or else as the flow's defaults say, adapted to
    /// calls, since an action happens or does not.
    pub(super) fn gate_timeout(&self, step: &Step, gate: &Gate) -> Option<OnTimeout> {
        let default = || self.flow.of(&step.node).flow.defaults.on_timeout.as_ref().map(OnTimeout::for_calls);
        gate.on_timeout.clone().or_else(default)
    }
}

impl<'a> CallSite<'a> {
    /// Returns what a gate's condition and title see of a call.
    pub(super) fn seen(self, call: &'a ToolCall) -> Visit<'a> {
        let (number, correction, agent) = (self.step.visit, self.correction, self.agent.map(|agent| agent.name));
        Visit { number, correction, arguments: Some(&call.arguments), agent, ..Visit::default() }
    }
}

/// Returns the handlers that are asked before people, who come last whether they are named or not.
fn before_people(handlers: &[Handler]) -> &[Handler] {
    let people = handlers.iter().position(|handler| *handler == Handler::Human);
    people.map_or(handlers, |people| &handlers[..people])
}

/// Whether two gates differ at most in condition and title: then a pass by one also holds for the other.
fn are_alike(one: &Gate, other: &Gate) -> bool {
    let beside_their_conditions = |gate: &Gate| Gate { when: None, title: None, ..gate.clone() };
    beside_their_conditions(one) == beside_their_conditions(other)
}
