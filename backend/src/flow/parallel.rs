//! Nodes that can run at the same time: those of two branches that begin at one node.
//!
//! Each of two edges of a node that can be taken at the same time begins a branch: all nodes after it, up to the node
//! itself. A node that both branches reach is visited by one after the other, so two such nodes do not run at the same
//! time. After a `join: all` at which both meet there is one branch only, so nodes after it are left out.
//!
//! Two edges of a node can be taken at the same time unless one is `else` and the other has a `when`, or both have a
//! `when` that compares the same expression with different literals (`decision.option == 'a'` and `decision.option ==
//! 'b'`). Any other two conditions may both be true.

use std::collections::{BTreeSet, HashMap};

use shared::definition::{Edge, EdgeCondition, Flow, Join, Node, NodeKind, Target};
use shared::id::NodeId;

use super::keys::{may_write, writes_any};
use super::limits::MAX_EDGES;
use super::reachability::edges_of;

/// The graph with numbered nodes, in the order of the flow. Sets of nodes are vectors of flags, since many pairs of
/// branches are compared.
pub struct Branches<'f> {
    flow: &'f Flow,
    index: HashMap<&'f NodeId, usize>,
    steps: Vec<Vec<usize>>,
    joins: Vec<bool>,
}

type Nodes = Vec<bool>;

/// Two branches that can run at the same time.
pub struct Pair {
    left: Nodes,
    right: Nodes,
    joined: Nodes,
}

impl<'f> Branches<'f> {
    /// Builds the graph of a flow.
    pub fn of(flow: &'f Flow) -> Self {
        let index: HashMap<&NodeId, usize> = flow.nodes.keys().enumerate().map(|(at, id)| (id, at)).collect();
        let steps = flow.nodes.values().map(|node| edges_of(flow, node).iter().map(|(_, to)| index[to]).collect());
        let steps = steps.collect();
        Self { flow, index, steps, joins: flow.nodes.values().map(|node| node.join == Join::All).collect() }
    }

    /// Calls `visit` with each node that begins two branches which can run at the same time, and with this pair.
    pub fn pairs(&self, visit: &mut dyn FnMut(usize, &Pair)) {
        for (fork, node) in self.flow.nodes.values().enumerate() {
            let to = |edge: &'f Edge| match &edge.to {
                Target::Node(to) => Some((edge, *self.index.get(to)?)),
                Target::End => None,
            };
            let edges: Vec<_> = node.next.0.iter().take(MAX_EDGES).filter_map(to).collect();
            if edges.len() < 2 {
                continue;
            }
            let followed: Vec<Nodes> = edges.iter().map(|(_, to)| self.from(*to, fork)).collect();
            for (first, (a, to)) in edges.iter().enumerate() {
                for (second, (b, other)) in edges.iter().enumerate().skip(first + 1) {
                    let (left, right) = (&followed[first], &followed[second]);
                    if to != other && can_be_together(node, a, b) && left != right {
                        visit(fork, &self.pair(left.clone(), right.clone(), fork));
                    }
                }
            }
        }
    }

    fn pair(&self, left: Nodes, right: Nodes, fork: usize) -> Pair {
        let mut joined = vec![false; self.steps.len()];
        for join in (0..self.steps.len()).filter(|at| self.joins[*at] && left[*at] && right[*at]) {
            for (at, after) in self.from(join, fork).into_iter().enumerate() {
                joined[at] |= after;
            }
        }
        Pair { left, right, joined }
    }

    /// Returns the nodes that a branch from `first` can reach without passing `stop`.
    fn from(&self, first: usize, stop: usize) -> Nodes {
        let mut seen = vec![false; self.steps.len()];
        let mut waiting = vec![first];
        while let Some(at) = waiting.pop() {
            if at != stop && !seen[at] {
                seen[at] = true;
                waiting.extend(&self.steps[at]);
            }
        }
        seen
    }
}

impl Pair {
    /// Returns the nodes of the first branch, up to where both meet.
    pub fn left(&self) -> impl Iterator<Item = usize> {
        (0..self.left.len()).filter(|at| self.left[*at] && !self.joined[*at])
    }

    /// Returns the nodes of the second branch, up to where both meet.
    pub fn right(&self) -> impl Iterator<Item = usize> {
        (0..self.right.len()).filter(|at| self.right[*at] && !self.joined[*at])
    }

    /// Whether a node of the first branch and a node of the second can run at the same time.
    pub fn are_together(&self, left: usize, right: usize) -> bool {
        let both_common = self.right[left] && self.left[right];
        left != right && !both_common
    }
}

/// Returns the keys that other nodes may write at the same time, for each node that may write any key.
pub fn written_beside(flow: &Flow) -> HashMap<NodeId, BTreeSet<String>> {
    let mut beside = HashMap::new();
    if !flow.nodes.values().any(writes_any) {
        return beside;
    }
    let written: Vec<BTreeSet<String>> = flow.nodes.iter().map(|(id, node)| may_write(flow, id, node)).collect();
    let mut add = |at: usize, other: usize| {
        let Some((id, _)) = flow.nodes.get_index(at).filter(|(_, node)| writes_any(node)) else { return };
        let keys: &mut BTreeSet<String> = beside.entry(id.clone()).or_default();
        keys.extend(written[other].iter().cloned());
    };
    Branches::of(flow).pairs(&mut |_, pair| {
        for left in pair.left() {
            for right in pair.right().filter(|right| pair.are_together(left, *right)) {
                add(left, right);
                add(right, left);
            }
        }
    });
    beside
}

/// Whether two edges of a node can be taken at the same time.
pub fn can_be_together(node: &Node, a: &Edge, b: &Edge) -> bool {
    // An agent chooses one of them.
    if matches!(&node.kind, NodeKind::Router(router) if router.agent.is_some()) {
        return false;
    }
    match (&a.condition, &b.condition) {
        (EdgeCondition::When(_), EdgeCondition::Else) | (EdgeCondition::Else, EdgeCondition::When(_)) => false,
        (EdgeCondition::When(a), EdgeCondition::When(b)) => match (comparison(a), comparison(b)) {
            (Some((left, a)), Some((right, b))) => left != right || a == b,
            _ => true,
        },
        _ => true,
    }
}

/// Splits a condition of the form `expression == literal`.
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
