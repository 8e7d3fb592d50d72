//! Targets for the answers of tools and models, and for audit exports to be verified.

use backend::audit::{Trusted, verify_file};
use backend::fuzzing;
use serde_json::{Value, json};

use crate::text;

/// Reads the answer of a tool over HTTP and as an MCP result. Every accepted value must survive being stored.
pub fn tool_answer(data: &[u8]) {
    for value in fuzzing::tool_answers(data) {
        can_be_stored(&value);
    }
}

/// Reads the answer of a model as arguments of a tool call and as structured output. Every accepted value must survive
/// being stored.
pub fn model_answer(data: &[u8]) {
    let Some(answer) = text(data) else { return };
    let schema = json!({
        "type": "object", "required": ["approved"],
        "properties": { "approved": { "type": "boolean" }, "confidence": { "type": "number" } },
    });
    for value in fuzzing::model_answers(answer, &schema) {
        can_be_stored(&value);
    }
}

/// Verifies an audit export in JSON lines, without trusted keys.
pub fn audit_export(data: &[u8]) {
    let trusted = Trusted::named(&[]).expect("no keys");
    verify_file(data, &trusted, None).expect("memory can be read");
}

/// Checks that a value is the same after it was written and read as JSON, some levels deep, as it lies in a run's
/// state.
fn can_be_stored(value: &Value) {
    const WRAPPED: usize = 16;
    let mut wrapped = value.clone();
    for _ in 0..WRAPPED {
        wrapped = json!([wrapped]);
    }
    let stored = serde_json::to_string(&wrapped).expect("a value can be stored");
    let read: Value = serde_json::from_str(&stored).expect("a stored value can be read");
    assert_eq!(read, wrapped, "a stored value is the same when it is read");
}
