//! The part of an `output_schema` that a provider can enforce. Schemas are never sent in a form that the provider would
//! refuse: parts that it cannot enforce are left out if that only allows more, because the engine checks the answer
//! against the whole schema; if nothing would be left, the model gets the schema in words.

use serde_json::Value;
use shared::JsonMap;

/// Keywords that OpenAI and Anthropic both support.
const KNOWN: [&str; 11] =
    ["type", "enum", "const", "title", "description", "required", "$ref", "format", "pattern", "anyOf", "items"];
/// Limits that OpenAI's strict mode supports and Anthropic does not.
const LIMITS: [&str; 7] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"];
/// Limits that neither supports.
const MORE_LIMITS: [&str; 5] = ["minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties"];
/// Keywords whose values are schemas by name.
const NAMED: [&str; 3] = ["properties", "$defs", "definitions"];

/// Whether OpenAI's strict mode accepts a schema as it is: objects require all of their properties, and allow no
/// others.
pub(super) fn is_strict(schema: &Value) -> bool {
    fn fits(schema: &Value) -> bool {
        let Some(members) = schema.as_object() else { return false };
        let known = |key: &String| {
            let key = key.as_str();
            KNOWN.contains(&key) || LIMITS.contains(&key) || NAMED.contains(&key) || key == "additionalProperties"
        };
        let is_closed = || {
            let required: Vec<_> = members.get("required").and_then(Value::as_array).into_iter().flatten().collect();
            let properties = members.get("properties").and_then(Value::as_object);
            members.get("additionalProperties") == Some(&Value::Bool(false))
                && properties.is_some_and(|properties| properties.keys().all(|key| required.iter().any(|r| *r == key)))
        };
        members.keys().all(known) && (!is_object(members) || is_closed()) && below(members).all(fits)
    }
    schema["type"] == "object" && fits(schema)
}

/// Returns a schema that Anthropic accepts, and that allows every answer that fits `schema` without additional
/// properties. `None` if there is no such schema.
pub(super) fn closed(schema: &Value) -> Option<Value> {
    let mut members = JsonMap::new();
    for (key, value) in schema.as_object()? {
        let value = match key.as_str() {
            key if NAMED.contains(&key) => {
                let named = value.as_object()?.iter().map(|(name, schema)| Some((name.clone(), closed(schema)?)));
                Value::Object(named.collect::<Option<_>>()?)
            }
            "anyOf" => Value::Array(value.as_array()?.iter().map(closed).collect::<Option<_>>()?),
            "items" => closed(value)?,
            "additionalProperties" if value == &Value::Bool(false) => value.clone(),
            "pattern" => continue,
            key if KNOWN.contains(&key) => value.clone(),
            key if LIMITS.contains(&key) || MORE_LIMITS.contains(&key) => continue,
            _ => return None,
        };
        members.insert(key.clone(), value);
    }
    if is_object(&members) {
        members.get("properties")?;
        members.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(members))
}

/// Adds to the instructions that the answer must fit a schema.
pub(super) fn in_words(instructions: Option<&str>, schema: &Value) -> String {
    let asked = format!("Answer with JSON only, which fits this JSON Schema:\n{schema}");
    instructions.map_or_else(|| asked.clone(), |instructions| format!("{instructions}\n\n{asked}"))
}

fn is_object(members: &JsonMap) -> bool {
    let is = |kind: &Value| kind == "object";
    let kind = members.get("type");
    kind.is_some_and(|kind| is(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is)))
        || members.contains_key("properties")
}

/// Returns the schemas nested directly in a schema.
fn below(members: &JsonMap) -> impl Iterator<Item = &Value> {
    let named = NAMED.iter().filter_map(|key| members.get(*key)?.as_object()).flat_map(JsonMap::values);
    let choices = members.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    named.chain(choices).chain(members.get("items"))
}
