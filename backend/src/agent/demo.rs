//! The demo model, which needs no key: it follows a script, or writes plausible prose. Equal requests get equal
//! answers.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use shared::definition::DemoCall;

use super::{Model, OnText, prose, verdict};
use crate::engine::{Message, ModelAnswer, ModelRequest, ModelToolCall, TaskFailure};

/// The maximum of all pauses of one answer together.
const MAX_TOTAL_PAUSE: Duration = Duration::from_millis(1500);
/// The number of words per piece of text.
const PIECE: usize = 3;

/// The demo model.
pub struct Demo {
    pause: Duration,
}

impl Demo {
    /// Creates a model that pauses this long after each piece of text.
    pub fn new(pause: Duration) -> Self {
        Self { pause }
    }

    async fn say(&self, text: &str, on_text: &OnText<'_>) {
        let pieces = pieces(text);
        let count = u32::try_from(pieces.len()).unwrap_or(u32::MAX).max(1);
        let pause = self.pause.min(MAX_TOTAL_PAUSE / count);
        for piece in pieces {
            on_text(piece);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    }
}

#[async_trait]
impl Model for Demo {
    async fn call(&self, request: &ModelRequest, on_text: &OnText<'_>) -> Result<ModelAnswer, TaskFailure> {
        let calls = scripted_calls(request);
        let text = if calls.is_empty() { answer(request) } else { String::new() };
        self.say(&text, on_text).await;
        let tokens = tokens(request, &text);
        Ok(ModelAnswer { text, calls, tokens, ..ModelAnswer::default() })
    }
}

/// Returns the scripted tool calls of this turn, if any. The script has an entry for each turn of the visit.
fn scripted_calls(request: &ModelRequest) -> Vec<ModelToolCall> {
    let turn = request.turn.max(1) - 1;
    let script = request.demo.as_ref().map_or(&[][..], |demo| &demo.tool_calls);
    let calls: &[DemoCall] = usize::try_from(turn).ok().and_then(|turn| script.get(turn)).map_or(&[], |t| t.calls());
    calls
        .iter()
        .enumerate()
        .map(|(index, call)| ModelToolCall {
            provider_id: format!("demo-{}-{index}", request.turn),
            tool: call.tool.clone(),
            arguments: Value::Object(call.arguments.clone()),
        })
        .collect()
}

fn answer(request: &ModelRequest) -> String {
    if let Some(reply) = scripted_reply(request) {
        return reply;
    }
    if let Some(verdict) = verdict::verdict(request) {
        return verdict.to_string();
    }
    let Some(Message::User { text: last }) = request.messages.last() else {
        return report(request);
    };
    if let Some(target) = first_target(last) {
        return target;
    }
    if let Some(schema) = &request.output_schema {
        return sample(schema, &prose::topic(last)).to_string();
    }
    let earlier = request.messages.iter().rev().find_map(|message| match message {
        Message::Assistant { text, .. } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    match earlier {
        Some(earlier) => prose::revise(earlier, last),
        None => prose::article(last),
    }
}

fn scripted_reply(request: &ModelRequest) -> Option<String> {
    let replies = &request.demo.as_ref()?.replies;
    let visit = usize::try_from(request.visit.max(1) - 1).unwrap_or(usize::MAX);
    replies.get(visit).or_else(|| replies.last()).cloned()
}

/// Returns the first of the targets that a router's agent may choose from. The engine ends such a question with "Answer
/// with … one of …: a, b".
fn first_target(prompt: &str) -> Option<String> {
    let (_, question) = prompt.rsplit_once("Answer with")?;
    let (_, targets) = question.split_once("one of")?;
    let targets = targets.split_once(':').map_or(targets, |(_, names)| names);
    let name = |word: &str| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    targets.split([',', '\n', ' ']).map(name).find(|name| !name.is_empty())
}

/// Describes the results of this visit's calls in words.
fn report(request: &ModelRequest) -> String {
    let results = request.messages.iter().rev().map_while(|message| match message {
        Message::User { .. } => None,
        Message::Tool { tool, content, .. } => Some(Some((tool, content))),
        Message::Assistant { .. } => Some(None),
    });
    let mut lines: Vec<String> = results.flatten().map(|(tool, content)| line(tool, content)).collect();
    lines.reverse();
    if lines.is_empty() { "There is nothing left to do.".to_owned() } else { lines.join("\n") }
}

fn line(tool: &str, content: &Value) -> String {
    let said = match content {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let short: String = said.chars().take(200).collect();
    let dots = if short.len() < said.len() { "…" } else { "" };
    format!("- I called `{tool}`, and it answered: {short}{dots}")
}

/// Makes a value that fits common JSON Schemas.
fn sample(schema: &Value, topic: &str) -> Value {
    if let Some(given) = schema.get("const").or_else(|| schema.get("default")) {
        return given.clone();
    }
    let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|list| list.first()).cloned();
    if let Some(given) = first("examples").or_else(|| first("enum")) {
        return given;
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!(format!("A short and careful answer about {topic}.")),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("array") => {
            let items = schema.get("items").map(|items| sample(items, topic));
            Value::Array(items.into_iter().collect())
        }
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten().map(|(name, schema)| (name.clone(), sample(schema, topic)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

/// Splits a text into pieces of a few words, each with the white space after them.
fn pieces(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let mut pieces = Vec::new();
    let mut start = 0;
    for group in words.chunks(PIECE) {
        let end = start + group.iter().map(|word| word.len()).sum::<usize>();
        pieces.push(&text[start..end]);
        start = end;
    }
    pieces
}

/// Estimates the number of tokens that a real tokenizer would count, input and output together.
fn tokens(request: &ModelRequest, answer: &str) -> u64 {
    let words = |text: &str| text.split_whitespace().count() as u64;
    let said: u64 = request
        .messages
        .iter()
        .map(|message| match message {
            Message::User { text } | Message::Assistant { text, .. } => words(text),
            Message::Tool { content, .. } => words(&content.to_string()),
        })
        .sum();
    (said + request.instructions.as_deref().map_or(0, words) + words(answer)) * 4 / 3
}
