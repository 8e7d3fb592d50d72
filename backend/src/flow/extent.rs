//! How large a value is: what counts when a file repeats it.

use serde_json::Value;

/// How large a value is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extent {
    /// Itself and everything in it.
    pub values: usize,
    /// Of texts and keys.
    pub bytes: usize,
    /// How deep lists and objects are nested in it; 0 for neither.
    pub nesting: usize,
}

/// Measures a value.
pub fn extent(value: &Value) -> Extent {
    let own = |bytes| Extent { values: 1, bytes, nesting: 0 };
    let with = |all: Extent, key: &str, value: &Value| {
        let Extent { values, bytes, nesting } = extent(value);
        Extent {
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
