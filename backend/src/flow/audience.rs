//! The requirements of a flow on the existing users.

use shared::definition::{Flow, NodeKind, Reviewers};

use super::expressions::gates;

/// Whether a flow depends on the existing users: it counts votes, or its reviewers may be excluded or need tags.
pub fn needs(flow: &Flow) -> bool {
    let votes = |kind: &NodeKind| matches!(kind, NodeKind::Human(human) if !human.policy.is_first());
    flow.nodes.values().any(|node| votes(&node.kind))
        || flow.tools.values().any(|tool| !tool.policy.is_first())
        || reviewers(flow).any(Reviewers::rests_on_people)
}

/// Returns the reviewers of all human nodes, gates, tools, routes and defaults.
pub fn reviewers(flow: &Flow) -> impl Iterator<Item = &Reviewers> {
    let nodes = flow.nodes.values().filter_map(|node| match &node.kind {
        NodeKind::Human(human) => Some(&human.reviewers),
        _ => None,
    });
    let tools = flow.tools.values().map(|tool| &tool.reviewers);
    let defaults = flow.routing.iter().map(|route| &route.reviewers).chain([&flow.defaults.reviewers]);
    nodes.chain(gates(flow).map(|(_, gate)| &gate.reviewers)).chain(tools).chain(defaults)
}
