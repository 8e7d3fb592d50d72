//! Where branches may go: the current edges of a node, and the remaining visits of nodes.

use shared::definition::{EdgeCondition, Target};
use shared::error::{FlowCode, FlowError};
use shared::id::NodeId;

use super::builder::{Builder, failure, unevaluated};
use super::scope::{self, Visit};

impl Builder<'_> {
    /// Returns how often a node may still be visited.
    pub(super) fn visits_left(&self, id: &NodeId) -> u32 {
        let visits = self.state.visits.get(id).copied().unwrap_or(0);
        self.flow.node(id).map_or(0, |node| node.max_visits().saturating_sub(visits))
    }

    /// Returns the targets of the edges in `next` that apply now: those without a condition, those whose `when` holds,
    /// and `else` if no `when` holds. Empty if the node has no edges; an error if it has edges and none applies.
    pub(super) fn targets(&self, id: &NodeId, visit: u32) -> Result<Vec<Target>, FlowError> {
        let edges = self.flow.node(id).map(|node| node.next.0.as_slice()).unwrap_or_default();
        if edges.is_empty() {
            return Ok(Vec::new());
        }
        let scope = scope::of(self.flow, &self.state, id, Visit { number: visit, ..Visit::default() });
        let mut held = Vec::with_capacity(edges.len());
        for edge in edges {
            held.push(match &edge.condition {
                EdgeCondition::When(when) => {
                    self.flow.of(id).holds(when, &scope).map_err(|error| unevaluated(id, &error))?
                }
                EdgeCondition::Always | EdgeCondition::Else => false,
            });
        }
        let any = held.contains(&true);
        let taken: Vec<_> = edges
            .iter()
            .zip(held)
            .filter(|(edge, held)| match edge.condition {
                EdgeCondition::Always => true,
                EdgeCondition::When(_) => *held,
                EdgeCondition::Else => !any,
            })
            .map(|(edge, _)| edge.to.clone())
            .collect();
        if taken.is_empty() {
            let message = format!("no edge of `{id}` applies: add one with `else: true`");
            return Err(failure(FlowCode::FlowNoMatchingEdge, id, message));
        }
        Ok(taken)
    }
}
