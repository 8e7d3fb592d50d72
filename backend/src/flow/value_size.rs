//! The size of a value, which limits its repetition by aliases and its checks against schemas.

use serde_json::Value;

/// The size of a value.
#[derive(Debug, Clone, Copy, Default)]
pub struct ValueSize {
    /// The number of values, including itself.
    pub values: usize,
    /// The total length of texts and keys, in bytes.
    pub bytes: usize,
    /// The depth of nested lists and objects; 0 for other values.
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
