//! `nodes`: the places in the graph, each of exactly one kind.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Human, Next, Team};
use crate::JsonMap;
use crate::id::{FlowId, NodeId};
use crate::time::Span;

/// A node: its kind, and what every kind has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "RawNode", into = "RawNode")]
#[cfg_attr(feature = "schema", schemars(with = "RawNode"))]
pub struct Node {
    /// The kind of the node.
    pub kind: NodeKind,
    /// A short description, which a router's agent sees when it chooses.
    pub description: Option<String>,
    /// Tags, which `routing` uses for its reviews.
    pub tags: Vec<String>,
    /// The state keys that it may read; `*` is all. Default: all.
    pub read_keys: Option<Vec<String>>,
    /// The state keys that it may write; `*` is any key that nothing else writes at the same time. Default: a key with
    /// the node's name, or the keys that `set` sets.
    pub write_keys: Option<Vec<String>>,
    /// Where the branch goes.
    pub next: Next,
    /// What happens to several incoming branches.
    pub join: Join,
    /// The limit of visits; default 25.
    pub max_visits: Option<u32>,
    /// Where the branch goes instead of failing with `FLOW_VISIT_LIMIT`.
    pub on_visit_limit: Option<NodeId>,
    /// What happens when it fails.
    pub failure: Option<Failure>,
}

impl Node {
    /// The default limit of visits.
    pub const DEFAULT_MAX_VISITS: u32 = 25;
    /// The highest number of visits that a flow may name.
    pub const MAX_VISITS: u32 = 10_000;

    /// Creates a node of this kind, which leads nowhere.
    pub fn new(kind: NodeKind) -> Self {
        Self {
            kind,
            description: None,
            tags: Vec::new(),
            read_keys: None,
            write_keys: None,
            next: Next::default(),
            join: Join::default(),
            max_visits: None,
            on_visit_limit: None,
            failure: None,
        }
    }

    /// Returns the limit of visits.
    pub fn max_visits(&self) -> u32 {
        self.max_visits.unwrap_or(Self::DEFAULT_MAX_VISITS)
    }
}

/// The kinds of nodes.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// An agent answers the prompt.
    Agent {
        /// The agent's name.
        agent: String,
        /// Template of the prompt; `None`: the readable keys.
        prompt: Option<String>,
    },
    /// A tool is called.
    Tool {
        /// The tool's name.
        tool: String,
        /// Templates of the arguments; `None`: the readable keys that the tool's parameters name.
        arguments: Option<JsonMap>,
    },
    /// Sets state keys to values.
    Set(IndexMap<String, Value>),
    /// Only follows `next`, or lets an agent choose.
    Router(RouterNode),
    /// A person is asked.
    Human(Box<Human>),
    /// Several agents work together.
    Team(Team),
    /// Runs one branch for each item.
    Map(MapNode),
    /// Another saved flow runs as part of this run, and its output is the result.
    Flow(FlowCall),
}

impl NodeKind {
    /// Returns the key of the kind in a flow file.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Agent { .. } => "agent",
            Self::Tool { .. } => "tool",
            Self::Set(_) => "set",
            Self::Router(_) => "router",
            Self::Human(_) => "human",
            Self::Team(_) => "team",
            Self::Map(_) => "map",
            Self::Flow(_) => "flow",
        }
    }

    /// Returns the settings of a human node; `None` for other kinds.
    pub fn human(&self) -> Option<&Human> {
        match self {
            Self::Human(human) => Some(human),
            _ => None,
        }
    }

    /// Whether a map can run a node of this kind for each item.
    pub fn is_mappable(&self) -> bool {
        matches!(
            self,
            Self::Agent { .. } | Self::Tool { .. } | Self::Set(_) | Self::Human(_) | Self::Team(_) | Self::Flow(_)
        )
    }

    /// Whether a correction can run a node of this kind again.
    pub fn is_source(&self) -> bool {
        matches!(self, Self::Agent { .. } | Self::Tool { .. } | Self::Team(_) | Self::Map(_) | Self::Flow(_))
    }
}

/// A router: only follows `next`, or lets an agent choose among the targets that have visits left.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct RouterNode {
    /// The agent that chooses.
    pub agent: Option<String>,
    /// Template of the question to the agent.
    pub prompt: Option<String>,
}

/// What happens to several incoming branches at a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Each arrival is a visit of its own.
    #[default]
    Any,
    /// Arrivals wait for all others, and continue as one.
    All,
}

/// What happens when a step fails.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Failure {
    /// The number of retries; default 0.
    pub retries: u32,
    /// How the delays increase.
    pub backoff: Backoff,
    /// The first delay; default 1s.
    pub initial: Option<Span>,
    /// The longest delay; default 60s.
    pub max: Option<Span>,
    /// What happens when no retry is left.
    pub then: FailureThen,
}

/// How the delays between retries increase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Each is about twice the previous one, with jitter.
    #[default]
    Exponential,
    /// All delays are the same.
    Fixed,
}

/// What happens when no retry is left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureThen {
    /// The run fails.
    #[default]
    Fail,
    /// The branch goes to this node.
    Goto(NodeId),
}

/// A map, which runs a node for each item of a list, all at the same time. Its result is the list of the nodes'
/// results, in order: of a human node with options or `edit_keys` the decision, of others what they write (if it is one
/// key: its value).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct MapNode {
    /// The key of the list, which has at most 200 items.
    pub over: String,
    /// The key under which the node sees its item.
    pub r#as: String,
    /// The node that runs for each: an agent, tool, set, human, team or flow node that nothing else leads to and that
    /// leads nowhere. Its `on_reject` leaves the whole map; an item that fails makes the map fail.
    pub node: NodeId,
}

impl MapNode {
    /// The most items of the list.
    pub const MAX_ITEMS: usize = 200;
}

/// Another flow, which runs as part of this one, with its own keys. Its output is the result: as an object under the
/// one write key, or those of its keys that `write_keys` names. If it fails or is stopped, the node fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct FlowCall {
    /// The id of a saved flow that does not call this one, directly or indirectly.
    pub id: FlowId,
    /// Its version; default: the newest when the calling flow is saved, which that version then keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Templates of its input; none: the readable keys that its `input` names.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub input: JsonMap,
}

#[serde_with::skip_serializing_none]
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(rename = "Node"))]
#[serde(default)]
struct RawNode {
    /// The agent that answers the prompt.
    agent: Option<String>,
    /// Template of the agent's prompt; requires `agent`. Default: the readable keys.
    prompt: Option<String>,
    /// The tool that is called.
    tool: Option<String>,
    /// Templates of the arguments; requires `tool`. Default: the readable keys that its parameters name.
    arguments: Option<JsonMap>,
    /// State keys and their values. A value that is a single `{{ expression }}` keeps its JSON type.
    set: Option<IndexMap<String, Value>>,
    /// Only `next`, or an agent that chooses among the targets.
    router: Option<RouterNode>,
    /// A question to people: the branch waits until they, or handlers before them, decide.
    human: Option<Box<Human>>,
    /// Several agents that work on one step.
    team: Option<Team>,
    /// Runs another node for each item of a list.
    map: Option<MapNode>,
    /// Runs another flow inside this run.
    flow: Option<FlowCall>,
    /// A short description, which a router's agent sees when it chooses.
    description: Option<String>,
    /// Tags, which `routing` uses for its reviews.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    /// The state keys that it may read; `*` is all. Default: all.
    read_keys: Option<Vec<String>>,
    /// The state keys that it may write; `*` is any key that nothing else writes at the same time. Default: a key with
    /// the node's name, or the keys that `set` sets.
    write_keys: Option<Vec<String>>,
    /// Where the branch goes: a node, `end`, or a list of edges. Default: the branch ends.
    #[serde(skip_serializing_if = "Next::is_empty")]
    next: Next,
    /// What happens to several incoming branches; default: `any`.
    #[serde(skip_serializing_if = "crate::is_default")]
    join: Join,
    /// The limit of visits; default 25.
    max_visits: Option<u32>,
    /// Where the branch goes instead of failing with `FLOW_VISIT_LIMIT`.
    on_visit_limit: Option<NodeId>,
    /// What happens when it fails.
    failure: Option<Failure>,
}

impl TryFrom<RawNode> for Node {
    type Error = String;
    fn try_from(raw: RawNode) -> Result<Self, String> {
        let mut kinds = Vec::new();
        if raw.prompt.is_some() && raw.agent.is_none() {
            return Err("`prompt` goes with `agent`; a person's question is `human: {prompt: …}`".to_owned());
        }
        if raw.arguments.is_some() && raw.tool.is_none() {
            return Err("`arguments` go with `tool`".to_owned());
        }
        kinds.extend(raw.agent.map(|agent| NodeKind::Agent { agent, prompt: raw.prompt }));
        kinds.extend(raw.tool.map(|tool| NodeKind::Tool { tool, arguments: raw.arguments }));
        kinds.extend(raw.set.map(NodeKind::Set));
        kinds.extend(raw.router.map(NodeKind::Router));
        kinds.extend(raw.human.map(NodeKind::Human));
        kinds.extend(raw.team.map(NodeKind::Team));
        kinds.extend(raw.map.map(NodeKind::Map));
        kinds.extend(raw.flow.map(NodeKind::Flow));
        let written: Vec<_> = kinds.iter().map(NodeKind::as_str).collect();
        let written = written.join(" and ");
        let (Some(kind), true) = (kinds.pop(), kinds.is_empty()) else {
            let rule = "a node has exactly one of agent, tool, set, router, human, team, map and flow";
            return Err(if written.is_empty() { rule.to_owned() } else { format!("{rule}; this one has {written}") });
        };
        Ok(Self {
            kind,
            description: raw.description,
            tags: raw.tags,
            read_keys: raw.read_keys,
            write_keys: raw.write_keys,
            next: raw.next,
            join: raw.join,
            max_visits: raw.max_visits,
            on_visit_limit: raw.on_visit_limit,
            failure: raw.failure,
        })
    }
}

impl From<Node> for RawNode {
    fn from(node: Node) -> Self {
        let mut raw = Self {
            description: node.description,
            tags: node.tags,
            read_keys: node.read_keys,
            write_keys: node.write_keys,
            next: node.next,
            join: node.join,
            max_visits: node.max_visits,
            on_visit_limit: node.on_visit_limit,
            failure: node.failure,
            ..Self::default()
        };
        match node.kind {
            NodeKind::Agent { agent, prompt } => (raw.agent, raw.prompt) = (Some(agent), prompt),
            NodeKind::Tool { tool, arguments } => (raw.tool, raw.arguments) = (Some(tool), arguments),
            NodeKind::Set(values) => raw.set = Some(values),
            NodeKind::Router(router) => raw.router = Some(router),
            NodeKind::Human(human) => raw.human = Some(human),
            NodeKind::Team(team) => raw.team = Some(team),
            NodeKind::Map(map) => raw.map = Some(map),
            NodeKind::Flow(flow) => raw.flow = Some(flow),
        }
        raw
    }
}
