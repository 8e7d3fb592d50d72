//! The gates of a compiled flow: which gate each call, agent and output has, and which judge is asked about
//! specialists. It also has the tools with which the lead of a team calls members.

use std::borrow::Cow;
use std::collections::HashMap;

use shared::definition::{AutoHandler, Builtin, Flow, Gate, GateSetting, Handler, NodeKind, Tool, ToolKind};
use shared::id::NodeId;

use super::{Compiled, DELEGATE, setting_of};

impl Compiled {
    /// The gates of a tool that an agent, or a tool node, calls, whatever their `when` says: that of what changes a team, then
    /// that of the tool, then that of `ask_permission` where the `when` of the tool's gate may open it. Each that closes is
    /// asked, one after another.
    pub fn tool_gates(&self, agent: Option<&str>, tool: &str) -> impl Iterator<Item = &Gate> {
        let gates = [self.team_gate(tool), self.tool_gate(agent, tool), self.permission_gate(agent, tool)];
        gates.into_iter().flatten()
    }

    /// The gate of a tool. The agent's own gates win over the flow's, the exact name over a pattern, the longest pattern over
    /// others; `false` opens. `ask_permission` is a gate by the exact name, and nothing opens it.
    fn tool_gate(&self, agent: Option<&str>, tool: &str) -> Option<&Gate> {
        let asks = self.asks_permission(tool);
        match self.setting(agent, tool) {
            Some((name, GateSetting::Gate(gate))) if name == tool || !asks => Some(gate),
            Some((_, GateSetting::Switch(true))) if !asks => Some(&self.plain_gate),
            _ => asks.then(|| self.gate_of_permission(tool)),
        }
    }

    /// The gate of `ask_permission`, where another gate by the exact name has a condition: it asks about each call that this
    /// gate has not asked about. It is the last of the tool's gates.
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

    /// Who is asked where a node or a gate names these handlers: else those of the flow's defaults.
    pub fn handlers<'f>(&'f self, own: Option<&'f [Handler]>) -> &'f [Handler] {
        own.or(self.flow.defaults.handlers.as_deref()).unwrap_or_default()
    }

    /// A tool by its name: of the flow, or that with which the lead of a team calls a member.
    pub fn tool(&self, name: &str) -> Option<Cow<'_, Tool>> {
        let own = self.flow.tools.get(name).map(Cow::Borrowed);
        own.or_else(|| {
            let agent = name.strip_prefix(DELEGATE)?;
            let instructions = self.flow.agents.get(agent).and_then(|agent| agent.instructions.clone());
            Some(Cow::Owned(Tool::of_agent(agent, instructions)))
        })
    }

    /// A gate that says nothing of its own.
    pub fn plain_gate(&self) -> &Gate {
        &self.plain_gate
    }

    /// Who is asked about the specialists of a team, once nothing else holds them back; none where nobody is.
    pub fn vetting(&self, node: &NodeId) -> Option<&[Handler]> {
        self.of(node).vetting.get(node.own()).map(Vec::as_slice)
    }

    /// The gate of an agent by its name, whatever its `when` says; names and patterns are those of tools. Of an agent that
    /// another has made, `made_by`, the gate of its maker holds where its own name has none: the maker chose that name.
    pub fn agent_gate(&self, agent: &str, made_by: &str) -> Option<&Gate> {
        let gate_of =
            |name: &str| setting_of(&self.flow.gates.before_agent, name).and_then(|(_, setting)| self.closed(setting));
        gate_of(agent).or_else(|| gate_of(made_by))
    }

    /// The gate of the output, whatever its `when` says.
    pub fn return_gate(&self) -> Option<&Gate> {
        self.flow.gates.before_return.as_ref().and_then(|setting| self.closed(setting))
    }

    /// The gate of what changes a team, by the tool that does.
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

/// The judges of specialists, by the node of their team. Whom the judge does not approve is not made.
pub(super) fn vetting(flow: &Flow) -> HashMap<String, Vec<Handler>> {
    let judged = flow.nodes.iter().filter_map(|(id, node)| match &node.kind {
        NodeKind::Team(team) => Some((id, team.emergent.as_ref()?.judge.clone()?)),
        _ => None,
    });
    let refused = || Handler::Auto(AutoHandler::Reject("the judge did not approve this specialist".to_owned()));
    judged.map(|(id, judge)| (id.own().to_owned(), vec![Handler::Judge(judge), refused()])).collect()
}

/// The gates of tools that say which answers they take.
pub(super) fn asking(flow: &Flow) -> HashMap<String, Gate> {
    let asks = flow.tools.iter().filter_map(|(name, tool)| {
        let allowed_decisions = Some(tool.ask_permission.allowed_decisions()?.to_vec());
        Some((name.clone(), Gate { allowed_decisions, ..Gate::default() }))
    });
    asks.collect()
}
