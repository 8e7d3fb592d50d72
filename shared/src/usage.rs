//! What agents used, call by call: for the reviewer and the budget.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::StepId;

/// What an agent used, for the reviewer and the budget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    /// Every finished model call; at most the newest 50.
    pub agent_calls: Vec<AgentCall>,
    /// In and out, over all.
    pub total_tokens: u64,
    /// In US dollars, where the price is known.
    pub total_cost_usd: f64,
    /// Since the run started.
    pub elapsed_ms: u64,
}

impl Usage {
    /// As people read it: `3 model calls, 1240 tokens, 0.02 USD`. None where nothing was used.
    pub fn summary(&self) -> Option<String> {
        let calls = match self.agent_calls.len() {
            0 => return None,
            1 => "1 model call".to_owned(),
            // Older ones are not listed any more.
            many @ MAX_CALLS.. => format!("{many} model calls or more"),
            many => format!("{many} model calls"),
        };
        let cost = if self.total_cost_usd > 0.0 { format!(", {:.2} USD", self.total_cost_usd) } else { String::new() };
        Some(format!("{calls}, {} tokens{cost}", self.total_tokens))
    }
}

/// How many model calls are listed at most.
const MAX_CALLS: usize = 50;

/// One model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentCall {
    /// The agent's name.
    pub agent: String,
    /// The model that was called, as flows name it: `provider/model`.
    pub model: String,
    /// In and out.
    pub tokens: u64,
    /// In US dollars.
    pub cost_usd: f64,
    /// How long it took.
    pub duration_ms: u64,
    /// What it was told last; cut, and left out of old calls where all of them are too long. The log has it whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// What it answered, cut in the same way.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The calls that it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<AgentToolCall>,
}

/// One tool call of a model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentToolCall {
    /// Its id in the step.
    pub id: String,
    /// The step; none in what older versions kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// The tool's name as the model wrote it; the agent may have no such tool.
    pub name: String,
    /// What it was called with; where that is long, the beginning of it as text.
    pub arguments: Value,
    /// What it returned, in the same way. None while it is under way, or where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
