//! `agents`: a model with its instructions, tools and limits.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gate::GateSetting;
use crate::JsonMap;

/// A model with its instructions, tools and limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Agent {
    /// `provider/model`; providers: openai, anthropic, ollama, demo. Default: `defaults.model`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Template of the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The tools that it may call, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// How many model calls one step may take; default 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// How hard the model thinks before it answers. A model that cannot think refuses it; `demo/…` ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Effort>,
    /// How often one step may ask people by itself (`ask_human` and the like); default 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_asks: Option<u32>,
    /// Sampling temperature, where the provider has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Limit of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// JSON Schema of the answer: it is parsed and checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How much of the newest feedback on it is told to it, from 1 to 10; default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<u32>,
    /// More than this is `BUDGET_EXCEEDED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Gates of this agent's own, which win over the flow's.
    #[serde(default, skip_serializing_if = "AgentGates::is_empty")]
    pub gates: AgentGates,
    /// What a `demo/…` model says; without it, believable text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demo: Option<DemoScript>,
}

impl Agent {
    /// The limit of turns where nothing is said.
    pub const DEFAULT_MAX_TURNS: u32 = 8;
    /// The highest limit of turns that a flow may name.
    pub const MAX_TURNS: u32 = 100;
    /// How much feedback an agent may be told.
    pub const MAX_FEEDBACK: u32 = 10;

    /// How often one step may ask people by itself where nothing is said.
    pub const DEFAULT_MAX_ASKS: u32 = 20;

    /// How often one step may ask people by itself.
    pub fn max_asks(&self) -> u32 {
        self.max_asks.unwrap_or(Self::DEFAULT_MAX_ASKS)
    }

    /// How many model calls one step may take.
    pub fn max_turns(&self) -> u32 {
        self.max_turns.unwrap_or(Self::DEFAULT_MAX_TURNS)
    }
}

/// How hard a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Effort {
    /// The least of the three; providers are sent `low`.
    Low,
    /// As most questions need.
    Medium,
    /// As much as it can.
    High,
}

/// Gates of one agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct AgentGates {
    /// By the name of a tool that the agent has, or a pattern with `*`, as those of a flow.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub before_tool: IndexMap<String, GateSetting>,
}

impl AgentGates {
    /// Whether the agent has none of its own.
    pub fn is_empty(&self) -> bool {
        self.before_tool.is_empty()
    }
}

/// What one step of an agent may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Budget {
    /// Tokens, in and out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars, by the prices in the server's settings. With it, a model without a price is not called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// What a demo model says, in order: first its tool calls, a turn each, then its replies. When the replies have run
/// out, the last one stays; the visit number chooses the reply (visit 1 the first, visit 2 the second, …).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct DemoScript {
    /// Final texts, one a visit; templates are not rendered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<String>,
    /// Tool calls, one entry a turn: one call, or a list of calls that the turn makes at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<DemoTurn>,
}

/// The calls of one scripted turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a call {tool, arguments}, or a list of them")]
pub enum DemoTurn {
    /// The one call of the turn, written without a list.
    One(DemoCall),
    /// Several calls in one turn.
    Many(Vec<DemoCall>),
}

impl DemoTurn {
    /// The calls of the turn.
    pub fn calls(&self) -> &[DemoCall] {
        match self {
            Self::One(call) => std::slice::from_ref(call),
            Self::Many(calls) => calls,
        }
    }
}

/// One scripted tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct DemoCall {
    /// The tool's name.
    pub tool: String,
    /// The arguments, by name; templates in them are not rendered.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub arguments: JsonMap,
}
