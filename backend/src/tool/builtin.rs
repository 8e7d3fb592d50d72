//! Builtin tools that a worker executes. (`sleep` and `set_state` need no worker.)

use serde_json::{Value, json};
use shared::definition::Builtin;

use super::failed;
use crate::engine::{TaskFailure, ToolRequest};

pub(super) fn call(builtin: Builtin, request: &ToolRequest) -> Result<Value, TaskFailure> {
    match builtin {
        Builtin::DemoPublish => Ok(demo_publish(request)),
        _ => Err(failed(format!("the tool `{}` is not one that a worker can call", request.name), false)),
    }
}

/// Pretends to publish a text; returns its URL and number of words.
fn demo_publish(request: &ToolRequest) -> Value {
    let text = |name: &str| request.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    json!({
        "url": format!("https://example.org/{}", slug(text("title"))),
        "words": text("text").split_whitespace().count(),
    })
}

fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<_>>().join("-").chars().take(80).collect();
    if slug.is_empty() { "untitled".to_owned() } else { slug }
}
