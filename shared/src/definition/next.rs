//! `next`: where a branch goes.

use serde::{Deserialize, Serialize};

use crate::id::{InvalidName, NodeId};

/// Where a branch goes after a node; without an edge, it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "RawNext", into = "RawNext")]
#[cfg_attr(feature = "schema", schemars(with = "RawNext"))]
pub struct Next(pub Vec<Edge>);

impl Next {
    /// Creates a `next` with one edge, which always leads to `node`.
    pub fn to(node: NodeId) -> Self {
        Self(vec![Edge { to: Target::Node(node), condition: EdgeCondition::Always }])
    }

    /// Returns the nodes that the edges lead to, without `end`.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeId> {
        self.0.iter().filter_map(|edge| match &edge.to {
            Target::Node(node) => Some(node),
            Target::End => None,
        })
    }

    /// Whether there are no edges.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An edge to another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The node at which the branch continues, or its end.
    pub to: Target,
    /// The condition under which this edge is taken.
    pub condition: EdgeCondition,
}

/// When an edge is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeCondition {
    /// The edge is always taken.
    Always,
    /// The edge is taken if this CEL expression is true.
    When(String),
    /// The edge is taken if no `when` of the other edges was true.
    Else,
}

/// A node, or the end of the branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub enum Target {
    /// A node of the same flow, by its id.
    Node(NodeId),
    /// `end`: the branch ends.
    End,
}

impl TryFrom<String> for Target {
    type Error = InvalidName;
    fn try_from(name: String) -> Result<Self, InvalidName> {
        if name == "end" { Ok(Self::End) } else { NodeId::try_from(name).map(Self::Node) }
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        match target {
            Target::Node(node) => node.into(),
            Target::End => "end".to_owned(),
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Next"))]
#[serde(untagged, expecting = "expected a node, `end`, or a list of nodes or {to, when} or {to, else: true}")]
enum RawNext {
    One(Target),
    Many(Vec<RawEdge>),
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Edge"))]
#[serde(untagged, expecting = "expected a node, {to, when} or {to, else: true}")]
enum RawEdge {
    Name(Target),
    When(RawWhen),
    Else(RawElse),
    To(RawTo),
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(rename = "EdgeWhen"))]
struct RawWhen {
    /// A node, or `end`.
    to: Target,
    /// CEL: the edge is taken if it is true.
    when: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(rename = "EdgeElse"))]
struct RawElse {
    /// A node, or `end`.
    to: Target,
    /// The edge is taken if no `when` is true.
    r#else: True,
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(rename = "EdgeTo"))]
struct RawTo {
    /// A node, or `end`.
    to: Target,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "bool"))]
#[serde(try_from = "bool", into = "bool")]
struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;
    fn try_from(value: bool) -> Result<Self, &'static str> {
        if value { Ok(Self) } else { Err("`else` is always true") }
    }
}

impl From<True> for bool {
    fn from(True: True) -> bool {
        true
    }
}

impl From<RawNext> for Next {
    fn from(raw: RawNext) -> Self {
        let edge = |to, condition| Edge { to, condition };
        match raw {
            RawNext::One(to) => Self(vec![edge(to, EdgeCondition::Always)]),
            RawNext::Many(edges) => Self(
                edges
                    .into_iter()
                    .map(|raw| match raw {
                        RawEdge::Name(to) | RawEdge::To(RawTo { to }) => edge(to, EdgeCondition::Always),
                        RawEdge::When(RawWhen { to, when }) => edge(to, EdgeCondition::When(when)),
                        RawEdge::Else(RawElse { to, .. }) => edge(to, EdgeCondition::Else),
                    })
                    .collect(),
            ),
        }
    }
}

impl From<Next> for RawNext {
    fn from(next: Next) -> Self {
        let mut edges = next.0;
        if let [Edge { condition: EdgeCondition::Always, .. }] = edges.as_slice()
            && let Some(only) = edges.pop()
        {
            return Self::One(only.to);
        }
        Self::Many(
            edges
                .into_iter()
                .map(|edge| match edge.condition {
                    EdgeCondition::Always => RawEdge::Name(edge.to),
                    EdgeCondition::When(when) => RawEdge::When(RawWhen { to: edge.to, when }),
                    EdgeCondition::Else => RawEdge::Else(RawElse { to: edge.to, r#else: True }),
                })
                .collect(),
        )
    }
}
