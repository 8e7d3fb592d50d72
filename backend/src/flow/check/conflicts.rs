//! Branches that would write over each other.
//!
//! For two edges of a node that can be taken at the same time (see [`super::graph`]), what follows each is a branch, up
//! to the node itself. A key may be written in one of the two branches only. A node to which both branches come is
//! visited by one after the other, so two such nodes are not compared with each other; behind a `join: all` at which
//! both meet there is one branch only, so what follows it is not compared at all.

use std::collections::{BTreeSet, HashMap};

use shared::definition::{Join, Target};
use shared::id::NodeId;

use super::Checker;
use super::graph::can_be_together;
use crate::flow::keys::writes;
use crate::flow::limits::MAX_EDGES;
use crate::flow::reachability::edges_of;

/// The graph by numbers: sets of nodes are rows of bits, since many pairs of branches are compared.
struct Branches {
    steps: Vec<Vec<usize>>,
    /// Path and key of what each node writes.
    writes: Vec<Vec<(String, String)>>,
    joins: Vec<bool>,
}

type Nodes = Vec<bool>;

pub fn check(checker: &mut Checker<'_>) {
    let flow = checker.flow;
    let index: HashMap<&NodeId, usize> = flow.nodes.keys().enumerate().map(|(at, id)| (id, at)).collect();
    let ids: Vec<&NodeId> = flow.nodes.keys().collect();
    let mut branches = Branches {
        steps: flow.nodes.values().map(|node| edges_of(flow, node).iter().map(|(_, to)| index[to]).collect()).collect(),
        writes: flow.nodes.iter().map(|(id, node)| writes(id, node)).collect(),
        joins: flow.nodes.values().map(|node| node.join == Join::All).collect(),
    };
    branches.keep_shared_keys();
    if branches.writes.iter().all(Vec::is_empty) {
        return;
    }
    let mut noted = BTreeSet::new();
    for (fork, node) in flow.nodes.values().enumerate() {
        let edges: Vec<_> = node
            .next
            .0
            .iter()
            .take(MAX_EDGES)
            .filter_map(|edge| match &edge.to {
                Target::Node(to) => Some((edge, *index.get(to)?)),
                Target::End => None,
            })
            .collect();
        if edges.len() < 2 {
            continue;
        }
        let followed: Vec<Nodes> = edges.iter().map(|(_, to)| branches.from(*to, fork)).collect();
        for (first, (a, left)) in edges.iter().enumerate() {
            for (second, (b, right)) in edges.iter().enumerate().skip(first + 1) {
                if left == right || !can_be_together(a, b) {
                    continue;
                }
                for (one, other, path, key) in branches.conflicts(&followed[first], &followed[second], fork) {
                    if noted.insert((one.min(other), one.max(other), key)) {
                        let message = format!(
                            "`{}` and `{}` can run at the same time after `{}`, and both write `{key}`; give one of \
                             them another key in `write_keys`",
                            ids[one], ids[other], ids[fork]
                        );
                        checker.invalid(path, message);
                    }
                }
            }
        }
    }
}

impl Branches {
    /// Leaves out the keys that only one node writes.
    fn keep_shared_keys(&mut self) {
        let mut writers: HashMap<String, usize> = HashMap::new();
        for (_, key) in self.writes.iter().flatten() {
            *writers.entry(key.clone()).or_default() += 1;
        }
        for writes in &mut self.writes {
            writes.retain(|(_, key)| writers[key] > 1);
        }
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

    /// Nodes of two branches that write the same key: one of each, with the place and the key of the second.
    fn conflicts<'a>(&'a self, left: &Nodes, right: &Nodes, fork: usize) -> Vec<(usize, usize, &'a str, &'a str)> {
        if left == right {
            return Vec::new();
        }
        let all = 0..self.steps.len();
        let mut joined = vec![false; self.steps.len()];
        for join in all.clone().filter(|at| self.joins[*at] && left[*at] && right[*at]) {
            for (at, after) in self.from(join, fork).into_iter().enumerate() {
                joined[at] |= after;
            }
        }
        let mut found = Vec::new();
        let mut writers: HashMap<&str, Vec<usize>> = HashMap::new();
        for at in all.clone().filter(|at| left[*at] && !joined[*at]) {
            for (_, key) in &self.writes[at] {
                writers.entry(key).or_default().push(at);
            }
        }
        for other in all.filter(|at| right[*at] && !joined[*at]) {
            for (path, key) in &self.writes[other] {
                for one in writers.get(key.as_str()).into_iter().flatten().copied() {
                    let both_common = right[one] && left[other];
                    if one != other && !both_common {
                        found.push((one, other, path.as_str(), key.as_str()));
                    }
                }
            }
        }
        found
    }
}
