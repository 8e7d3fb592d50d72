//! `nodes`: one place in the graph, of exactly one kind.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Human, Judge, Next};
use crate::JsonMap;
use crate::id::{FlowId, NodeId};
use crate::time::Span;

/// One node: its kind, and what every kind has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "RawNode", into = "RawNode")]
#[cfg_attr(feature = "schema", schemars(with = "RawNode"))]
pub struct Node {
    /// What it does.
    pub kind: NodeKind,
    /// What it is for, in a few words: a router's agent that may choose it is told so.
    pub description: Option<String>,
    /// Words that say what it is about: `routing` sends its reviews by them.
    pub tags: Vec<String>,
    /// The state keys that it may see; `*` is all. Default: all.
    pub read_keys: Option<Vec<String>>,
    /// The state keys that it may write; default: a key named as the node, or the keys that `set` sets.
    pub write_keys: Option<Vec<String>>,
    /// Where the branch goes.
    pub next: Next,
    /// What several incoming branches do.
    pub join: Join,
    /// How often it may be visited; default 25.
    pub max_visits: Option<u32>,
    /// Where the branch goes instead of failing with `FLOW_VISIT_LIMIT`.
    pub on_visit_limit: Option<NodeId>,
    /// What happens when it fails.
    pub failure: Option<Failure>,
}

impl Node {
    /// How often a node may be visited where nothing is said.
    pub const DEFAULT_MAX_VISITS: u32 = 25;
    /// The highest number of visits that a flow may name.
    pub const MAX_VISITS: u32 = 10_000;

    /// How often it may be visited.
    pub fn max_visits(&self) -> u32 {
        self.max_visits.unwrap_or(Self::DEFAULT_MAX_VISITS)
    }
}

/// What a node does.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// An agent answers the prompt.
    Agent {
        /// The agent's name.
        agent: String,
        /// Template of the prompt.
        prompt: Option<String>,
    },
    /// A tool is called.
    Tool {
        /// The tool's name.
        tool: String,
        /// Templates of the arguments; none: the readable keys that its parameters name.
        arguments: Option<JsonMap>,
    },
    /// State keys get values.
    Set(IndexMap<String, Value>),
    /// Nothing but `next`, or an agent chooses.
    Router(RouterNode),
    /// A person is asked.
    Human(Box<Human>),
    /// Several agents work together.
    Team(Team),
    /// One branch an item.
    Map(MapNode),
    /// Another flow.
    Flow(FlowCall),
}

impl NodeKind {
    /// The key that names the kind in a flow file.
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

    /// Whether a map can run it for each item.
    pub fn is_mappable(&self) -> bool {
        matches!(
            self,
            Self::Agent { .. } | Self::Tool { .. } | Self::Set(_) | Self::Human(_) | Self::Team(_) | Self::Flow(_)
        )
    }

    /// Whether it makes something that a person can ask to be made again.
    pub fn is_source(&self) -> bool {
        matches!(self, Self::Agent { .. } | Self::Tool { .. } | Self::Team(_) | Self::Map(_) | Self::Flow(_))
    }
}

/// A router: nothing but `next`, or an agent that chooses among the targets that have visits left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct RouterNode {
    /// The agent that chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Template of what it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// What several incoming branches do at a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Each arrival is a visit of its own.
    #[default]
    Any,
    /// Arrivals wait for all others, and go on as one.
    All,
}

/// What happens when a step fails.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Failure {
    /// How often it is tried again; default 0.
    pub retries: u32,
    /// How the waits grow.
    pub backoff: Backoff,
    /// The first wait; default 1s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<Span>,
    /// The longest wait; default 60s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Span>,
    /// What happens when no try is left.
    pub then: FailureThen,
}

/// How the waits between tries grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Each about twice the one before, with jitter.
    #[default]
    Exponential,
    /// All the same.
    Fixed,
}

/// What happens when no try is left.
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

/// Several agents that work together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Team {
    /// The names of its members, at least two.
    pub agents: Vec<String>,
    /// Who hears all answers and gives that of the team (parallel, debate), or calls the members as tools (router). Default:
    /// the last of `agents`. It takes no turn as a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// How they work.
    #[serde(default)]
    pub strategy: TeamStrategy,
    /// How many rounds a debate has, from 1 to 20; default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Template of what they are asked; default: the readable keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Whether members may make new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emergent: Option<TeamEmergent>,
}

impl Team {
    /// The most rounds of a debate.
    pub const MAX_ROUNDS: u32 = 20;
    /// How many rounds a debate has where nobody says.
    pub const DEFAULT_ROUNDS: u32 = 3;

    /// Who gives the answer of the team, where the strategy has somebody who does.
    pub fn lead(&self) -> &str {
        self.lead.as_deref().or(self.agents.last().map(String::as_str)).unwrap_or_default()
    }

    /// Whose answer the team's is: the lead's, or that of the last in a row.
    pub fn answers(&self) -> &str {
        match self.strategy {
            TeamStrategy::Sequential => self.agents.last().map(String::as_str).unwrap_or_default(),
            TeamStrategy::Parallel | TeamStrategy::Router | TeamStrategy::Debate => self.lead(),
        }
    }

    /// All agents that it names, each once.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let lead = self.lead.as_ref().filter(|lead| !self.agents.contains(lead));
        self.agents.iter().chain(lead).map(String::as_str)
    }

    /// Whether its members may make new ones.
    pub fn is_emergent(&self) -> bool {
        self.emergent.as_ref().is_some_and(|emergent| emergent.enabled)
    }
}

/// How a team works.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TeamStrategy {
    /// One after another, each hearing the answer before; the last answer is the team's.
    #[default]
    Sequential,
    /// All at once; then the lead hears them all, and answers.
    Parallel,
    /// The lead calls the members as tools, and answers.
    Router,
    /// In rounds, each hearing all that was said; then the lead answers.
    Debate,
}

/// Whether a team may grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct TeamEmergent {
    /// Whether it may.
    pub enabled: bool,
    /// The most specialists of one step; default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Whether one is made only with a reason.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_justification: bool,
    /// A model that is asked about each, after the gate; what it does not approve is not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<Judge>,
}

impl TeamEmergent {
    /// The most specialists of one step.
    pub fn max(&self) -> u32 {
        self.max.unwrap_or(5)
    }
}

/// A node that runs for each item of a list, all at the same time. Its result is the list of theirs, in order: of a human
/// node with options or `edit_keys` the decision, of others what they write (under one key: its value).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct MapNode {
    /// The key that holds the list, of at most 200 items.
    pub over: String,
    /// The key under which the node sees its item.
    pub r#as: String,
    /// The node that runs for each: an agent, tool, set, human or flow node that nothing else leads to and that leads nowhere.
    /// Its `on_reject` leaves the map as a whole; an item that fails, fails the map.
    pub node: NodeId,
}

impl MapNode {
    /// The longest list.
    pub const MAX_ITEMS: usize = 200;
}

/// Another flow, run as part of this one, with keys of its own. Its output is the result: as an object under the one
/// write key, or those of its keys that `write_keys` names. Where it fails or is stopped, the node fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct FlowCall {
    /// Its id.
    pub id: FlowId,
    /// Its version; default: the newest when the calling flow is saved, which stays with that version of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Templates of its input; none: the readable keys that its `input` names.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub input: JsonMap,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(rename = "Node"))]
#[serde(default)]
struct RawNode {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<JsonMap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<IndexMap<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    router: Option<RouterNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    human: Option<Box<Human>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<Team>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<MapNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<FlowCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_keys: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write_keys: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Next::is_empty")]
    next: Next,
    #[serde(skip_serializing_if = "is_any")]
    join: Join,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_visits: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_visit_limit: Option<NodeId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_any(join: &Join) -> bool {
    *join == Join::Any
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
