//! The gates of a compiled flow: the gate of each call, agent and output, and the judges of specialists. Also the tools
//! with which the lead of a team calls members.

use std::borrow::Cow;
use std::collections::HashMap;

use shared::definition::{AutoHandler, Builtin, Flow, Gate, GateSetting, Handler, NodeKind, Tool, ToolKind};
use shared::id::NodeId;

use super::{Compiled, DELEGATE, setting_of};

impl Compiled {
    /// Returns the gates of a tool for an agent or a tool node, regardless of their `when`: that of changes to a team,
    /// then that of the tool, then that of `ask_permission` if the `when` of the tool's gate may open it. Each closed
    /// gate is asked, one after another.
    pub fn tool_gates(&self, agent: Option<&str>, tool: &str) -> impl Iterator<Item = &Gate> {
        let gates = [self.team_gate(tool), self.tool_gate(agent, tool), self.permission_gate(agent, tool)];
        gates.into_iter().flatten()
    }

    /// Returns the gate of a tool. The agent's own gates override the flow's, the exact name overrides patterns, and
    /// longer patterns override shorter ones; `false` opens. `ask_permission` is a gate by the exact name that nothing
    /// opens.
    fn tool_gate(&self, agent: Option<&str>, tool: &str) -> Option<&Gate> {
        let asks = self.asks_permission(tool);
        match self.setting(agent, tool) {
            Some((name, GateSetting::Gate(gate))) if name == tool || !asks => Some(gate),
            Some((_, GateSetting::Switch(true))) if !asks => Some(&self.plain_gate),
            _ => asks.then(|| self.gate_of_permission(tool)),
        }
    }

    /// Returns the gate of `ask_permission` if another gate by the exact name has a condition: it asks about each call
    /// that the other gate did not ask about. It is the last of the tool's gates.
    pub fn permission_gate(&self, agent: Option<&str>, tool: &str) -> Option<&Gate> {
        let (name, setting) = self.setting(agent, tool)?;
        let may_open = matches!(setting, GateSetting::Gate(gate) if gate.when.is_some());
        (name == tool && may_open && self.asks_permission(tool)).then(|| self.gate_of_permission(tool))
    }

    fn asks_permission(&self, tool: &str) -> bool {
        self.flow.tools.get(tool).is_some_and(|tool| !tool.ask_permission.is_no())
    }

    fn gate_of_permission(&self, tool: &str) -> &Gate {
        self.asking.get(tool).unwrap_or(&self.plain_gate)
    }

    fn setting(&self, agent: Option<&str>, tool: &str) -> Option<(&str, &GateSetting)> {
        let own = agent.and_then(|agent| setting_of(&self.flow.agents.get(agent)?.gates.before_tool, tool));
        own.or_else(|| setting_of(&self.flow.gates.before_tool, tool))
    }

    /// Returns the handlers of a node or a gate: its own, otherwise the flow's defaults.
    pub fn handlers<'f>(&'f self, own: Option<&'f [Handler]>) -> &'f [Handler] {
        own.or(self.flow.defaults.handlers.as_deref()).unwrap_or_default()
    }

    /// Returns a tool by its name: a tool of the flow, or one with which the lead of a team calls a member.
    pub fn tool(&self, name: &str) -> Option<Cow<'_, Tool>> {
        let own = self.flow.tools.get(name).map(Cow::Borrowed);
        own.or_else(|| {
            let agent = name.strip_prefix(DELEGATE)?;
            let instructions = self.flow.agents.get(agent).and_then(|agent| agent.instructions.clone());
            Some(Cow::Owned(Tool::of_agent(agent, instructions)))
        })
    }

    /// Returns a gate without any settings.
    pub fn plain_gate(&self) -> &Gate {
        &self.plain_gate
    }

    /// Returns the handlers that judge a team's specialists, once no gate holds them back. `None` without a judge.
    pub fn vetting(&self, node: &NodeId) -> Option<&[Handler]> {
        self.of(node).vetting.get(node.own()).map(Vec::as_slice)
    }

    /// Returns the gate of an agent, regardless of its `when`. Names and patterns work as for tools. For a specialist,
    /// the gate of `made_by`, the agent that made it, applies if none matches its own name, since the maker chose that
    /// name.
    pub fn agent_gate(&self, agent: &str, made_by: &str) -> Option<&Gate> {
        let gate_of =
            |name: &str| setting_of(&self.flow.gates.before_agent, name).and_then(|(_, setting)| self.closed(setting));
        gate_of(agent).or_else(|| gate_of(made_by))
    }

    /// Returns the gate of the output, regardless of its `when`.
    pub fn return_gate(&self) -> Option<&Gate> {
        self.flow.gates.before_return.as_ref().and_then(|setting| self.closed(setting))
    }

    /// Returns the gate of changes to a team, by the tool that makes them.
    fn team_gate(&self, tool: &str) -> Option<&Gate> {
        let gates = &self.flow.gates;
        let setting = match self.flow.tools.get(tool)?.kind {
            ToolKind::Builtin(Builtin::SpawnSpecialist) => gates.before_emergent.as_ref(),
            ToolKind::Builtin(Builtin::SetStrategy) => gates.before_strategy_override.as_ref(),
            _ => None,
        };
        setting.and_then(|setting| self.closed(setting))
    }

    fn closed<'a>(&'a self, setting: &'a GateSetting) -> Option<&'a Gate> {
        match setting {
            GateSetting::Gate(gate) => Some(gate),
            GateSetting::Switch(true) => Some(&self.plain_gate),
            GateSetting::Switch(false) => None,
        }
    }
}

/// Returns the judges of specialists, by the node of their team. A specialist that the judge does not approve is not
/// made.
pub(super) fn vetting(flow: &Flow) -> HashMap<String, Vec<Handler>> {
    let judged = flow.nodes.iter().filter_map(|(id, node)| match &node.kind {
        NodeKind::Team(team) => Some((id, team.emergent.as_ref()?.judge.clone()?)),
        _ => None,
    });
    let refused = || Handler::Auto(AutoHandler::Reject("the judge did not approve this specialist".to_owned()));
    judged.map(|(id, judge)| (id.own().to_owned(), vec![Handler::Judge(judge), refused()])).collect()
}

/// Returns the gates of tools whose `ask_permission` restricts the answers.
pub(super) fn asking(flow: &Flow) -> HashMap<String, Gate> {
    let asks = flow.tools.iter().filter_map(|(name, tool)| {
        let allowed_decisions = Some(tool.ask_permission.allowed_decisions()?.to_vec());
        Some((name.clone(), Gate { allowed_decisions, ..Gate::default() }))
    });
    asks.collect()
}
