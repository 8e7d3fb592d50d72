//! The Messages format of Anthropic.

use serde_json::{Value, json};

use super::answer::{AnswerBuilder, AnswerFault, End};
use super::frames::Framing;
use super::wire::{Wire, count, effort, failed, has_arguments, parameters, put, result_text};
use crate::agent::schema;
use crate::engine::{Message, ModelRequest, ToolSpec};

/// The version of the protocol.
pub(super) const VERSION: &str = "2023-06-01";

/// The token limit of an answer if the flow has none, since the protocol demands one. Every model since Claude 4
/// accepts it.
const MAX_TOKENS: u32 = 32_000;

/// Anthropic's Messages API.
pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn body(&self, request: &ModelRequest, model: &str) -> Value {
        let mut body = json!({
            "model": model,
            "max_tokens": request.max_tokens.unwrap_or(MAX_TOKENS),
            "messages": messages(&request.messages),
            "stream": true,
        });
        let mut system = request.instructions.clone();
        if let Some(asked) = &request.output_schema {
            match schema::closed(asked) {
                Some(held) => body["output_config"]["format"] = json!({ "type": "json_schema", "schema": held }),
                None => system = Some(schema::in_words(system.as_deref(), asked)),
            }
        }
        put(&mut body, "system", system);
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        put(&mut body, "temperature", request.temperature);
        if let Some(reasoning) = request.reasoning {
            body["thinking"] = json!({ "type": "adaptive" });
            body["output_config"]["effort"] = effort(reasoning).into();
        }
        body
    }

    fn take(&self, frame: &str, answer: &mut AnswerBuilder<'_>) -> Result<(), AnswerFault> {
        let event = super::answer::frame(frame)?;
        let place = event["index"].as_u64();
        match event["type"].as_str() {
            Some("message_start") => used(&event["message"]["usage"], answer),
            Some("content_block_start") => {
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    let text = |key: &str| block[key].as_str().unwrap_or_default();
                    answer.call(place, text("id"), text("name"))?;
                }
            }
            Some("content_block_delta") => {
                let delta = &event["delta"];
                match delta["type"].as_str() {
                    Some("text_delta") => answer.say(delta["text"].as_str().ok_or(AnswerFault::Form)?)?,
                    Some("input_json_delta") => {
                        answer.arguments(place, delta["partial_json"].as_str().ok_or(AnswerFault::Form)?)?;
                    }
                    // Thinking and its signatures. Unknown kinds must be ignored.
                    _ => {}
                }
            }
            Some("message_delta") => {
                used(&event["usage"], answer);
                match event["delta"]["stop_reason"].as_str() {
                    Some("refusal") => return Err(AnswerFault::Declined(String::new())),
                    Some("max_tokens" | "model_context_window_exceeded") => return Err(AnswerFault::CutOff),
                    _ => {}
                }
            }
            Some("message_stop") => answer.end = End::Over,
            Some("error") => return Err(failed(&event["error"])),
            Some(_) => {}
            None => return Err(AnswerFault::Form),
        }
        Ok(())
    }
}

/// Takes over the reported usage. Each report is a total that replaces the earlier one. Cached input tokens are
/// reported separately from the input, and are added to it.
fn used(usage: &Value, answer: &mut AnswerBuilder<'_>) {
    if usage["input_tokens"].is_u64() {
        let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"].map(|key| count(usage, key));
        answer.used.input = cached.into_iter().fold(count(usage, "input_tokens"), u64::saturating_add);
    }
    if usage["output_tokens"].is_u64() {
        answer.used.output = count(usage, "output_tokens");
    }
}

/// Converts a conversation. Roles must alternate, so consecutive messages of one role become one message, with the
/// results of a turn first. Empty texts are refused, so a turn without text and calls is left out.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = blocks(message);
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, said)) if *last == role => said.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn blocks(message: &Message) -> (&'static str, Vec<Value>) {
    let text = |text: &str| (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
    match message {
        Message::User { text: said } => ("user", text(said).into_iter().collect()),
        Message::Assistant { text: said, calls } => {
            let calls = calls.iter().map(|call| {
                json!({ "type": "tool_use", "id": call.provider_id, "name": call.tool, "input": has_arguments(call) })
            });
            ("assistant", text(said).into_iter().chain(calls).collect())
        }
        Message::Tool { provider_id, content, .. } => {
            let content = result_text(content);
            ("user", vec![json!({ "type": "tool_result", "tool_use_id": provider_id, "content": content })])
        }
    }
}

fn tool(spec: &ToolSpec) -> Value {
    let mut tool = json!({ "name": spec.name, "input_schema": parameters(spec) });
    put(&mut tool, "description", spec.description.as_deref());
    tool
}
