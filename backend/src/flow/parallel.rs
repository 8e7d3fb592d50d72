//! Nodes that can run at the same time: those of two branches that begin at one node.
//!
//! For two edges of a node that can be taken at the same time, what follows each is a branch, up to the node itself. A node
//! to which both branches come is visited by one after the other, so two such nodes are not together; behind a `join: all`
//! at which both meet there is one branch only, so what follows it is left out.
//!
//! Two edges of a node can be taken at the same time unless one is `else` and the other has a `when`, or both have a `when`
//! that compares the same thing with different literals (`decision.option == 'a'` and `decision.option == 'b'`). Any other
//! two `when` may both hold, so they count.

use std::collections::{BTreeSet, HashMap};

use shared::definition::{Edge, EdgeCondition, Flow, Join, Target};
use shared::id::NodeId;

use super::keys::{may_write, writes_any};
use super::limits::MAX_EDGES;
use super::reachability::edges_of;

/// The graph by numbers, in the order of the nodes: sets of nodes are rows of bits, since many pairs of branches are
/// compared.
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
    /// Those of a flow.
    pub fn of(flow: &'f Flow) -> Self {
        let index: HashMap<&NodeId, usize> = flow.nodes.keys().enumerate().map(|(at, id)| (id, at)).collect();
        let steps = flow.nodes.values().map(|node| edges_of(flow, node).iter().map(|(_, to)| index[to]).collect());
        let steps = steps.collect();
        Self { flow, index, steps, joins: flow.nodes.values().map(|node| node.join == Join::All).collect() }
    }

    /// Calls `visit` with each node at which two branches begin that can run at the same time, and with these.
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
                    if to != other && can_be_together(a, b) && left != right {
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

    /// The nodes to which a branch that begins at `first` may come, without `stop`.
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
    /// The nodes of the one branch, up to where both meet.
    pub fn left(&self) -> impl Iterator<Item = usize> {
        (0..self.left.len()).filter(|at| self.left[*at] && !self.joined[*at])
    }

    /// The nodes of the other.
    pub fn right(&self) -> impl Iterator<Item = usize> {
        (0..self.right.len()).filter(|at| self.right[*at] && !self.joined[*at])
    }

    /// Whether a node of the one and a node of the other can run at the same time.
    pub fn are_together(&self, left: usize, right: usize) -> bool {
        let both_common = self.right[left] && self.left[right];
        left != right && !both_common
    }
}

/// For each node that may write any key, the keys that others may write while it runs.
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
pub fn can_be_together(a: &Edge, b: &Edge) -> bool {
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
