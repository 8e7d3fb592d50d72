//! The paths through a flow's graph: what is reachable from where, and which step a correction runs again.

use std::collections::{BTreeSet, HashMap};

use shared::definition::{FailureThen, Flow, Human, Node, NodeKind, OnTimeout};
use shared::id::NodeId;

/// What a way from one node to another is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// `next` of any node, whatever its condition.
    Next,
    /// `on_reject` of a human node.
    Reject,
    /// `on_timeout: {goto}` of a human node or the defaults, also behind escalations.
    Timeout,
    /// `on_visit_limit`: a branch that comes here and finds no visits left.
    VisitLimit,
    /// `failure: {then: {goto}}`, of the node or the defaults.
    Failure,
}

/// The ways out of a node to other nodes, corrections left out; a target that is not in the flow is left out too.
pub fn edges_of<'a>(flow: &'a Flow, node: &'a Node) -> Vec<(EdgeKind, &'a NodeId)> {
    let mut edges_out: Vec<_> = node.next.nodes().map(|to| (EdgeKind::Next, to)).collect();
    // What leads out of the node that a map runs, leads out of the map.
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

/// The map of each node that one runs for each item of a list.
pub fn mapped(flow: &Flow) -> HashMap<&NodeId, &NodeId> {
    let maps = flow.nodes.iter().filter_map(|(id, node)| match &node.kind {
        NodeKind::Map(map) => Some((&map.node, id)),
        _ => None,
    });
    maps.collect()
}

/// Where the timer of a human node sends the branch.
fn timed_out<'a>(flow: &'a Flow, human: &'a Human) -> Option<&'a NodeId> {
    human.timeout.or(flow.defaults.timeout)?;
    match human.on_timeout.as_ref().or(flow.defaults.on_timeout.as_ref())?.last() {
        OnTimeout::Goto { goto } => Some(goto),
        _ => None,
    }
}

/// What follows from the graph, worked out once.
#[derive(Debug)]
pub struct Reachability {
    index: HashMap<NodeId, usize>,
    /// For each node, a bit for each node that can be reached from it by at least one way.
    reached: Vec<Vec<u64>>,
    sources: HashMap<NodeId, NodeId>,
}

impl Reachability {
    /// Works them out.
    pub fn new(flow: &Flow) -> Self {
        let index: HashMap<_, _> = flow.nodes.keys().enumerate().map(|(at, id)| (id.clone(), at)).collect();
        let incoming = incoming(flow);
        // What came before a map was not made for one item alone.
        let mapped = mapped(flow);
        let alone = flow.nodes.iter().filter(|(id, _)| !mapped.contains_key(id));
        let sources: HashMap<_, _> = alone
            .filter_map(|(id, node)| match &node.kind {
                NodeKind::Human(_) => Some((id.clone(), source(flow, &incoming, id)?)),
                _ => None,
            })
            .collect();
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

    /// Whether a branch at `from` can still come to `to`, by any way but standing still.
    pub fn reaches(&self, from: &str, to: &str) -> bool {
        match (self.index.get(from), self.index.get(to)) {
            (Some(&from), Some(&to)) => self.reached[from][to / 64] & (1 << (to % 64)) != 0,
            _ => false,
        }
    }

    /// The node that a correction at a human node runs again.
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

/// `corrects`, else the one step backwards that made something.
fn source(flow: &Flow, incoming: &IncomingEdges<'_>, human: &NodeId) -> Option<NodeId> {
    if let NodeKind::Human(settings) = &flow.nodes.get(human)?.kind
        && let Some(named) = &settings.corrects
    {
        return flow.nodes.get(named).filter(|node| node.kind.is_source()).map(|_| named.clone());
    }
    let mut sources = sources_by(flow, incoming, human);
    if sources.len() == 1 { sources.pop_first() } else { None }
}

/// The ways into each node, with where they come from.
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

/// The steps that may have made what comes to a human node: backwards, through what makes nothing (set, router, human),
/// and through a step that failed or had no visits left, since that made nothing either.
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
