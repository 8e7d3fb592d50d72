//! The usage of agents, call by call, for reviewers and budgets.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::StepId;

/// The usage of an agent, for reviewers and budgets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// The finished model calls, with those that failed but used tokens; at most the newest 50.
    pub agent_calls: Vec<AgentCall>,
    /// Input and output tokens of all calls.
    pub total_tokens: u64,
    /// The cost in US dollars, if the price is known.
    pub total_cost_usd: f64,
    /// The time since the run started.
    pub elapsed_ms: u64,
}

impl Usage {
    /// The number of model calls that are kept and listed.
    pub const MAX_CALLS: usize = 50;

    /// Formats the usage for people: `3 model calls, 1240 tokens, 0.02 USD`. `None` if no model was called.
    pub fn summary(&self) -> Option<String> {
        let calls = match self.agent_calls.len() {
            0 => return None,
            1 => "1 model call".to_owned(),
            // There may be older calls, which are not listed.
            many @ Self::MAX_CALLS.. => format!("{many} model calls or more"),
            many => format!("{many} model calls"),
        };
        let cost = match self.total_cost_usd {
            cost if cost <= 0.0 => String::new(),
            cost if cost < 0.005 => ", under 0.01 USD".to_owned(),
            cost => format!(", {cost:.2} USD"),
        };
        Some(format!("{calls}, {} tokens{cost}", self.total_tokens))
    }
}

/// One model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentCall {
    /// The agent's name.
    pub agent: String,
    /// The model that was called, as flows name it: `provider/model`.
    pub model: String,
    /// Input and output tokens together.
    pub tokens: u64,
    /// The cost in US dollars.
    pub cost_usd: f64,
    /// The duration of the call.
    pub duration_ms: u64,
    /// The last input, shortened, and omitted for old calls if all of them are too long. The log has all of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// The answer, shortened in the same way.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The tool calls that it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<AgentToolCall>,
}

/// A tool call of a model call.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentToolCall {
    /// The id of the call in the step.
    pub id: String,
    /// The step; none in data of older versions.
    pub step: Option<StepId>,
    /// The tool's name as the model wrote it; the agent may have no such tool.
    pub name: String,
    /// The arguments; if they are long, their beginning as text.
    #[serde(serialize_with = "crate::user_data::value")]
    pub arguments: Value,
    /// The result, in the same way. None while it is in progress, or if it failed.
    #[serde(serialize_with = "crate::user_data::value")]
    pub result: Option<Value>,
    /// The error, if it has no result.
    pub error: Option<String>,
}
