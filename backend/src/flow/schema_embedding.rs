//! Puts a JSON Schema into another one. References are relative to the root of a schema, so they are rewritten: the
//! schema means in its new place what it meant alone.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use shared::error::pointer;

use super::schema_work::REFERENCES;
use super::stack::on_large_stack;

/// Keywords whose value is a map of schemas by name. A name may be that of a keyword.
const MAPS: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Keywords whose value is data, which may look like a schema.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "required"];
/// What a JSON pointer may contain in a reference besides letters and digits.
const IN_REFERENCE: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'$').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Puts `schema` into the map `keyword` of `outer`, under `name`. `outer` becomes a schema of the same dialect.
pub fn embed(outer: &mut Value, keyword: &str, name: &str, schema: &Value) {
    let place = reference(&pointer([keyword, name]));
    let mut inner = on_large_stack(|| moved(schema, &place, &place));
    if let Some(dialect) = inner.as_object_mut().and_then(|inner| inner.remove("$schema")) {
        outer["$schema"] = dialect;
    }
    outer[keyword][name] = inner;
}

/// Returns a reference to the part of a schema at a JSON pointer.
pub fn reference(pointer: &str) -> String {
    format!("#{}", utf8_percent_encode(pointer, IN_REFERENCE))
}

/// Whether a schema refers to any schema.
pub fn has_references(schema: &Value) -> bool {
    on_large_stack(|| refers(schema))
}

fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(keyword, value)| match keyword.as_str() {
            of if REFERENCES.contains(&of) && value.is_string() => true,
            of if DATA.contains(&of) => false,
            of if MAPS.contains(&of) => value.as_object().is_some_and(|map| map.values().any(refers)),
            _ => refers(value),
        }),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// Returns a schema as it is written at `place`, if its references begin at `root`; both are references. A part with an
/// `$id` is a root of its own: references in it begin at its place, and the `$id` itself is left out, since nothing may
/// refer to it.
fn moved(schema: &Value, root: &str, place: &str) -> Value {
    let below = |name: &str| format!("{place}{}", utf8_percent_encode(&pointer([name]), IN_REFERENCE));
    match schema {
        Value::Object(members) => {
            let is_root = members.get("$id").and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'));
            let root = if is_root { place } else { root };
            let member = |(keyword, value): (&String, &Value)| {
                let value = match (keyword.as_str(), value) {
                    ("$id", _) if is_root => return None,
                    (of, Value::String(target)) if REFERENCES.contains(&of) => target_moved(target, root).into(),
                    (of, _) if DATA.contains(&of) => value.clone(),
                    (of, Value::Object(map)) if MAPS.contains(&of) => {
                        let place = |name: &str| {
                            format!("{}{}", below(of), utf8_percent_encode(&pointer([name]), IN_REFERENCE))
                        };
                        map.iter().map(|(name, schema)| (name.clone(), moved(schema, root, &place(name)))).collect()
                    }
                    (of, _) => moved(value, root, &below(of)),
                };
                // As a schema of its own, this one was what `#` means; here, that would be the whole schema.
                let keyword = if keyword == "$recursiveRef" { "$ref" } else { keyword };
                Some((keyword.to_owned(), value))
            };
            Value::Object(members.iter().filter_map(member).collect())
        }
        Value::Array(items) => {
            let item = |(index, item): (usize, &Value)| moved(item, root, &below(&index.to_string()));
            items.iter().enumerate().map(item).collect()
        }
        other => other.clone(),
    }
}

/// Returns a reference that begins at `root`. A reference to an anchor is found wherever it is.
fn target_moved(target: &str, root: &str) -> String {
    match target.strip_prefix('#') {
        Some(place) if place.is_empty() || place.starts_with('/') => format!("{root}{place}"),
        _ => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flow::check_value;

    /// Checks a value alone, and as a member in another schema.
    fn agree(schema: &Value, value: &Value) -> bool {
        let mut outer = json!({ "type": "object", "properties": {}, "$defs": { "item": { "const": "another" } } });
        embed(&mut outer, "properties", "an/answer", schema);
        let alone = check_value(schema, value, "").is_empty();
        let inside = check_value(&outer, &json!({ "an/answer": value }), "");
        assert_eq!(alone, inside.is_empty(), "{value} in {outer}: {inside:?}");
        alone
    }

    #[test]
    fn a_schema_means_the_same_in_its_new_place() {
        let tree = json!({
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": { "name": { "$ref": "#/$defs/item" }, "parts": { "type": "array", "items": { "$ref": "#" } } },
            "$defs": { "item": { "type": "string" } },
        });
        assert!(agree(&tree, &json!({ "name": "a", "parts": [{ "name": "b", "parts": [] }] })));
        assert!(!agree(&tree, &json!({ "name": "a", "parts": [{ "name": 1 }] })));
        let anchored = json!({
            "properties": { "a": { "$ref": "#text" }, "b": { "$dynamicRef": "#/$defs/x%20y" } },
            "$defs": { "t": { "$anchor": "text", "type": "string" }, "x y": { "type": "integer" } },
        });
        assert!(agree(&anchored, &json!({ "a": "a", "b": 1 })));
        assert!(!agree(&anchored, &json!({ "a": 1, "b": 1 })) && !agree(&anchored, &json!({ "a": "a", "b": "b" })));
    }

    #[test]
    fn a_schema_keeps_its_dialect_and_loses_its_name() {
        let old = json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.com/pair",
            "definitions": { "text": { "type": "string" } },
            "items": [{ "$ref": "#/definitions/text" }, { "type": "integer" }], "additionalItems": false,
        });
        assert!(agree(&old, &json!(["a", 1])));
        assert!(!agree(&old, &json!([1, 1])) && !agree(&old, &json!(["a", 1, 2])));
    }

    #[test]
    fn data_and_names_that_look_like_references_stay_as_they_are() {
        let named = json!({
            "properties": { "$ref": { "type": "string" }, "const": { "$ref": "#/$defs/data" } },
            "$defs": { "data": { "const": { "$ref": "#/x" } } },
        });
        assert!(agree(&named, &json!({ "$ref": "#", "const": { "$ref": "#/x" } })));
        assert!(!agree(&named, &json!({ "$ref": 1 })) && !agree(&named, &json!({ "const": {} })));
        assert!(has_references(&named));
        assert!(!has_references(&json!({ "properties": { "$ref": { "const": { "$ref": "#/x" } } } })));
        assert!(agree(&json!(true), &json!(1)) && !agree(&json!(false), &json!(1)));
    }
}
