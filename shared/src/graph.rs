//! The graph of a flow, laid out by the server so that the browser only draws it.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The graph of a flow, in pixels from the top left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Graph {
    /// The width of the whole picture in pixels, margins included; 0 where there are no nodes.
    pub width: f64,
    /// The height of the whole picture in pixels, margins included; 0 where there are no nodes.
    pub height: f64,
    /// The nodes, with one `end` where a branch can end; empty where the flow is too large to be drawn.
    pub nodes: Vec<GraphNode>,
    /// The edges, each between two of the nodes.
    pub edges: Vec<GraphEdge>,
}

/// One node of the picture; `x` and `y` are its centre.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphNode {
    /// The node's id, or `end`.
    pub id: String,
    /// The node's kind, or `end`.
    pub kind: String,
    /// The horizontal position of its centre, in pixels from the left.
    pub x: f64,
    /// The vertical position of its centre, in pixels from the top.
    pub y: f64,
    /// Its width in pixels.
    pub width: f64,
    /// Its height in pixels.
    pub height: f64,
}

/// One edge of the picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphEdge {
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// The kind of the edge.
    pub kind: GraphEdgeKind,
    /// The text beside it: a shortened condition, or words such as `else` or `rejected`. Missing for an edge without a
    /// condition, and for a correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The line, from border to border.
    pub points: Vec<(f64, f64)>,
}

/// The kind of an edge of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GraphEdgeKind {
    /// An edge of `next`, or the end of a branch at a node that has no `next`.
    Next,
    /// A correction goes back.
    Correct,
    /// Any other way to a node: `on_reject`, `goto`, `on_visit_limit`, after a failure, into a map or a called flow.
    Detour,
}
