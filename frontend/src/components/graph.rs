//! The graph of a flow, laid out by the server, with marks for the past and current positions of a run.

use std::collections::HashMap;
use std::fmt::Write as _;

use leptos::prelude::*;
use shared::api::{Graph, GraphEdge, GraphEdgeKind, GraphNode};
use shared::run::{Activity, Report, Run, RunStatus, StepStatus};
use shared::topic::beginning;

use super::schema_form::next_key;
use crate::state::ending::Ending;

/// The margin around the graph for strokes and for badges above nodes, in units of the view box.
const MARGIN: u32 = 18;
/// The approximate number of characters of a label per unit of width.
const CHARS_PER_PIXEL: f64 = 0.145;
/// The approximate width of a character of an edge's label.
const LABEL_CHARACTER: f64 = 6.7;

/// A graph wider than this is not squeezed into a column: it gets a row of its own, or scrolls sideways.
const WIDE: f64 = 300.0;

/// The maximum width of a node in a narrow column. Its tooltip has the whole id.
const NARROW: f64 = 190.0;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodeState {
    /// No visit so far, or the visit was cancelled.
    #[default]
    Untouched,
    /// The last visit is completed.
    Done,
    /// A step is running or will be retried.
    Now,
    /// A person is asked there.
    Waiting,
    /// Other branches are awaited.
    Joining,
    /// A decision or a deadline ended the run there.
    Stopped,
    /// The last visit there ended with an error.
    Failed,
}

impl NodeState {
    /// The CSS classes of the node, and the state in words.
    fn says(self) -> (&'static str, &'static str) {
        match self {
            Self::Untouched => ("node", "not reached"),
            Self::Done => ("node done", "done"),
            Self::Now => ("node now", "running now"),
            Self::Waiting => ("node waiting", "waiting now"),
            Self::Joining => ("node joining", "waiting for other branches"),
            Self::Stopped => ("node stopped", "stopped"),
            Self::Failed => ("node failed", "failed"),
        }
    }
}

/// What a run has done at one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// The state of the latest visit.
    pub state: NodeState,
    /// The number of visits; shown from two.
    pub visits: u32,
}

/// Marks by the id of the node in the graph.
pub type Marks = HashMap<String, Mark>;

/// Computes the marks of a run from its steps and current positions.
pub fn marks(run: Option<&Run>, report: Option<&Report>) -> Marks {
    let mut marks = Marks::default();
    for step in report.iter().flat_map(|report| &report.steps) {
        let mark = marks.entry(step.node.place()).or_default();
        // Visits are numbered for each call of a flow, so they are counted here.
        mark.visits += 1;
        mark.state = match step.status {
            StepStatus::Completed => NodeState::Done,
            StepStatus::Failed if Ending::of(step.error.as_ref()).is_some() => NodeState::Stopped,
            StepStatus::Failed => NodeState::Failed,
            StepStatus::Running | StepStatus::Retrying => NodeState::Now,
            StepStatus::Waiting => NodeState::Waiting,
            StepStatus::Cancelled => NodeState::Untouched,
        };
    }
    let Some(run) = run else { return marks };
    for position in &run.positions {
        let mark = marks.entry(position.node.place()).or_default();
        mark.visits = mark.visits.max(position.visit);
        mark.state = match position.activity {
            Activity::Running | Activity::Retrying => NodeState::Now,
            Activity::Waiting => NodeState::Waiting,
            Activity::Joining => NodeState::Joining,
        };
    }
    if run.summary.status == RunStatus::Completed {
        marks.entry("end".to_owned()).or_default().state = NodeState::Done;
    }
    marks
}

/// The graph as a picture. It fills the width of its box, up to its natural width.
#[component]
pub fn FlowGraph(
    /// The nodes and edges with their coordinates.
    mut graph: Graph,
    /// The marks of a run; empty without a run.
    #[prop(optional, into)]
    marks: Signal<Marks>,
    /// The accessible name of the picture; empty if it shows no run.
    #[prop(optional, into)]
    label: String,
    /// Whether the picture is in a narrow column.
    #[prop(optional)]
    narrow: bool,
) -> impl IntoView {
    let id = next_key();
    let (left, right) = if narrow { narrowed(&mut graph) } else { (0.0, graph.width) };
    let across = right - left;
    // Only pictures of runs can be wide: others are thumbnails, or have enough room.
    let wide = across > WIDE && !label.is_empty();
    let start = left - f64::from(MARGIN);
    let [width, height] = [across, graph.height].map(|size| (size + 2.0 * f64::from(MARGIN)).to_string());
    let label = if label.is_empty() { "The flow as a graph".to_owned() } else { label };
    let list_id = format!("graph-{id}-list");
    let list: Vec<_> = graph.nodes.iter().map(|node| spoken(node, &graph.edges, marks)).collect();
    let edges: Vec<_> = graph.edges.iter().map(|edge| edge_view(edge, id)).collect();
    let edge_labels: Vec<_> = graph.edges.iter().filter_map(edge_label).collect();
    let nodes: Vec<_> = graph.nodes.into_iter().map(|node| node_view(node, marks)).collect();
    view! {
        <figure class=if wide { "graph wide" } else { "graph" } tabindex=wide.then_some("0")>
            <svg viewBox=format!("{start} -{MARGIN} {width} {height}") role="img" aria-label=label
                aria-describedby=list_id.clone() style=format!("max-width:{width}px;--w:{width}px")>
                <defs>
                    {["next", "correct", "detour"].map(|kind| view! {
                        <marker id=format!("graph-{id}-{kind}") class=format!("arrow {kind}") viewBox="0 0 8 8" refX="7" refY="4"
                            markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M1 1l6 3-6 3z"/></marker>
                    })}
                </defs>
                {edges}{nodes}{edge_labels}
            </svg>
            <ul class="sr" id=list_id>{list}</ul>
        </figure>
    }
}

/// Narrows wide nodes, and returns the left and right end of the picture then.
fn narrowed(graph: &mut Graph) -> (f64, f64) {
    for node in &mut graph.nodes {
        node.width = node.width.min(NARROW);
    }
    let sides = graph.nodes.iter().flat_map(|node| [node.x - node.width / 2.0, node.x + node.width / 2.0]);
    let bends = graph.edges.iter().flat_map(|edge| edge.points.iter().map(|point| point.0));
    let all = sides.chain(bends);
    all.fold((graph.width, 0.0), |(left, right), x| (left.min(x), right.max(x)))
}

fn kind_class(kind: GraphEdgeKind) -> &'static str {
    match kind {
        GraphEdgeKind::Next => "next",
        GraphEdgeKind::Correct => "correct",
        GraphEdgeKind::Detour => "detour",
    }
}

fn edge_view(edge: &GraphEdge, graph: u64) -> impl IntoView + use<> {
    let kind = kind_class(edge.kind);
    let title = match edge.kind {
        GraphEdgeKind::Next => edge.label.clone().unwrap_or_default(),
        GraphEdgeKind::Correct => format!("A correction at {} runs {} again", edge.from, edge.to),
        GraphEdgeKind::Detour => format!("{} goes to {} instead", edge.from, edge.to),
    };
    view! {
        <g class=format!("edge {kind}")>
            <path d=curve(&edge.points) marker-end=format!("url(#graph-{graph}-{kind})")/>
            {(!title.is_empty()).then(|| view! { <title>{title}</title> })}
        </g>
    }
}

/// The label of an edge at its middle.
fn edge_label(edge: &GraphEdge) -> Option<impl IntoView + use<>> {
    let label = edge.label.clone()?;
    let middle = middle(&edge.points)?;
    #[expect(clippy::cast_precision_loss, reason = "a few characters")]
    let width = label.chars().count() as f64 * LABEL_CHARACTER + 8.0;
    Some(view! {
        <g class=format!("edge-label {}", kind_class(edge.kind))>
            <rect x=(middle.0 - width / 2.0).to_string() y=(middle.1 - 8.0).to_string() width=width.to_string() height="16" rx="4"/>
            <text x=middle.0.to_string() y=middle.1.to_string() dy="3.5" text-anchor="middle">{label}</text>
        </g>
    })
}

fn node_view(node: GraphNode, marks: Signal<Marks>) -> impl IntoView {
    let id = node.id.clone();
    let mark = Memo::new(move |_| marks.with(|marks| marks.get(&id).copied().unwrap_or_default()));
    let (left, top) = (node.x - node.width / 2.0, node.y - node.height / 2.0);
    let shape = if node.kind == "end" { "end" } else { "" };
    let fits = ((node.width - 30.0) * CHARS_PER_PIXEL).max(4.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few characters")]
    let text = if node.id.chars().count() > fits as usize {
        beginning(&node.id, (fits * 0.9) as usize)
    } else {
        node.id.clone()
    };
    let radius = if node.kind == "end" { node.height / 2.0 } else { 7.0 };
    let (right, middle) = (left + node.width, node.y);
    let glyph = (node.kind != "end").then(|| {
        view! { <path class="glyph" d=glyph(&node.kind) transform=format!("translate({} {})", left + 9.0, middle - 6.0)/> }
    });
    let text_x = if node.kind == "end" { node.x } else { left + 27.0 };
    view! {
        <g class=move || format!("{} {shape}", mark.get().state.says().0)>
            <title>{move || format!("{} ({}), {}", node.id, node.kind, mark.get().state.says().1)}</title>
            <rect x=left.to_string() y=top.to_string() width=node.width.to_string() height=node.height.to_string() rx=radius.to_string()/>
            {glyph}
            <text x=text_x.to_string() y=middle.to_string() dy="4" text-anchor=if shape == "end" { "middle" } else { "start" }>{text}</text>
            {move || {
                let visits = mark.get().visits;
                (visits > 1).then(|| view! {
                    <g class="visits">
                        <rect x=(right - badge(visits)).to_string() y=(top - 17.0).to_string() width=badge(visits).to_string() height="15" rx="7.5"/>
                        <text x=(right - badge(visits) / 2.0).to_string() y=(top - 6.0).to_string() text-anchor="middle">{format!("{visits}×")}</text>
                    </g>
                })
            }}
        </g>
    }
}

/// The width of the badge with the number of visits, above the right end of a node.
fn badge(visits: u32) -> f64 {
    16.0 + 6.0 * f64::from(visits.max(1).ilog10() + 1)
}

/// A node in words, for screen readers: its kind, its state, and where its edges lead.
fn spoken(node: &GraphNode, edges: &[GraphEdge], marks: Signal<Marks>) -> impl IntoView + use<> {
    let mut leads = String::new();
    for edge in edges.iter().filter(|edge| edge.from == node.id) {
        let how = match edge.kind {
            GraphEdgeKind::Next => "then",
            GraphEdgeKind::Correct => "a correction goes back to",
            GraphEdgeKind::Detour => "or instead",
        };
        let _ = write!(leads, "; {how} {}", edge.to);
        if let Some(label) = &edge.label {
            let _ = write!(leads, " when {label}");
        }
    }
    let (id, kind) = (node.id.clone(), node.kind.clone());
    let state = move || {
        marks.with(|marks| {
            let Mark { state, visits } = marks.get(&id).copied().unwrap_or_default();
            match state.says() {
                _ if marks.is_empty() => String::new(),
                (_, word) if visits > 1 => format!(", {word}, {visits} visits"),
                (_, word) => format!(", {word}"),
            }
        })
    };
    let name = format!("{} ({kind})", node.id);
    view! { <li>{name}{state}{leads}</li> }
}

/// A smooth SVG path from the first to the last point that bends at those between.
fn curve(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    let [first, between @ .., last] = points else { return path };
    let tenth = |at: f64| (at * 10.0).round() / 10.0;
    let mut add = |command: &str, (x, y): (f64, f64)| {
        let _ = write!(path, "{command}{} {}", tenth(x), tenth(y));
    };
    add("M", *first);
    for (at, point) in between.iter().enumerate() {
        let next = between.get(at + 1);
        add("Q", *point);
        add(" ", next.map_or(*last, |next| (f64::midpoint(point.0, next.0), f64::midpoint(point.1, next.1))));
    }
    if between.is_empty() {
        add("L", *last);
    }
    path
}

/// The point halfway along a line.
fn middle(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let lengths = || points.windows(2).map(|pair| (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1));
    let mut left = lengths().sum::<f64>() / 2.0;
    for (pair, length) in points.windows(2).zip(lengths()) {
        if left <= length && length > 0.0 {
            let part = left / length;
            return Some((pair[0].0 + (pair[1].0 - pair[0].0) * part, pair[0].1 + (pair[1].1 - pair[0].1) * part));
        }
        left -= length;
    }
    points.first().copied()
}

/// An SVG path for a kind of node, 12 pixels wide; the same in graph, timeline and catalogue.
pub fn glyph(kind: &str) -> &'static str {
    match kind {
        "agent" => {
            "M6 0.5v2M2 3h8a1.5 1.5 0 0 1 1.5 1.5v5A1.5 1.5 0 0 1 10 11H2A1.5 1.5 0 0 1 .5 9.5v-5A1.5 1.5 0 0 1 2 3zM4 6.2v1.3M8 6.2v1.3"
        }
        "team" => {
            "M4 5.4a1.9 1.9 0 1 0 0-3.8 1.9 1.9 0 0 0 0 3.8zM.6 10.5c.2-2 1.5-3.1 3.4-3.1s3.2 1.1 3.4 3.1M8.3 1.8a1.9 1.9 0 0 1 0 3.5M9.2 7.6c1.3.4 2.1 1.4 2.2 2.9"
        }
        "tool" => {
            "M11 2.6 8.9 4.7 7.3 3.1 9.4 1A3.4 3.4 0 0 0 5 5.3L1 9.3a1.2 1.2 0 0 0 1.7 1.7L6.7 7A3.4 3.4 0 0 0 11 2.6z"
        }
        "human" => "M6 6a2.6 2.6 0 1 0 0-5.2A2.6 2.6 0 0 0 6 6zM1 11.5c.4-2.4 2.4-3.7 5-3.7s4.6 1.3 5 3.7",
        "router" => "M1 6h3.5L8 2.5h3M4.5 6 8 9.5h3M9.5 1l1.5 1.5L9.5 4M9.5 8l1.5 1.5L9.5 11",
        "set" => "M1 3h10M1 9h10M4 1.5v3M8 7.5v3",
        "map" => "M1 1h6v4H1zM3 7.5h6v-4M5 10.5h6v-4",
        "flow" => "M1 1h10v10H1zM4 4h4v4H4z",
        _ => "M2 2h8v8H2z",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_starts_and_ends_at_its_ends() {
        assert_eq!(curve(&[(0.0, 0.0), (10.0, 0.0)]), "M0 0L10 0");
        assert_eq!(curve(&[(0.0, 0.0), (5.0, 5.0), (10.0, 0.0)]), "M0 0Q5 5 10 0");
        assert_eq!(curve(&[]), "");
    }

    #[test]
    fn the_middle_is_halfway_along_the_bends() {
        assert_eq!(middle(&[(0.0, 0.0), (0.0, 10.0), (30.0, 10.0)]), Some((10.0, 10.0)));
    }
}
