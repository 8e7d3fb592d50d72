//! `agents`: a model with its instructions, tools and limits.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gate::GateSetting;
use crate::JsonMap;

/// A model with its instructions, tools and limits.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Agent {
    /// `provider/model`; providers: openai, anthropic, ollama, demo. Default: `defaults.model`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Template of the system prompt.
    pub instructions: Option<String>,
    /// The tools that it may call, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The limit of model calls in a step; default 8.
    pub max_turns: Option<u32>,
    /// How hard the model thinks before it answers. Models that cannot think refuse it; `demo/…` ignores it.
    pub reasoning: Option<Effort>,
    /// How often a step may ask people on its own initiative (`ask_human` etc.); default 20.
    pub max_asks: Option<u32>,
    /// The sampling temperature, if the provider supports it.
    pub temperature: Option<f64>,
    /// The token limit of an answer.
    pub max_tokens: Option<u32>,
    /// JSON Schema of the answer, which is parsed and checked.
    pub output_schema: Option<Value>,
    /// How much of the newest feedback the agent gets, from 1 to 10; default: none.
    pub feedback: Option<u32>,
    /// The budget of a step; more is `BUDGET_EXCEEDED`.
    pub budget: Option<Budget>,
    /// The agent's own gates, which override those of the flow.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub gates: AgentGates,
    /// The script of a `demo/…` model; default: plausible text.
    pub demo: Option<DemoScript>,
}

impl Agent {
    /// The default limit of turns.
    pub const DEFAULT_MAX_TURNS: u32 = 8;
    /// The highest limit of turns that a flow may name.
    pub const MAX_TURNS: u32 = 100;
    /// The most feedback that an agent may get.
    pub const MAX_FEEDBACK: u32 = 10;

    /// The default limit of questions that a step may ask people on its own initiative.
    pub const DEFAULT_MAX_ASKS: u32 = 20;

    /// Returns the limit of questions that a step may ask people on its own initiative.
    pub fn max_asks(&self) -> u32 {
        self.max_asks.unwrap_or(Self::DEFAULT_MAX_ASKS)
    }

    /// Returns the limit of model calls in a step.
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
    /// The least of the three; sent as `low`.
    Low,
    /// Enough for most questions.
    Medium,
    /// As much as the model can.
    High,
}

/// Gates of one agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct AgentGates {
    /// Gates by the name of one of the agent's tools, or a pattern with `*`, as in a flow.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub before_tool: IndexMap<String, GateSetting>,
}

/// The budget of a step of an agent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Budget {
    /// Input and output tokens together.
    pub tokens: Option<u64>,
    /// US dollars, by the prices in the server's settings. A model without a price is then not called.
    pub cost_usd: Option<f64>,
}

/// The script of a demo model, in order: first its tool calls, one turn each, then its reply. The number of the visit
/// chooses the reply (visit 1 the first, visit 2 the second, …); after the last reply, the last one is repeated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct DemoScript {
    /// The final texts, one per visit; templates are not rendered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replies: Vec<String>,
    /// The tool calls, one entry per turn: one call, or a list of calls that the turn makes at once.
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
    /// Returns the calls of the turn.
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
