//! A flow as a picture, laid out by the server so that the browser only draws.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A flow as a picture: laid out by the server, in pixels, from the top left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Graph {
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
    /// Its nodes.
    pub nodes: Vec<GraphNode>,
    /// Its edges.
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
    /// What it is.
    pub kind: GraphEdgeKind,
    /// Its condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The line, from border to border.
    pub points: Vec<(f64, f64)>,
}

/// What an edge of the picture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GraphEdgeKind {
    /// `next`.
    Next,
    /// A correction goes back.
    Correct,
    /// `on_reject`, `goto`, `on_visit_limit`.
    Detour,
}
