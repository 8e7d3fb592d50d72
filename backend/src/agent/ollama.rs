//! The chat format of Ollama: one JSON value per line, with complete calls.

use serde_json::{Value, json};

use super::answer::{AnswerBuilder, AnswerFault, End};
use super::frames::Framing;
use super::openai::function;
use super::price::Tokens;
use super::wire::{Wire, count, effort, failed, has_arguments, put, result_text};
use crate::agent::schema;
use crate::engine::{Message, ModelRequest, ModelToolCall};

/// Ollama's chat API.
pub(super) struct Ollama;

impl Wire for Ollama {
    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn body(&self, request: &ModelRequest, model: &str) -> Value {
        let mut system = request.instructions.clone();
        let mut body = json!({ "model": model, "stream": true });
        if let Some(asked) = &request.output_schema {
            // `format` constrains all text, so tool calls would be impossible.
            if request.tools.is_empty() {
                body["format"] = asked.clone();
            } else {
                system = Some(schema::in_words(system.as_deref(), asked));
            }
        }
        let system = system.into_iter().map(|text| json!({ "role": "system", "content": text }));
        body["messages"] = system.chain(request.messages.iter().map(message)).collect();
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(function).collect();
        }
        put(&mut body, "think", request.reasoning.map(effort));
        if let Some(temperature) = request.temperature {
            body["options"]["temperature"] = temperature.into();
        }
        if let Some(limit) = request.max_tokens {
            body["options"]["num_predict"] = limit.into();
        }
        body
    }

    fn take(&self, frame: &str, answer: &mut AnswerBuilder<'_>) -> Result<(), AnswerFault> {
        let line = super::answer::frame(frame)?;
        if let Some(error) = line.get("error") {
            return Err(failed(error));
        }
        let message = &line["message"];
        answer.say(message["content"].as_str().unwrap_or_default())?;
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            answer.call(None, &text(&call["id"]), &text(&call["function"]["name"]))?;
            match &call["function"]["arguments"] {
                Value::String(written) => answer.arguments(None, written)?,
                whole => answer.arguments(None, &whole.to_string())?,
            }
        }
        if line["done"] == true {
            answer.used = Tokens { input: count(&line, "prompt_eval_count"), output: count(&line, "eval_count") };
            answer.end = End::Over;
            if line["done_reason"] == "length" {
                return Err(AnswerFault::CutOff);
            }
        }
        Ok(())
    }
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls } => {
            let mut said = json!({ "role": "assistant", "content": text });
            if !calls.is_empty() {
                let call = |call: &ModelToolCall| json!({ "function": { "name": call.tool, "arguments": has_arguments(call) } });
                said["tool_calls"] = calls.iter().map(call).collect();
            }
            said
        }
        Message::Tool { tool, content, .. } => {
            json!({ "role": "tool", "tool_name": tool, "content": result_text(content) })
        }
    }
}
