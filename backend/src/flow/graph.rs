//! The graph of a flow: laid out from top to bottom, with the bends of its edges. Called flows are drawn beside the
//! node that calls them.

use dagre::graph::{Graph as Layout, GraphOptions};
use dagre::layout::types::LabelPos;
use dagre::{EdgeLabel, GraphLabel, LayoutOptions, NodeLabel, layout};
use shared::api::{Graph, GraphEdge, GraphEdgeKind, GraphNode};
use shared::definition::{EdgeCondition, Flow, NodeKind, Target};
use shared::id::NodeId;
use shared::topic::beginning;

use super::Compiled;
use super::calls::calls;
use super::limits::MAX_DRAWN;
use super::reachability::{EdgeKind, Reachability, edges_of, mapped};

/// The id of the node that represents the end of a branch. No node of a flow can have it.
const END: &str = "end";
const NODE_HEIGHT: f64 = 28.0;
const CHARACTER: f64 = 7.5;
/// The width of a node in addition to its text: margins and an icon.
const NODE_PADDING: f64 = 44.0;
const LABEL_HEIGHT: f64 = 16.0;
const LONGEST_LABEL: usize = 32;
const MARGIN: f64 = 12.0;

/// Lays out a flow. Edges to missing nodes are left out. A flow that is too large to draw results in an empty graph.
pub fn graph(flow: &Flow) -> Graph {
    drawn(Parts::of(flow))
}

/// Lays out a flow with the flows that it calls, whose nodes have the ids of [`NodeId::place`]. The called flows are
/// left out if the graph would be too large.
pub fn graph_of(flow: &Compiled) -> Graph {
    let mut parts = Parts::of(&flow.flow);
    parts.add_called(flow, "");
    if parts.is_too_large() { graph(&flow.flow) } else { drawn(parts) }
}

struct Parts {
    nodes: Vec<GraphNode>,
    edges: Vec<GraphEdge>,
}

impl Parts {
    fn of(flow: &Flow) -> Self {
        let edges = edges(flow);
        let mut nodes: Vec<GraphNode> =
            flow.nodes.iter().map(|(id, node)| node_of(id.as_str(), node.kind.as_str())).collect();
        if edges.iter().any(|edge| edge.to == END) {
            nodes.push(node_of(END, END));
        }
        Self { nodes, edges }
    }

    /// Adds the flows that a flow calls. `prefix` is prepended to the ids of that flow's nodes.
    fn add_called(&mut self, flow: &Compiled, prefix: &str) {
        for (id, _) in calls(&flow.flow) {
            let (Some(called), false) = (flow.called(id), self.is_too_large()) else { continue };
            let caller = format!("{prefix}{id}");
            let inside = format!("{caller}/");
            let of_called = Self::of(&called.flow);
            // The ends of a called flow are not drawn, since the calling branch continues.
            let nodes = of_called.nodes.into_iter().filter(|node| node.id != END);
            self.nodes.extend(nodes.map(|node| node_of(&format!("{inside}{}", node.id), &node.kind)));
            let edges = of_called.edges.into_iter().filter(|edge| edge.to != END);
            self.edges.extend(edges.map(|edge| GraphEdge {
                from: format!("{inside}{}", edge.from),
                to: format!("{inside}{}", edge.to),
                ..edge
            }));
            self.edges.extend(called.flow.start().map(|start| GraphEdge {
                from: caller.clone(),
                to: format!("{inside}{start}"),
                kind: GraphEdgeKind::Detour,
                label: Some("calls".to_owned()),
                points: Vec::new(),
            }));
            self.add_called(called, &inside);
        }
    }

    fn is_too_large(&self) -> bool {
        self.nodes.len() + self.edges.len() > MAX_DRAWN
    }
}

fn drawn(parts: Parts) -> Graph {
    if parts.nodes.is_empty() || parts.is_too_large() {
        return Graph::default();
    }
    let Parts { mut nodes, mut edges } = parts;
    let mut drawn = Layout::with_options(GraphOptions { directed: true, multigraph: true, compound: false });
    for node in &nodes {
        let label = NodeLabel { width: node.width, height: node.height, ..NodeLabel::default() };
        drawn.set_node(node.id.clone(), Some(label));
    }
    for (index, edge) in edges.iter().enumerate() {
        let is_next = edge.kind == GraphEdgeKind::Next;
        let characters = edge.label.as_ref().map_or(0, |label| label.chars().count());
        let label = EdgeLabel {
            // Edges of `next` determine the order from top to bottom; others bend around it.
            weight: if is_next { 4 } else { 1 },
            width: width(characters),
            height: if characters == 0 { 0.0 } else { LABEL_HEIGHT },
            labelpos: LabelPos::Center,
            ..EdgeLabel::default()
        };
        drawn.set_edge(edge.from.clone(), edge.to.clone(), Some(label), Some(&index.to_string()));
    }
    let options =
        LayoutOptions { nodesep: 36.0, ranksep: 36.0, marginx: MARGIN, marginy: MARGIN, ..LayoutOptions::default() };
    layout(&mut drawn, Some(options));
    for node in &mut nodes {
        if let Some(placed) = drawn.node(&node.id) {
            (node.x, node.y) = (placed.x.unwrap_or_default(), placed.y.unwrap_or_default());
        }
    }
    for (index, edge) in edges.iter_mut().enumerate() {
        if let Some(placed) = drawn.edge(&edge.from, &edge.to, Some(&index.to_string())) {
            edge.points = placed.points.iter().map(|point| (point.x, point.y)).collect();
        }
    }
    let size = drawn.graph_label::<GraphLabel>().map_or((0.0, 0.0), |label| (label.width, label.height));
    Graph { width: size.0, height: size.1, nodes, edges }
}

fn node_of(id: &str, kind: &str) -> GraphNode {
    let width = width(id.chars().count()) + NODE_PADDING;
    GraphNode { id: id.to_owned(), kind: kind.to_owned(), x: 0.0, y: 0.0, width, height: NODE_HEIGHT }
}

#[expect(clippy::cast_precision_loss, reason = "a label has far fewer than 2^52 characters")]
fn width(characters: usize) -> f64 {
    characters as f64 * CHARACTER
}

fn edges(flow: &Flow) -> Vec<GraphEdge> {
    let corrections = Reachability::new(flow);
    let mapped = mapped(flow);
    let mut edges = Vec::new();
    for (id, node) in &flow.nodes {
        let mut add = |to: &str, kind, label: Option<String>| {
            edges.push(GraphEdge { from: id.to_string(), to: to.to_owned(), kind, label, points: Vec::new() });
        };
        if let NodeKind::Map(map) = &node.kind
            && flow.nodes.contains_key(&map.node)
        {
            add(&map.node, GraphEdgeKind::Detour, Some("each item".to_owned()));
        }
        if node.next.is_empty() && !mapped.contains_key(id) {
            add(END, GraphEdgeKind::Next, None);
        }
        for edge in &node.next.0 {
            let label = match &edge.condition {
                EdgeCondition::Always => None,
                EdgeCondition::When(when) => Some(beginning(&spoken(when), LONGEST_LABEL)),
                EdgeCondition::Else => Some("else".to_owned()),
            };
            match &edge.to {
                Target::End => add(END, GraphEdgeKind::Next, label),
                Target::Node(to) if flow.nodes.contains_key(to) => add(to, GraphEdgeKind::Next, label),
                Target::Node(_) => {}
            }
        }
        if let Some(source) = correction(flow, &corrections, id) {
            add(source, GraphEdgeKind::Correct, None);
        }
        for (kind, to) in edges_of(flow, node) {
            let label = match kind {
                EdgeKind::Next => continue,
                // These edges are drawn from the mapped node.
                EdgeKind::Reject | EdgeKind::Timeout if matches!(node.kind, NodeKind::Map(_)) => continue,
                EdgeKind::Reject => "rejected",
                EdgeKind::Timeout => "nobody decided",
                EdgeKind::VisitLimit => "no visits left",
                // The `goto` of the defaults would lead out of every node.
                EdgeKind::Failure if node.failure.is_none() && !node.kind.is_source() => continue,
                EdgeKind::Failure => "failed",
            };
            add(to, GraphEdgeKind::Detour, Some(label.to_owned()));
        }
    }
    edges
}

/// Returns the step that a correction runs again, if the human node has options, so that free text is a correction.
fn correction<'a>(flow: &Flow, ways: &'a Reachability, id: &NodeId) -> Option<&'a NodeId> {
    flow.nodes.get(id)?.kind.human().filter(|human| human.has_options()).and_then(|_| ways.source_of(id))
}

/// Shortens a condition on the chosen option to the option itself, so that graphs with many such edges do not get too
/// wide.
fn spoken(when: &str) -> String {
    match when.trim().strip_prefix("decision.option == ") {
        Some("null") => "no decision".to_owned(),
        Some(option) if !option.contains(' ') => option.replace(['"', '\''], ""),
        _ => when.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::flow::Library;

    #[test]
    fn a_called_flow_is_drawn_beside_the_node_that_calls_it() {
        let compiled = |flow: serde_json::Value, library: &Library| {
            Arc::new(Compiled::calling(serde_json::from_value(flow).unwrap(), 1, library).unwrap())
        };
        let mut library = Library::default();
        let inner =
            json!({ "id": "inner", "nodes": { "a": { "set": { "x": 1 }, "next": "b" }, "b": { "set": { "y": 1 } } } });
        library.add(compiled(inner, &library));
        let outer = compiled(json!({ "id": "outer", "nodes": { "call": { "flow": { "id": "inner" } } } }), &library);
        let graph = graph_of(&outer);
        let edges: Vec<_> = graph.edges.iter().map(|edge| format!("{} {}", edge.from, edge.to)).collect();
        assert_eq!(edges, ["call end", "call/a call/b", "call call/a"]);
        let nodes: Vec<_> = graph.nodes.iter().map(|node| (node.id.as_str(), node.kind.as_str())).collect();
        assert_eq!(nodes, [("call", "flow"), ("end", "end"), ("call/a", "set"), ("call/b", "set")]);
        assert!(graph.nodes.iter().all(|node| node.x > 0.0 && node.y > 0.0));
    }

    #[test]
    fn what_a_person_chose_is_said_in_a_word() {
        assert_eq!(spoken(r#"decision.option == "grant""#), "grant");
        assert_eq!(spoken("decision.option == null"), "no decision");
        let more = "decision.option == 'a' || visit > 2";
        assert_eq!((spoken(more).as_str(), spoken("visit > 2").as_str()), (more, "visit > 2"));
    }

    #[test]
    fn a_flow_is_drawn_from_top_to_bottom_with_its_ways_back() {
        let options = json!([{ "id": "ok", "label": "OK" }, { "id": "no", "label": "No", "kind": "stop" }]);
        let flow: Flow =
            serde_json::from_value(json!({ "id": "f", "agents": { "w": { "model": "demo/w" } }, "nodes": {
            "draft": { "agent": "w", "next": "review", "on_visit_limit": "late" },
            "review": { "human": { "prompt": "?", "options": options, "on_reject": "late" },
                        "next": [{ "to": "draft", "when": "visit < 3" }, { "to": "end", "else": true }] },
            "late": { "set": { "a": 1 } }
        } }))
            .unwrap();
        let graph = graph(&flow);
        let y = |id: &str| graph.nodes.iter().find(|node| node.id == id).unwrap().y;
        assert!(y("draft") < y("review") && y("review") < y("late") && y("late") < y("end"));
        let drawn: Vec<_> =
            graph.edges.iter().map(|e| format!("{} {} {:?} {:?}", e.from, e.to, e.kind, e.label)).collect();
        assert_eq!(
            drawn,
            [
                "draft review Next None",
                "draft late Detour Some(\"no visits left\")",
                "review draft Next Some(\"visit < 3\")",
                "review end Next Some(\"else\")",
                "review draft Correct None",
                "review late Detour Some(\"rejected\")",
                "late end Next None",
            ]
        );
        assert!(graph.edges.iter().all(|edge| edge.points.len() >= 2));
        let inside = |(x, y): (f64, f64)| x >= 0.0 && y >= 0.0 && x <= graph.width && y <= graph.height;
        assert!(graph.nodes.iter().all(|node| inside((node.x, node.y))));
        assert!(graph.edges.iter().flat_map(|edge| &edge.points).copied().all(inside));
    }
}
