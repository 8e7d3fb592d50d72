//! The demo model as a judge: it rejects content that contains a text quoted in the criteria, and its confidence
//! decreases with the length of the content.

use serde_json::{Value, json};

use crate::engine::{Message, ModelRequest};

/// The number of words up to which the judge is fully confident.
const PLAIN: usize = 40;
/// The confidence lost with each further word.
const DOUBT: f64 = 0.005;
/// The minimum confidence.
const LEAST: f64 = 0.3;

/// Returns the answer of a judge, as JSON. `None` if the request is not for a judge.
pub(super) fn verdict(request: &ModelRequest) -> Option<Value> {
    request.output_schema.as_ref()?.pointer("/properties/confidence")?;
    let Some(Message::User { text: shown }) = request.messages.first() else { return None };
    let criteria = request.instructions.as_deref()?.split("What you are shown").next()?;
    let material = serde_json::from_str::<Value>(shown).ok().map_or_else(|| shown.clone(), |shown| said(&shown));
    let words = material.split_whitespace().count();
    let low = material.to_lowercase();
    if let Some(found) = criteria.split('"').skip(1).step_by(2).find(|text| low.contains(&text.to_lowercase())) {
        let reasoning = format!("It says \"{found}\", which the criteria rule out.");
        return Some(json!({ "approved": false, "confidence": 0.95, "reasoning": reasoning }));
    }
    let surplus = u32::try_from(words.saturating_sub(PLAIN)).unwrap_or(u32::MAX);
    let confidence = (0.95 - DOUBT * f64::from(surplus)).max(LEAST);
    let confidence = (confidence * 100.0).round() / 100.0;
    let reasoning = format!("Nothing that the criteria rule out is in these {words} words.");
    Some(json!({ "approved": true, "confidence": confidence, "reasoning": reasoning }))
}

/// Returns what the judge is shown as text: values, and arguments of calls.
fn said(shown: &Value) -> String {
    let all = |key: &str| shown.get(key).and_then(Value::as_array).into_iter().flatten();
    let arguments = all("actions").filter_map(|action| action.get("arguments")?.as_object());
    let values = all("material").filter_map(|item| item.get("value")).chain(arguments.flat_map(|all| all.values()));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    values.map(text).collect::<Vec<_>>().join("\n")
}
