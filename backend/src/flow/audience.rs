//! The requirements of a flow on the existing users.

use shared::definition::{Flow, Reviewers};

use super::expressions::gates;

/// Whether a flow depends on the existing users: it counts votes, or its reviewers may be excluded or need tags.
pub fn needs(flow: &Flow) -> bool {
    flow.humans().any(|(_, human)| !human.policy.is_first())
        || flow.tools.values().any(|tool| !tool.policy.is_first())
        || reviewers(flow).any(Reviewers::rests_on_people)
}

/// Returns the reviewers of all human nodes, gates, tools, routes and defaults.
pub fn reviewers(flow: &Flow) -> impl Iterator<Item = &Reviewers> {
    let nodes = flow.humans().map(|(_, human)| &human.reviewers);
    let tools = flow.tools.values().map(|tool| &tool.reviewers);
    let defaults = flow.routing.iter().map(|route| &route.reviewers).chain([&flow.defaults.reviewers]);
    nodes.chain(gates(flow).map(|(_, gate)| &gate.reviewers)).chain(tools).chain(defaults)
}
