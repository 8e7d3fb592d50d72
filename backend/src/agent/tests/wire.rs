//! The wire formats of the three kinds of servers, as their vendors document them.

use serde_json::{Value, json};

use super::server::Server;
use crate::agent::{ModelOptions, Models};

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    OpenAi,
    Anthropic,
    Ollama,
}

pub const WIRES: [Wire; 3] = [Wire::OpenAi, Wire::Anthropic, Wire::Ollama];

/// The key that no log and no message may contain.
pub const KEY: &str = "sk-very-secret";

/// A tool call as the model writes it, with the arguments in pieces.
#[derive(Clone)]
pub struct Call {
    pub id: &'static str,
    pub tool: &'static str,
    pub arguments: Vec<&'static str>,
}

impl Call {
    pub fn new(id: &'static str, tool: &'static str, arguments: &[&'static str]) -> Self {
        Self { id, tool, arguments: arguments.to_vec() }
    }
}

impl Wire {
    /// Returns the name of a model as written in flows.
    pub fn model(self, name: &str) -> String {
        let provider = match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        };
        format!("{provider}/{name}")
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "/v1/chat/completions",
            Self::Anthropic => "/v1/messages",
            Self::Ollama => "/api/chat",
        }
    }

    /// Returns the settings for which `server` serves this kind of models.
    pub fn options(self, server: &Server) -> ModelOptions {
        let url = server.url.clone();
        let key = Some(KEY.to_owned());
        match self {
            Self::OpenAi => {
                ModelOptions { openai_key: key, openai_url: Some(format!("{url}/v1")), ..ModelOptions::default() }
            }
            Self::Anthropic => ModelOptions { anthropic_key: key, anthropic_url: Some(url), ..ModelOptions::default() },
            Self::Ollama => ModelOptions { ollama_host: Some(url), ..ModelOptions::default() },
        }
    }

    pub fn models(self, server: &Server) -> Models {
        Models::new(self.options(server)).unwrap()
    }

    /// Builds a complete answer with a usage of 5 input and 4 output tokens.
    pub fn answer(self, texts: &[&str], calls: &[Call]) -> Vec<u8> {
        [self.begun(texts), self.calls(calls), self.end(!calls.is_empty())].concat()
    }

    /// Builds the tool calls of an answer.
    pub fn calls(self, calls: &[Call]) -> Vec<u8> {
        match self {
            Self::OpenAi => openai_calls(calls),
            Self::Anthropic => anthropic_calls(calls),
            Self::Ollama if calls.is_empty() => Vec::new(),
            Self::Ollama => ollama_calls(calls),
        }
    }

    /// Builds the beginning of an answer.
    pub fn begun(self, texts: &[&str]) -> Vec<u8> {
        match self {
            Self::OpenAi => {
                let mut chunks = vec![delta(&json!({ "role": "assistant", "content": "", "refusal": null }))];
                chunks.extend(texts.iter().map(|text| delta(&json!({ "content": text }))));
                chunks.concat().into_bytes()
            }
            Self::Anthropic => {
                let usage = json!({ "input_tokens": 2, "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 3, "output_tokens": 1 });
                let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": [],
                    "model": "m", "stop_reason": null, "usage": usage });
                let mut events = vec![json!({ "type": "message_start", "message": message })];
                if !texts.is_empty() {
                    events.push(json!({ "type": "content_block_start", "index": 0,
                        "content_block": { "type": "text", "text": "" } }));
                    events.push(json!({ "type": "ping" }));
                    events.extend(texts.iter().map(|text| {
                        json!({ "type": "content_block_delta", "index": 0,
                            "delta": { "type": "text_delta", "text": text } })
                    }));
                    events.push(json!({ "type": "content_block_stop", "index": 0 }));
                }
                anthropic_events(&events)
            }
            Self::Ollama => {
                let lines = texts.iter().map(|text| {
                    let message = json!({ "role": "assistant", "content": text });
                    format!("{}\n", json!({ "model": "m", "message": message, "done": false }))
                });
                lines.collect::<String>().into_bytes()
            }
        }
    }

    /// Builds an answer that reached its token limit within a text or a call's arguments.
    pub fn cut_off(self, texts: &[&str], calls: &[Call]) -> Vec<u8> {
        let last = match self {
            Self::OpenAi => openai_end("length"),
            Self::Anthropic => anthropic_events(&[
                json!({ "type": "message_delta", "delta": { "stop_reason": "max_tokens", "stop_sequence": null },
                    "usage": { "output_tokens": 4 } }),
                json!({ "type": "message_stop" }),
            ]),
            Self::Ollama => {
                let last = json!({ "model": "m", "message": { "role": "assistant", "content": "" }, "done": true,
                    "done_reason": "length", "prompt_eval_count": 5, "eval_count": 4 });
                format!("{last}\n").into_bytes()
            }
        };
        [self.begun(texts), self.calls(calls), last].concat()
    }

    fn end(self, has_calls: bool) -> Vec<u8> {
        match self {
            Self::OpenAi => openai_end(if has_calls { "tool_calls" } else { "stop" }),
            Self::Anthropic => {
                let reason = if has_calls { "tool_use" } else { "end_turn" };
                anthropic_events(&[
                    json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
                        "usage": { "output_tokens": 4 } }),
                    json!({ "type": "message_stop" }),
                ])
            }
            Self::Ollama => {
                let last = json!({ "model": "m", "message": { "role": "assistant", "content": "" }, "done": true,
                    "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 4 });
                format!("{last}\n").into_bytes()
            }
        }
    }

    /// Builds the body of a refusal, or of an error within an answer.
    pub fn error(self, kind: &str, message: &str) -> Value {
        match self {
            Self::OpenAi => json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } }),
            Self::Anthropic => json!({ "type": "error", "error": { "type": kind, "message": message } }),
            Self::Ollama => json!({ "error": message }),
        }
    }

    /// Builds a frame of a streamed answer from a value.
    pub fn frame(self, value: &Value) -> Vec<u8> {
        match self {
            Self::OpenAi => format!("data: {value}\n\n").into_bytes(),
            Self::Anthropic => anthropic_events(std::slice::from_ref(value)),
            Self::Ollama => format!("{value}\n").into_bytes(),
        }
    }
}

fn delta(delta: &Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null });
    let chunk = json!({ "id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice] });
    format!("data: {chunk}\n\n")
}

/// Builds the end of an answer in OpenAI's format: the usage follows the reason.
fn openai_end(reason: &str) -> Vec<u8> {
    let last = json!({ "id": "1", "object": "chat.completion.chunk", "model": "m",
        "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }], "usage": null });
    let usage = json!({ "id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [],
        "usage": { "prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9 } });
    format!("data: {last}\n\ndata: {usage}\n\ndata: [DONE]\n\n").into_bytes()
}

fn openai_calls(calls: &[Call]) -> Vec<u8> {
    let mut chunks = String::new();
    for (index, call) in calls.iter().enumerate() {
        let first = json!({ "index": index, "id": call.id, "type": "function",
            "function": { "name": call.tool, "arguments": "" } });
        let pieces = call.arguments.iter().map(|piece| json!({ "index": index, "function": { "arguments": piece } }));
        for piece in [first].into_iter().chain(pieces) {
            chunks.push_str(&delta(&json!({ "tool_calls": [piece] })));
        }
    }
    chunks.into_bytes()
}

fn anthropic_calls(calls: &[Call]) -> Vec<u8> {
    let mut events = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let index = index + 1;
        events.push(json!({ "type": "content_block_start", "index": index,
            "content_block": { "type": "tool_use", "id": call.id, "name": call.tool, "input": {} } }));
        // The first piece of the arguments is empty.
        events.extend([""].iter().chain(&call.arguments).map(|piece| {
            json!({ "type": "content_block_delta", "index": index,
                "delta": { "type": "input_json_delta", "partial_json": piece } })
        }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    anthropic_events(&events)
}

/// Builds calls in Ollama's format: arguments are values, or a text if the model wrote none.
fn ollama_calls(calls: &[Call]) -> Vec<u8> {
    let calls = calls.iter().map(|call| {
        let text = call.arguments.concat();
        let empty = text.is_empty().then(|| json!({}));
        let arguments = empty.or_else(|| serde_json::from_str(&text).ok()).unwrap_or(Value::String(text));
        json!({ "id": call.id, "function": { "name": call.tool, "arguments": arguments } })
    });
    let message = json!({ "role": "assistant", "content": "", "tool_calls": calls.collect::<Vec<_>>() });
    format!("{}\n", json!({ "model": "m", "message": message, "done": false })).into_bytes()
}

fn anthropic_events(events: &[Value]) -> Vec<u8> {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect::<String>().into_bytes()
}
