//! The Chat Completions format of OpenAI and compatible servers.
//!
//! Compatible servers differ where the original specifies nothing: how they number calls, whether they end with
//! `[DONE]`, and which chunk has the usage. All variants are read.

use reqwest::Url;
use serde_json::{Value, json};

use super::answer::{AnswerBuilder, AnswerFault, End};
use super::frames::Framing;
use super::price::Tokens;
use super::wire::{Wire, count, effort, has_arguments, put, result_text};
use crate::agent::schema;
use crate::engine::{Message, ModelRequest, ModelToolCall, ToolSpec};

/// The Chat Completions API of OpenAI or a compatible server.
pub(super) struct OpenAi {
    /// Whether the server is OpenAI itself, which has renamed `max_tokens`; compatible servers know the old name.
    is_original: bool,
}

impl OpenAi {
    /// Returns the API at this address.
    pub(super) fn at(url: &Url) -> Self {
        // Regional hosts end like the usual one.
        let is_original = url.host_str().is_some_and(|host| format!(".{host}").ends_with(".api.openai.com"));
        Self { is_original }
    }
}

impl Wire for OpenAi {
    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn body(&self, request: &ModelRequest, model: &str) -> Value {
        let system = request.instructions.iter().map(|text| json!({ "role": "system", "content": text }));
        let messages: Vec<Value> = system.chain(request.messages.iter().map(message)).collect();
        let mut body = json!({
            "model": model,
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(function).collect();
        }
        put(&mut body, "temperature", request.temperature);
        put(&mut body, if self.is_original { "max_completion_tokens" } else { "max_tokens" }, request.max_tokens);
        put(&mut body, "reasoning_effort", request.reasoning.map(effort));
        if let Some(asked) = &request.output_schema {
            let spec = json!({ "name": "answer", "strict": schema::is_strict(asked), "schema": asked });
            body["response_format"] = json!({ "type": "json_schema", "json_schema": spec });
        }
        body
    }

    fn take(&self, frame: &str, answer: &mut AnswerBuilder<'_>) -> Result<(), AnswerFault> {
        if frame == "[DONE]" {
            answer.end = End::Over;
            return Ok(());
        }
        let chunk = super::answer::frame(frame)?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(super::wire::failed(error));
        }
        let usage = &chunk["usage"];
        if usage.is_object() {
            // Tokens that are reported neither as input nor as output count as output, which costs more.
            let input = count(usage, "prompt_tokens");
            let all = count(usage, "total_tokens").saturating_sub(input);
            answer.used = Tokens { input, output: count(usage, "completion_tokens").max(all) };
        }
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        match &delta["content"] {
            Value::String(text) => answer.say(text)?,
            // Some servers answer in typed pieces. Thinking is not among their texts.
            Value::Array(pieces) => {
                for text in pieces.iter().filter_map(|piece| piece["text"].as_str()) {
                    answer.say(text)?;
                }
            }
            _ => {}
        }
        if let Some(refusal) = delta["refusal"].as_str() {
            answer.refuse(refusal)?;
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            piece_of_call(call, answer)?;
        }
        match choice["finish_reason"].as_str() {
            Some("content_filter") => answer.stop(AnswerFault::Declined(String::new())),
            Some("length") => answer.stop(AnswerFault::CutOff),
            Some(_) => answer.end = End::Complete,
            None => {}
        }
        Ok(())
    }
}

fn piece_of_call(call: &Value, answer: &mut AnswerBuilder<'_>) -> Result<(), AnswerFault> {
    let place = call["index"].as_u64();
    let id = call["id"].as_str().unwrap_or_default();
    let name = call["function"]["name"].as_str().unwrap_or_default();
    // Without an index, only a piece without a name continues the previous call.
    let goes_on = answer.has_call(place, id) && (place.is_some() || name.is_empty());
    if !goes_on {
        answer.call(place, id, name)?;
    }
    match &call["function"]["arguments"] {
        Value::String(piece) => answer.arguments(place, piece),
        Value::Null => Ok(()),
        whole => answer.arguments(place, &whole.to_string()),
    }
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls } => {
            let mut said = json!({ "role": "assistant", "content": text });
            if !calls.is_empty() {
                said["tool_calls"] = calls.iter().map(tool_call).collect();
            }
            said
        }
        Message::Tool { provider_id, content, .. } => {
            json!({ "role": "tool", "tool_call_id": provider_id, "content": result_text(content) })
        }
    }
}

fn tool_call(call: &ModelToolCall) -> Value {
    let function = json!({ "name": call.tool, "arguments": has_arguments(call).to_string() });
    json!({ "id": call.provider_id, "type": "function", "function": function })
}

/// The definition of a tool as OpenAI and Ollama expect it.
pub(super) fn function(tool: &ToolSpec) -> Value {
    let mut function = json!({ "name": tool.name, "parameters": super::wire::parameters(tool) });
    put(&mut function, "description", tool.description.as_deref());
    json!({ "type": "function", "function": function })
}
