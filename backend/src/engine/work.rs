//! What a worker is to do for a task: read from the state at the time of the claim, so that tasks stay small and what
//! was approved is what is executed.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{DemoScript, Tool};
use shared::id::{NodeId, RunId};

use super::input::TaskFailure;
use super::state::Message;

/// What a worker is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Call a model.
    Model(Box<ModelRequest>),
    /// Call a tool.
    Tool(Box<ToolRequest>),
    /// Nothing is to be executed: what would be is not what was approved, or the flow lost what it needs. The worker
    /// gives this back as [`super::Input::TaskFailed`].
    Refuse(TaskFailure),
}

/// One model call.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// For the stream to the run page.
    pub run: RunId,
    /// For the stream to the run page.
    pub node: NodeId,
    /// For the stream to the run page, and for a demo model's script.
    pub visit: u32,
    /// The turn, from 1.
    pub turn: u32,
    /// The agent.
    pub agent: String,
    /// `provider/model`.
    pub model: String,
    /// The system prompt.
    pub instructions: Option<String>,
    /// What was said so far.
    pub messages: Vec<Message>,
    /// The tools that it may call.
    pub tools: Vec<ToolSpec>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Limit of the answer.
    pub max_tokens: Option<u32>,
    /// JSON Schema of the answer.
    pub output_schema: Option<Value>,
    /// What a demo model says.
    pub demo: Option<DemoScript>,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Option<Value>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// The run, for logs.
    pub run: RunId,
    /// The node, for logs.
    pub node: NodeId,
    /// The tool's name.
    pub name: String,
    /// How it is called.
    pub tool: Tool,
    /// The arguments, as approved.
    pub arguments: JsonMap,
    /// What templates of the tool see (without secrets, which the worker adds).
    pub scope: JsonMap,
    /// The same for every attempt of this call: of run, step, visit, turn and index.
    pub idempotency_key: String,
}
