//! The graph as a whole: edges, what is unreachable, output that is passed on too early, and branches that would write
//! over each other.
//!
//! **At the same time.** Two edges of a node can be taken at the same time unless one is `else` and the other has a
//! `when`, or both have a `when` that compares the same thing with different literals (`decision.option == 'a'` and
//! `decision.option == 'b'`). Any other two `when` may both hold, so they count.
//!
//! **Delegation.** A node whose `next` leads to a human node with options may lead to no other node at the same time.
//! The rule is about the pair of edges, whatever the kind of the node; `end` is nowhere.
//!
//! **Writes.** For two edges that can be taken at the same time, what follows each is a branch, up to the node itself
//! and up to a `join: all` at which both meet. A key may be written in one of the two branches only. Nodes that both
//! come to are visited one after another and are compared with neither side's common nodes.

use std::collections::{BTreeMap, BTreeSet};

use shared::definition::{Edge, EdgeCondition, Join, Node, NodeKind, Target};
use shared::error::{FlowCode, pointer};
use shared::id::NodeId;

use super::Checker;
use crate::flow::keys::writes;
use crate::flow::ways::ways;

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
    conflicts(checker);
}

fn edges(checker: &mut Checker<'_>, id: &NodeId, node: &Node) {
    let base = pointer(["nodes", id.as_str(), "next"]);
    let of = |wanted: fn(&EdgeCondition) -> bool| {
        node.next.0.iter().enumerate().filter(move |(_, edge)| wanted(&edge.condition)).map(|(index, _)| index)
    };
    let otherwise: Vec<usize> = of(|condition| *condition == EdgeCondition::Else).collect();
    let conditional = of(|condition| matches!(condition, EdgeCondition::When(_))).count();
    for index in otherwise.iter().skip(1) {
        checker.invalid(&format!("{base}/{index}/else"), "there is an `else` already; only one can be taken");
    }
    if let Some(index) = otherwise.first()
        && conditional == 0
    {
        let message = "`else` is taken where no `when` held, and there is no `when` here";
        checker.invalid(&format!("{base}/{index}/else"), message);
    }
    for (index, edge) in node.next.0.iter().enumerate() {
        let Target::Node(to) = &edge.to else { continue };
        let doubled = node.next.0.iter().take(index).any(|before| before == edge);
        if doubled {
            checker.invalid(&format!("{base}/{index}"), format!("`{to}` stands here twice"));
        }
        if !asks_with_options(checker, to) {
            continue;
        }
        let beside = node.next.0.iter().find_map(|other| match &other.to {
            Target::Node(beside) if beside != to && can_be_together(edge, other) => Some(beside),
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
    matches!(
        checker.flow.nodes.get(id).map(|node| &node.kind),
        Some(NodeKind::Human(human)) if !human.options.is_empty()
    )
}

fn can_be_together(a: &Edge, b: &Edge) -> bool {
    match (&a.condition, &b.condition) {
        (EdgeCondition::When(_), EdgeCondition::Else) | (EdgeCondition::Else, EdgeCondition::When(_)) => false,
        (EdgeCondition::When(a), EdgeCondition::When(b)) => match (comparison(a), comparison(b)) {
            (Some((left, a)), Some((right, b))) => left != right || a == b,
            _ => true,
        },
        _ => true,
    }
}

/// A condition of the form `something == literal`.
fn comparison(condition: &str) -> Option<(String, String)> {
    let (left, right) = condition.split_once("==")?;
    let right = right.trim();
    let text = |quote: char| {
        let inside = right.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inside.contains([quote, '\\'])).then(|| format!("'{inside}'"))
    };
    let plain = matches!(right, "true" | "false" | "null") || right.parse::<i64>().is_ok();
    let literal = text('\'').or_else(|| text('"')).or_else(|| plain.then(|| right.to_owned()))?;
    let compound = ["&&", "||", "?", "==", "!", "<", ">"].iter().any(|operator| left.contains(operator));
    (!compound).then(|| (left.split_whitespace().collect(), literal))
}

fn unreachable(checker: &mut Checker<'_>) {
    let Some(start) = checker.flow.start().filter(|start| checker.flow.nodes.contains_key(*start)) else { return };
    for id in checker.flow.nodes.keys() {
        if id != start && !checker.ways.reaches(start, id) {
            let message = format!("`{id}` is never reached from `{start}`; lead to it with `next`, or remove it");
            checker.invalid(&pointer(["nodes", id.as_str()]), message);
        }
    }
}

fn unused(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let agents: BTreeSet<&str> = flow
        .nodes
        .values()
        .flat_map(|node| match &node.kind {
            NodeKind::Agent { agent, .. } => vec![agent.as_str()],
            NodeKind::Router(router) => router.agent.as_deref().into_iter().collect(),
            NodeKind::Team(team) => team.agents.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        })
        .collect();
    for name in flow.agents.keys().filter(|name| !agents.contains(name.as_str())) {
        checker.warn(&pointer(["agents", name]), format!("no node uses the agent `{name}`"));
    }
}

fn conflicts(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let mut noted = BTreeSet::new();
    for (fork, node) in &flow.nodes {
        let edges: Vec<(&Edge, &NodeId)> = node
            .next
            .0
            .iter()
            .filter_map(|edge| match &edge.to {
                Target::Node(to) if flow.nodes.contains_key(to) => Some((edge, to)),
                _ => None,
            })
            .collect();
        let branches: Vec<BTreeSet<&NodeId>> = edges.iter().map(|(_, to)| branch(checker, fork, to)).collect();
        for (first, (a, left)) in edges.iter().enumerate() {
            for (second, (b, right)) in edges.iter().enumerate().skip(first + 1) {
                if left != right && can_be_together(a, b) {
                    compare(checker, fork, &branches[first], &branches[second], &mut noted);
                }
            }
        }
    }
}

/// The nodes that a branch may come to, without going through the fork again.
fn branch<'a>(checker: &Checker<'a>, fork: &NodeId, first: &'a NodeId) -> BTreeSet<&'a NodeId> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![first];
    while let Some(at) = waiting.pop() {
        if at != fork && seen.insert(at) {
            waiting.extend(checker.flow.nodes.get(at).into_iter().flat_map(|node| ways(checker.flow, node)).map(|(_, to)| to));
        }
    }
    seen
}

fn compare(
    checker: &mut Checker<'_>,
    fork: &NodeId,
    left: &BTreeSet<&NodeId>,
    right: &BTreeSet<&NodeId>,
    noted: &mut BTreeSet<(String, String)>,
) {
    let flow = checker.flow;
    let common: BTreeSet<&NodeId> = left.intersection(right).copied().collect();
    let joins: Vec<&NodeId> = common.iter().copied().filter(|id| flow.nodes[*id].join == Join::All).collect();
    let after_join =
        |id: &NodeId| joins.iter().any(|join| *join == id || (common.contains(id) && checker.ways.reaches(join, id)));
    let keys = |branch: &BTreeSet<&NodeId>| -> BTreeMap<String, Vec<(NodeId, String)>> {
        let mut keys: BTreeMap<String, Vec<(NodeId, String)>> = BTreeMap::new();
        for id in branch.iter().filter(|id| !after_join(id)) {
            for (path, key) in writes(id, &flow.nodes[*id]) {
                keys.entry(key).or_default().push(((*id).clone(), path));
            }
        }
        keys
    };
    let (ours, theirs) = (keys(left), keys(right));
    let mut found = Vec::new();
    for (key, writers) in &ours {
        for (a, _) in writers {
            for (b, path) in theirs.get(key).into_iter().flatten() {
                if a != b && !(common.contains(a) && common.contains(b)) {
                    found.push((a.clone(), b.clone(), path.clone(), key.clone()));
                }
            }
        }
    }
    for (a, b, path, key) in found {
        let pair = if a < b { (a.to_string(), b.to_string()) } else { (b.to_string(), a.to_string()) };
        if noted.insert((format!("{} {}", pair.0, pair.1), key.clone())) {
            let message = format!(
                "`{a}` and `{b}` can run at the same time after `{fork}`, and both write `{key}`; give one of them \
                 another key in `write_keys`"
            );
            checker.invalid(&path, message);
        }
    }
}
