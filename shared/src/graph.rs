//! A flow as a picture, laid out by the server so that the browser only draws.

use serde::Serialize;

use crate::read::{read_fields, words};

/// A flow as a picture: laid out by the server, in pixels, from the top left.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
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

read_fields!(Graph { need width, need height, need nodes, need edges, });

/// One node of the picture; `x` and `y` are its centre.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphNode {
    /// The node's id, or `end`.
    pub id: String,
    /// The node's kind, or `end`.
    pub kind: String,
    /// Centre.
    pub x: f64,
    /// Centre.
    pub y: f64,
    /// Size.
    pub width: f64,
    /// Size.
    pub height: f64,
}

read_fields!(GraphNode { need id, need kind, need x, need y, need width, need height, });

/// One edge of the picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
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

read_fields!(GraphEdge { need from, need to, need kind, may label, need points, });

/// What an edge of the picture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GraphEdgeKind {
    /// `next`.
    Next,
    /// A correction goes back.
    Correct,
    /// `on_reject`, `goto`, `on_visit_limit`.
    Detour,
}

words!(GraphEdgeKind { Next = "next", Correct = "correct", Detour = "detour" });
