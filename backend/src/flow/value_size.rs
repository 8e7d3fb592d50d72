//! The size of a value, which limits how often a file may repeat it.

use serde_json::Value;

/// How large a value is.
#[derive(Debug, Clone, Copy, Default)]
pub struct ValueSize {
    /// Itself and everything in it.
    pub values: usize,
    /// Of texts and keys.
    pub bytes: usize,
    /// How deep lists and objects are nested in it; 0 for neither.
    pub nesting: usize,
}

/// Measures a value.
pub fn value_size(value: &Value) -> ValueSize {
    let own = |bytes| ValueSize { values: 1, bytes, nesting: 0 };
    let with = |all: ValueSize, key: &str, value: &Value| {
        let ValueSize { values, bytes, nesting } = value_size(value);
        ValueSize {
            values: all.values + values,
            bytes: all.bytes + key.len() + bytes,
            nesting: all.nesting.max(nesting + 1),
        }
    };
    match value {
        Value::String(text) => own(text.len()),
        Value::Array(items) => items.iter().fold(own(0), |all, value| with(all, "", value)),
        Value::Object(map) => map.iter().fold(own(0), |all, (key, value)| with(all, key, value)),
        _ => own(0),
    }
}
