//! The paths through a flow's graph: what is reachable from where, and which step a correction runs again.

use std::collections::{BTreeSet, HashMap};

use shared::definition::{FailureThen, Flow, Human, Node, NodeKind, OnTimeout};
use shared::id::NodeId;

/// The kind of an edge in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// `next` of any node, with or without a condition.
    Next,
    /// `on_reject` of a human node.
    Reject,
    /// `on_timeout: {goto}` of a human node or the defaults, possibly after escalations.
    Timeout,
    /// `on_visit_limit`: taken by a branch that arrives at a node without visits left.
    VisitLimit,
    /// `failure: {then: {goto}}`, of the node or the defaults.
    Failure,
}

/// Returns the edges from a node to other nodes, except corrections. Targets that do not exist are left out.
pub fn edges_of<'a>(flow: &'a Flow, node: &'a Node) -> Vec<(EdgeKind, &'a NodeId)> {
    let mut edges_out: Vec<_> = node.next.nodes().map(|to| (EdgeKind::Next, to)).collect();
    // What leads out of a mapped node, leads out of its map.
    let asks = match &node.kind {
        NodeKind::Map(map) => flow.nodes.get(&map.node).unwrap_or(node),
        _ => node,
    };
    if let NodeKind::Human(human) = &asks.kind {
        edges_out.extend(human.on_reject.iter().map(|to| (EdgeKind::Reject, to)));
        edges_out.extend(timed_out(flow, human).map(|to| (EdgeKind::Timeout, to)));
    }
    edges_out.extend(node.on_visit_limit.iter().map(|to| (EdgeKind::VisitLimit, to)));
    let failure = node.failure.as_ref().or(flow.defaults.failure.as_ref());
    if let Some(FailureThen::Goto(to)) = failure.map(|failure| &failure.then) {
        edges_out.push((EdgeKind::Failure, to));
    }
    edges_out.retain(|(_, to)| flow.nodes.contains_key(*to));
    edges_out
}

/// Returns the map of each mapped node.
pub fn mapped(flow: &Flow) -> HashMap<&NodeId, &NodeId> {
    let maps = flow.nodes.iter().filter_map(|(id, node)| match &node.kind {
        NodeKind::Map(map) => Some((&map.node, id)),
        _ => None,
    });
    maps.collect()
}

/// Returns the node to which the timer of a human node leads.
fn timed_out<'a>(flow: &'a Flow, human: &'a Human) -> Option<&'a NodeId> {
    human.timeout.or(flow.defaults.timeout)?;
    match human.on_timeout.as_ref().or(flow.defaults.on_timeout.as_ref())?.last() {
        OnTimeout::Goto { goto } => Some(goto),
        _ => None,
    }
}

/// The analysis of a flow's graph.
#[derive(Debug)]
pub struct Reachability {
    index: HashMap<NodeId, usize>,
    /// For each node, a bit set of the nodes that can be reached from it in one step or more.
    reached: Vec<Vec<u64>>,
    sources: HashMap<NodeId, NodeId>,
}

impl Reachability {
    /// Analyses the graph of a flow.
    pub fn new(flow: &Flow) -> Self {
        let index: HashMap<_, _> = flow.nodes.keys().enumerate().map(|(at, id)| (id.clone(), at)).collect();
        let incoming = incoming(flow);
        // Steps before a map did not produce a single item, so mapped nodes have no source.
        let mapped = mapped(flow);
        let alone = flow.humans().filter(|(id, _)| !mapped.contains_key(id));
        let sources: HashMap<_, _> =
            alone.filter_map(|(id, _)| Some((id.clone(), source(flow, &incoming, id)?))).collect();
        let steps: Vec<Vec<usize>> = flow
            .nodes
            .iter()
            .map(|(id, node)| {
                let back = sources.get(id);
                edges_of(flow, node).into_iter().map(|(_, to)| to).chain(back).map(|to| index[to]).collect()
            })
            .collect();
        let reached = (0..steps.len()).map(|from| reach(&steps, from)).collect();
        Self { index, reached, sources }
    }

    /// Whether a branch at `from` can still come to `to`, in one step or more.
    pub fn reaches(&self, from: &str, to: &str) -> bool {
        match (self.index.get(from), self.index.get(to)) {
            (Some(&from), Some(&to)) => self.reached[from][to / 64] & (1 << (to % 64)) != 0,
            _ => false,
        }
    }

    /// Returns the node that a correction at a human node runs again, if it is unique.
    pub fn source_of(&self, human: &str) -> Option<&NodeId> {
        self.sources.get(human)
    }
}

fn reach(steps: &[Vec<usize>], from: usize) -> Vec<u64> {
    let mut reached = vec![0_u64; steps.len().div_ceil(64)];
    let mut waiting = steps[from].clone();
    while let Some(at) = waiting.pop() {
        let (word, bit) = (at / 64, 1 << (at % 64));
        if reached[word] & bit == 0 {
            reached[word] |= bit;
            waiting.extend(&steps[at]);
        }
    }
    reached
}

/// Returns `corrects`, otherwise the only nearest step with a result.
fn source(flow: &Flow, incoming: &IncomingEdges<'_>, human: &NodeId) -> Option<NodeId> {
    if let Some(named) = flow.nodes.get(human)?.kind.human().and_then(|settings| settings.corrects.as_ref()) {
        return flow.nodes.get(named).filter(|node| node.kind.is_source()).map(|_| named.clone());
    }
    let mut sources = sources_by(flow, incoming, human);
    if sources.len() == 1 { sources.pop_first() } else { None }
}

/// The edges into each node, with the nodes that they come from.
type IncomingEdges<'a> = HashMap<&'a NodeId, Vec<(EdgeKind, &'a NodeId)>>;

fn incoming(flow: &Flow) -> IncomingEdges<'_> {
    let mut incoming: HashMap<_, Vec<_>> = HashMap::new();
    for (from, node) in &flow.nodes {
        for (kind, to) in edges_of(flow, node) {
            incoming.entry(to).or_default().push((kind, from));
        }
    }
    incoming
}

/// Returns the steps that may have produced what comes to a human node. Searches backwards through nodes without
/// results (set, router, human), and through steps that failed or had no visits left, since these have no result
/// either.
pub fn nearest_sources(flow: &Flow, human: &NodeId) -> BTreeSet<NodeId> {
    sources_by(flow, &incoming(flow), human)
}

fn sources_by(flow: &Flow, incoming: &IncomingEdges<'_>, human: &NodeId) -> BTreeSet<NodeId> {
    let mut sources = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![human];
    while let Some(at) = waiting.pop() {
        for &(kind, from) in incoming.get(at).into_iter().flatten() {
            let made_it = matches!(kind, EdgeKind::Next | EdgeKind::Reject) && flow.nodes[from].kind.is_source();
            if made_it {
                sources.insert(from.clone());
            } else if seen.insert(from) {
                waiting.push(from);
            }
        }
    }
    sources
}
