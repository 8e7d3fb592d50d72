//! The agents that a flow uses, and the additional tools that its teams give them.

use std::collections::BTreeSet;

use shared::definition::{Builtin, Flow, NodeKind, Team, ToolKind};

use super::compiled::DELEGATE;

/// Returns the agents that may be called first: those of nodes, teams and tools. If any tool escalates, returns all
/// agents, since any of them may take over.
pub fn used(flow: &Flow) -> BTreeSet<&str> {
    let escalates = |kind: &ToolKind| *kind == ToolKind::Builtin(Builtin::Escalate);
    if flow.tools.values().any(|tool| escalates(&tool.kind)) {
        return flow.agents.keys().map(String::as_str).collect();
    }
    let of_nodes = flow.nodes.values().flat_map(|node| match &node.kind {
        NodeKind::Agent { agent, .. } => vec![agent.as_str()],
        NodeKind::Router(router) => router.agent.as_deref().into_iter().collect(),
        NodeKind::Team(team) => team.named().collect(),
        _ => Vec::new(),
    });
    let of_tools = flow.tools.values().filter_map(|tool| match &tool.kind {
        ToolKind::Agent(agent) => Some(agent.as_str()),
        _ => None,
    });
    of_nodes.chain(of_tools).collect()
}

/// Returns the teams of a flow.
pub fn teams(flow: &Flow) -> impl Iterator<Item = &Team> {
    flow.nodes.values().filter_map(|node| match &node.kind {
        NodeKind::Team(team) => Some(team),
        _ => None,
    })
}

/// Returns the names of the tools with which leads may call members. Strategies may change and specialists may join at
/// run time; these are the names that are known before.
pub fn delegates(flow: &Flow) -> impl Iterator<Item = String> {
    teams(flow).flat_map(Team::named).map(|agent| format!("{DELEGATE}{agent}"))
}
