//! Reading JSON Schemas for forms, in the console and in the terminal.

use serde_json::Value;

/// The maximum number of references that are followed to find a schema.
const MAX_REFERENCES: usize = 16;

/// Follows `$ref` inside the document, and `allOf` with a single schema.
pub fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MAX_REFERENCES {
        let next = if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
        } else {
            schema.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1).map(|all| &all[0])
        };
        match next {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_and_circles_end() {
        let root = json!({
            "$defs": { "size": { "type": "integer" }, "alias": { "$ref": "#/$defs/size" }, "round": { "$ref": "#/$defs/round" } },
        });
        let of = |schema: &Value| resolve(&root, schema).clone();
        assert_eq!(of(&json!({ "allOf": [{ "$ref": "#/$defs/alias" }] })), json!({ "type": "integer" }));
        for schema in [
            json!({ "allOf": [{ "type": "integer" }, { "minimum": 1 }] }),
            json!({ "$ref": "#/$defs/none" }),
            json!({ "$ref": "https://example.com" }),
            json!({ "$ref": "#/$defs/round" }),
        ] {
            assert_eq!(of(&schema), schema);
        }
    }
}
