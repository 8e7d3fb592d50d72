//! The initial value of a form: what it shows, and what is sent, while nobody has changed it.

use serde_json::Value;
use shared::JsonMap;

use super::{Kind, Shape};

/// The maximum number of rows that a list starts with.
const MAX_ROWS: usize = 20;

/// The initial value of a form for `schema`: the defaults of its members. An optional object without a default of its
/// own is left out, with the defaults inside it, as the server leaves it out too. A form for any value starts as an
/// empty object.
pub fn initial(schema: &Value) -> Value {
    initial_at(schema, schema, true, 0).unwrap_or_else(|| Value::Object(JsonMap::new()))
}

/// The initial value of a field by `schema`, which is a part of `root`; `None` if the field is left out.
fn initial_at(root: &Value, schema: &Value, required: bool, depth: usize) -> Option<Value> {
    let shape = Shape::of(root, schema, None, depth);
    match shape.kind {
        _ if shape.default.is_some() => shape.default,
        _ if !required => None,
        Kind::Several(_) => Some(Value::Array(Vec::new())),
        Kind::List { item, min, .. } => {
            let row = || initial_row(root, &item, depth + 1);
            Some(Value::Array(std::iter::repeat_with(row).take(min.min(MAX_ROWS)).collect()))
        }
        Kind::Object(fields) => {
            let field = |(name, schema, required): (String, Value, bool)| {
                Some((name, initial_at(root, &schema, required, depth + 1)?))
            };
            Some(Value::Object(fields.into_iter().filter_map(field).collect()))
        }
        _ => None,
    }
}

/// The initial value of a new row of a list, which cannot be left out.
pub fn initial_row(root: &Value, item: &Value, depth: usize) -> Value {
    initial_at(root, item, true, depth).unwrap_or_else(|| Shape::of(root, item, None, depth).kind.blank())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_starts_with_the_defaults_of_what_is_sent() {
        let schema = json!({
            "type": "object", "required": ["approved", "page"],
            "properties": {
                "words": { "type": "integer", "default": 300 },
                "approved": { "type": "boolean" },
                "notify": { "type": "boolean", "default": false },
                "page": { "type": "object", "properties": { "size": { "enum": ["a4"], "default": "a4" } } },
                "layout": { "type": "object", "properties": { "size": { "enum": ["a4"], "default": "a4" } } },
                "author": { "type": "object", "default": { "name": "Ana" } },
            },
        });
        let starts = json!({ "words": 300, "notify": false, "page": { "size": "a4" }, "author": { "name": "Ana" } });
        assert_eq!(initial(&schema), starts, "nobody has said `approved` or begun `layout`");
    }

    #[test]
    fn references_are_followed() {
        let size = json!({ "type": "object", "properties": { "width": { "type": "integer", "default": 3 } } });
        let schema = json!({
            "$defs": { "size": size, "form": { "type": "object", "required": ["size", "other"], "properties": {
                "size": { "$ref": "#/$defs/size" }, "other": { "allOf": [{ "$ref": "#/$defs/size" }], "default": { "width": 4 } },
            } } },
            "$ref": "#/$defs/form",
        });
        assert_eq!(initial(&schema), json!({ "size": { "width": 3 }, "other": { "width": 4 } }));
    }

    #[test]
    fn a_list_that_is_required_starts_with_its_least_rows() {
        let item = json!({ "type": "string" });
        let people =
            json!({ "type": "array", "minItems": 1, "items": { "type": "object", "properties": { "name": {} } } });
        let schema = json!({
            "type": "object", "required": ["languages", "people"],
            "properties": {
                "languages": { "type": "array", "items": item, "minItems": 2 },
                "more": { "type": "array", "items": item, "minItems": 2 },
                "people": people,
            },
        });
        assert_eq!(initial(&schema), json!({ "languages": ["", ""], "people": [{}] }));
    }

    #[test]
    fn a_form_for_any_value_starts_as_an_empty_object() {
        for schema in [json!({}), json!({ "type": "object" }), json!({ "$ref": "#" })] {
            assert_eq!(initial(&schema), json!({}));
        }
    }
}
