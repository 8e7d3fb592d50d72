//! Filters in the query of an address. The parameters have the names of a type's fields, and the text that the server
//! expects.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads a filter from query parameters. Unknown parameters and invalid values are ignored.
pub fn read<'a, N, F>(parts: impl IntoIterator<Item = (N, &'a str)>) -> F
where
    N: AsRef<str>,
    F: Clone + Default + Serialize + DeserializeOwned,
{
    parts.into_iter().fold(F::default(), |filter, (name, value)| with(&filter, name.as_ref(), Some(value)))
}

/// The same filter with one parameter replaced, or removed if `value` is `None` or blank; the same if it is invalid.
pub fn with<F>(filter: &F, name: &str, value: Option<&str>) -> F
where
    F: Clone + Serialize + DeserializeOwned,
{
    let set = |value: Value| {
        let mut fields = fields(filter);
        fields.insert(name.to_owned(), value);
        serde_json::from_value(Value::Object(fields)).ok()
    };
    let changed = match value.filter(|value| !value.trim().is_empty()) {
        // Numbers and booleans are not strings in JSON.
        Some(text) => set(text.into()).or_else(|| set(serde_json::from_str(text).ok()?)),
        None => set(Value::Null),
    };
    changed.unwrap_or_else(|| filter.clone())
}

/// The text of one parameter of a filter; `None` if it is not set.
pub fn part<F: Serialize>(filter: &F, name: &str) -> Option<String> {
    match fields(filter).remove(name)? {
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

/// The number of parameters of a filter that are set.
pub fn count<F: Serialize>(filter: &F) -> usize {
    fields(filter).values().filter(|value| !value.is_null()).count()
}

fn fields<F: Serialize>(filter: &F) -> Map<String, Value> {
    match serde_json::to_value(filter) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
