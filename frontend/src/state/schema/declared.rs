//! What the schema of an edited value leaves open, as the proposed value says it: there a number is a number too, so one
//! that cannot be read yet is known for one when the form is opened again, and is not sent.

use serde_json::{Value, json};
use shared::JsonMap;

use super::{Kind, has_alternatives, kind_of_value};

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
    match kind_of_value(value) {
        Kind::Number { integer, .. } => json!({ "type": if integer { "integer" } else { "number" } }),
        Kind::List { item, .. } if item == json!({ "type": "integer" }) => json!({ "type": "array", "items": item }),
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
    use super::super::unread_numbers;
    use super::*;

    #[test]
    fn a_number_is_one_also_where_no_schema_says_so() {
        let proposed = json!({ "amount": 12, "to": "ana", "rows": [1, 2], "deep": { "share": 0.5 }, "on": true });
        let typed =
            json!({ "amount": "12,50", "to": "12,50", "rows": [1, "2,"], "deep": { "share": "," }, "on": true });
        for schema in [None, Some(json!({})), Some(json!({ "type": "object", "properties": { "to": {} } }))] {
            let schema = declared(schema.as_ref(), &proposed);
            let unread = unread_numbers(&schema, &typed, "");
            let mut places: Vec<_> = unread.iter().map(|one| one.path.as_str()).collect();
            places.sort_unstable();
            assert_eq!(places, ["/amount", "/deep/share", "/rows/1"], "{schema}");
            assert!(unread_numbers(&schema, &proposed, "").is_empty());
        }
        let closed = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        assert_eq!(declared(Some(&closed), &proposed), closed, "the schema says what they are");
    }
}
