//! Limits on how much a page lays out and how much can be sent. Larger values are shown as plain text, which browsers
//! display at once, and what cannot be sent is not offered.

use serde_json::Value;
use shared::api::MAX_BODY;

/// The largest number of values in a document that is laid out as a tree, a table or lines.
pub const MAX_LAID_OUT: usize = 4000;
/// The largest number of values in a document that is edited in a form with fields.
pub const MAX_FIELDS: usize = 500;
/// The bytes reserved in a request for everything but its values.
const ENVELOPE: usize = 16 * 1024;

/// Whether a value consists of more than `most` values, including itself and nested ones.
pub fn has_more_than(value: &Value, most: usize) -> bool {
    let mut open = vec![value];
    let mut parts = 0;
    while let Some(value) = open.pop() {
        parts += 1;
        if parts > most {
            return true;
        }
        match value {
            Value::Array(entries) => open.extend(entries),
            Value::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    false
}

/// Why a value cannot be edited here: a request with it would be too large. `None` if it can.
pub fn too_large_to_send(value: &Value) -> Option<String> {
    let length = serde_json::to_string(value).map_or(0, |text| text.len());
    (length + ENVELOPE > MAX_BODY).then(|| {
        format!(
            "This is {}, and a decision carries at most {}. It cannot be edited here: ask for changes instead.",
            bytes(length),
            bytes(MAX_BODY)
        )
    })
}

/// Formats a size in bytes: `3.4 MB`, `16 KB`.
pub fn bytes(length: usize) -> String {
    if length < 1 << 20 {
        return format!("{} KB", length.div_ceil(1 << 10));
    }
    let tenths = length * 10 / (1 << 20);
    if tenths.is_multiple_of(10) {
        format!("{} MB", tenths / 10)
    } else {
        format!("{}.{} MB", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_counted_at_every_depth() {
        let value = json!({ "a": [1, 2, { "b": 3 }], "c": "text" });
        assert!(has_more_than(&value, 6) && !has_more_than(&value, 7));
    }

    #[test]
    fn what_a_request_cannot_carry_is_said_with_both_sizes() {
        assert_eq!(too_large_to_send(&json!("a".repeat(900_000))), None);
        let reason = too_large_to_send(&json!("a".repeat(3_600_000))).expect("too large");
        assert!(reason.starts_with("This is 3.4 MB, and a decision carries at most 1 MB."), "{reason}");
        assert_eq!(bytes(5000), "5 KB");
    }
}
