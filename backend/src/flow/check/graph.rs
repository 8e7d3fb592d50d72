//! Checks the graph: edges, unreachable nodes, and output that is passed on too early.
//!
//! **Delegation.** A node whose `next` leads to a human node with options may lead to no other node at the same time.
//! The rule is about the pair of edges, whatever the kind of the node; `end` is nowhere.

use shared::definition::{EdgeCondition, Human, Node, Target};
use shared::error::{FlowCode, pointer};
use shared::id::NodeId;

use super::Checker;
use crate::flow::agents::used;
use crate::flow::limits::MAX_EDGES;
use crate::flow::parallel::can_be_together;
use crate::flow::reachability::mapped;

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    if flow.nodes.is_empty() {
        checker.invalid("/nodes", "a flow needs at least one node");
        return;
    }
    for (id, node) in &flow.nodes {
        edges(checker, id, node);
    }
    unreachable(checker);
    unused(checker);
}

fn edges(checker: &mut Checker<'_>, id: &NodeId, node: &Node) {
    let base = pointer(["nodes", id.as_str(), "next"]);
    let of = |wanted: fn(&EdgeCondition) -> bool| {
        node.next.0.iter().enumerate().filter(move |(_, edge)| wanted(&edge.condition)).map(|(index, _)| index)
    };
    let otherwise: Vec<usize> = of(|condition| *condition == EdgeCondition::Else).collect();
    let conditional = of(|condition| matches!(condition, EdgeCondition::When(_))).count();
    for index in otherwise.iter().skip(1) {
        checker.invalid(&format!("{base}/{index}/else"), "there is already an `else`; a node has at most one");
    }
    if let Some(index) = otherwise.first()
        && conditional == 0
    {
        let message = "`else` is taken if no `when` applies, but there is no `when` here";
        checker.invalid(&format!("{base}/{index}/else"), message);
    }
    if node.next.0.len() > MAX_EDGES {
        checker.invalid(&base, format!("a node leads to at most {MAX_EDGES} others; put routers in between"));
    }
    for (index, edge) in node.next.0.iter().enumerate().take(MAX_EDGES) {
        let Target::Node(to) = &edge.to else { continue };
        let doubled = node.next.0.iter().take(index).any(|before| before == edge);
        if doubled {
            checker.invalid(&format!("{base}/{index}"), format!("`{to}` is listed twice"));
        }
        if !asks_with_options(checker, to) {
            continue;
        }
        let beside = node.next.0.iter().find_map(|other| match &other.to {
            Target::Node(beside) if beside != to && can_be_together(node, edge, other) => Some(beside),
            _ => None,
        });
        if let Some(beside) = beside {
            let message = format!(
                "`{id}` leads to `{to}`, where a person may still correct it, and to `{beside}` at the same time: its \
                 output would be passed on before it was approved; let `{to}` lead to `{beside}`, or fork earlier"
            );
            checker.error(&format!("{base}/{index}"), FlowCode::FlowInvalidDelegation, message);
        }
    }
}

fn asks_with_options(checker: &Checker<'_>, id: &NodeId) -> bool {
    checker.flow.nodes.get(id).and_then(|node| node.kind.human()).is_some_and(Human::has_options)
}

fn unreachable(checker: &mut Checker<'_>) {
    let Some(start) = checker.flow.start().filter(|start| checker.flow.nodes.contains_key(*start)) else { return };
    let mapped = mapped(checker.flow);
    for id in checker.flow.nodes.keys().filter(|id| !mapped.contains_key(id)) {
        if id != start && !checker.reachability.reaches(start, id) {
            let message = format!("`{id}` cannot be reached from `{start}`; lead to it with `next`, or remove it");
            checker.invalid(&pointer(["nodes", id.as_str()]), message);
        }
    }
}

fn unused(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let agents = used(flow);
    for name in flow.agents.keys().filter(|name| !agents.contains(name.as_str())) {
        checker.warn(&pointer(["agents", name]), format!("nothing uses the agent `{name}`"));
    }
}
