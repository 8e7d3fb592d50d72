//! What the schema of an edited value leaves open, as the proposed value says it: there a number is a number too, so one
//! that cannot be read yet is known for one when the form is opened again, and is not sent. Any other text may take its
//! place, since nothing forbids it.

use serde_json::{Value, json};
use shared::JsonMap;

use super::{Kind, has_alternatives, kind_of_value};

/// The comment in a schema that says what the proposed value is, and not what another one has to be.
const DERIVED: &str = "derived from the proposed value";

/// Whether a schema for a number comes from the proposed value, not from the flow.
pub fn is_derived(schema: &Value) -> bool {
    schema.get("$comment").and_then(Value::as_str) == Some(DERIVED)
}

/// Whether a text looks like a number that is being typed.
pub fn looks_like_number(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_digit() || letter.is_whitespace() || "+-.,eE".contains(letter);
    !text.is_empty() && text.chars().all(is_part)
}

/// The schema of an edit of the `proposed` value: `schema`, with the members that it does not declare.
pub fn declared(schema: Option<&Value>, proposed: &Value) -> Value {
    let Some(schema) = schema else { return of_value(proposed) };
    let Value::Object(members) = proposed else { return schema.clone() };
    let is_open = schema.get("type").is_none_or(|declared| declared == "object")
        && !has_alternatives(schema)
        && !["$ref", "enum", "const"].iter().any(|key| schema.get(key).is_some())
        && !schema.get("additionalProperties").is_some_and(Value::is_object);
    let mut whole = schema.clone();
    let Some(object) = whole.as_object_mut().filter(|_| is_open && !members.is_empty()) else { return whole };
    let Some(known) = object.entry("properties").or_insert_with(|| json!({})).as_object_mut() else { return whole };
    for (name, value) in members {
        known.entry(name.clone()).or_insert_with(|| of_value(value));
    }
    whole
}

/// A schema for a value without one, with its numbers; anything else is left open.
fn of_value(value: &Value) -> Value {
    let number = |integer: bool| json!({ "type": if integer { "integer" } else { "number" }, "$comment": DERIVED });
    match kind_of_value(value) {
        Kind::Number { integer, .. } => number(integer),
        Kind::List { item, .. } if item == json!({ "type": "integer" }) => {
            json!({ "type": "array", "items": number(true) })
        }
        Kind::Object(_) => {
            let members = value.as_object().into_iter().flatten();
            let properties: JsonMap = members.map(|(name, value)| (name.clone(), of_value(value))).collect();
            json!({ "properties": properties })
        }
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::super::unparsed_numbers;
    use super::*;

    #[test]
    fn a_number_is_one_also_where_no_schema_says_so() {
        let proposed = json!({ "amount": 12, "to": "ana", "rows": [1, 2], "deep": { "share": 0.5 }, "on": true });
        let typed =
            json!({ "amount": "12,50", "to": "12,50", "rows": [1, "2,"], "deep": { "share": "," }, "on": true });
        for schema in [None, Some(json!({})), Some(json!({ "type": "object", "properties": { "to": {} } }))] {
            let schema = declared(schema.as_ref(), &proposed);
            let unparsed = unparsed_numbers(&schema, &typed, "");
            let mut places: Vec<_> = unparsed.iter().map(|one| one.path.as_str()).collect();
            places.sort_unstable();
            assert_eq!(places, ["/amount", "/deep/share", "/rows/1"], "{schema}");
            assert!(unparsed_numbers(&schema, &proposed, "").is_empty());
        }
        let closed = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        assert_eq!(declared(Some(&closed), &proposed), closed, "the schema says what they are");
    }

    #[test]
    fn where_no_schema_says_so_a_number_may_become_text() {
        let proposed = json!({ "limit": 10, "rows": [1] });
        let places = |schema: Option<Value>, value: Value| {
            let unparsed = unparsed_numbers(&declared(schema.as_ref(), &proposed), &value, "");
            unparsed.into_iter().map(|one| one.path).collect::<Vec<_>>()
        };
        let text = json!({ "limit": "none", "rows": ["all", ""] });
        assert_eq!(places(None, text.clone()), [""; 0]);
        let typed = json!({ "limit": "- 1,5e", "rows": ["2."] });
        assert_eq!(places(None, typed), ["/limit", "/rows/0"]);
        let of_the_flow = json!({ "type": "object", "properties": { "limit": { "type": "integer" } } });
        assert_eq!(places(Some(of_the_flow), text), ["/limit"]);
    }
}
