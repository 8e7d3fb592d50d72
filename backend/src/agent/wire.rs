//! The common parts of the providers' wire formats.

use serde::Serialize;
use serde_json::{Value, json};
use shared::definition::Effort;

use super::answer::{AnswerBuilder, AnswerFault};
use super::frames::Framing;
use crate::engine::{ModelRequest, ModelToolCall, ToolSpec};

/// The protocol of a kind of server.
pub(super) trait Wire: Send + Sync {
    /// How the frames of an answer are separated.
    fn framing(&self) -> Framing;

    /// Builds the body of a request. `model` is the name that the server knows.
    fn body(&self, request: &ModelRequest, model: &str) -> Value;

    fn take(&self, frame: &str, answer: &mut AnswerBuilder<'_>) -> Result<(), AnswerFault>;
}

/// Sets a member, unless the value is `None`.
pub(super) fn put(body: &mut Value, key: &str, value: Option<impl Serialize>) {
    if let Some(value) = value {
        body[key] = json!(value);
    }
}

/// Reads a number of tokens; 0 if absent.
pub(super) fn count(usage: &Value, key: &str) -> u64 {
    usage[key].as_u64().unwrap_or(0)
}

/// The name of an effort, which is the same for all providers.
pub(super) fn effort(effort: Effort) -> &'static str {
    effort.into()
}

/// Converts an error, which is a text or an object with a message and a kind.
pub(super) fn failed(error: &Value) -> AnswerFault {
    let text = |key: &str| error[key].as_str();
    let kind = text("type").or(text("code")).unwrap_or_default().to_owned();
    let message = error.as_str().or(text("message")).map_or_else(|| error.to_string(), str::to_owned);
    AnswerFault::Failed { kind, message }
}

/// Returns the arguments of a call for the conversation. Providers accept only objects, so others are replaced by `{}`;
/// the call's result says what was wrong with them.
pub(super) fn has_arguments(call: &ModelToolCall) -> Value {
    if call.arguments.is_object() { call.arguments.clone() } else { json!({}) }
}

/// Returns the schema of a tool's arguments. Providers demand an object, even for tools without arguments.
pub(super) fn parameters(tool: &ToolSpec) -> Value {
    tool.parameters.clone().unwrap_or_else(|| json!({ "type": "object", "properties": {} }))
}

/// Returns a result as a text: a string as it is, anything else as JSON.
pub(super) fn result_text(content: &Value) -> String {
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}
