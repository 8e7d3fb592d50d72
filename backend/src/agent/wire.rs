//! The common parts of the providers' wire formats.

use serde::Serialize;
use serde_json::{Value, json};
use shared::definition::Effort;

use super::answer::{AnswerBuilder, AnswerFault};
use super::frames::Framing;
use crate::engine::{ModelRequest, ModelToolCall, ToolSpec};

/// How a kind of server is spoken to.
pub(super) trait Wire: Send + Sync {
    /// How the frames of its answers are told apart.
    fn framing(&self) -> Framing;

    /// The body of a request. `model` is sent as it is.
    fn body(&self, request: &ModelRequest, model: &str) -> Value;

    /// Takes a frame of an answer.
    fn take(&self, frame: &str, answer: &mut AnswerBuilder<'_>) -> Result<(), AnswerFault>;
}

/// Sets a member where there is something to say.
pub(super) fn put(body: &mut Value, key: &str, value: Option<impl Serialize>) {
    if let Some(value) = value {
        body[key] = json!(value);
    }
}

/// A number of tokens; 0 where there is none.
pub(super) fn count(usage: &Value, key: &str) -> u64 {
    usage[key].as_u64().unwrap_or(0)
}

/// The level of an effort, which all call the same.
pub(super) fn effort(effort: Effort) -> &'static str {
    effort.into()
}

/// What an error says: a text, or an object with a message and what kind of error it is.
pub(super) fn failed(error: &Value) -> AnswerFault {
    let text = |key: &str| error[key].as_str();
    let kind = text("type").or(text("code")).unwrap_or_default().to_owned();
    let message = error.as_str().or(text("message")).map_or_else(|| error.to_string(), str::to_owned);
    AnswerFault::Failed { kind, message }
}

/// The arguments of a call as it goes back to its model. Providers take nothing but an object; what was wrong with any
/// other is said by the result beside it.
pub(super) fn has_arguments(call: &ModelToolCall) -> Value {
    if call.arguments.is_object() { call.arguments.clone() } else { json!({}) }
}

/// What a tool takes. Providers insist on an object, also where it takes nothing.
pub(super) fn parameters(tool: &ToolSpec) -> Value {
    tool.parameters.clone().unwrap_or_else(|| json!({ "type": "object", "properties": {} }))
}

/// A result as a text.
pub(super) fn result_text(content: &Value) -> String {
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}
