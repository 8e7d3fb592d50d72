//! Numbers that were typed and cannot be read: drafts keep each as text in the place of the number, and nothing sends it.

use serde_json::Value;
use shared::error::{Mistake, pointer};

use super::number::parse_number;
use super::{Kind, Shape};

/// The texts in a value where its schema wants a number, as mistakes. `place` is the JSON pointer of the value.
pub fn unparsed_numbers(schema: &Value, value: &Value, place: &str) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    collect(schema, schema, value, 0, place, &mut mistakes);
    mistakes
}

fn collect(root: &Value, schema: &Value, value: &Value, depth: usize, place: &str, mistakes: &mut Vec<Mistake>) {
    // Only these can have text in place of a number.
    if !matches!(value, Value::String(_) | Value::Array(_) | Value::Object(_)) {
        return;
    }
    match (Shape::of(root, schema, Some(value), depth).kind, value) {
        (Kind::Number { integer, min, max }, Value::String(text)) => {
            if let Err(says) = parse_number(text.trim(), integer, min.as_ref(), max.as_ref()) {
                mistakes.push(Mistake::new(place, "invalid", says));
            }
        }
        (Kind::List { item, .. }, Value::Array(rows)) => {
            for (at, row) in rows.iter().enumerate() {
                collect(root, &item, row, depth + 1, &format!("{place}/{at}"), mistakes);
            }
        }
        (Kind::Object(fields), Value::Object(members)) => {
            for (name, schema, _) in &fields {
                if let Some(member) = members.get(name) {
                    let place = format!("{place}{}", pointer([name.as_str()]));
                    collect(root, schema, member, depth + 1, &place, mistakes);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_in_place_of_a_number_is_found_wherever_it_is() {
        let price = json!({ "type": "number", "maximum": 100 });
        let schema = json!({ "type": "object", "properties": {
            "price": price, "note": { "type": "string" },
            "rows": { "type": "array", "items": { "type": "object", "properties": { "words": { "type": "integer" } } } },
        } });
        let places = |value: Value| {
            let mistakes = unparsed_numbers(&schema, &value, "/edits/offer");
            mistakes.into_iter().map(|one| one.path).collect::<Vec<_>>()
        };
        assert_eq!(
            places(json!({ "price": "12,50", "note": "12,50", "rows": [{ "words": 1 }, { "words": "1.5" }] })),
            ["/edits/offer/price", "/edits/offer/rows/1/words"]
        );
        assert_eq!(places(json!({ "price": "101" })), ["/edits/offer/price"], "one out of its limits was typed, too");
        assert_eq!(places(json!({ "price": 12.5, "note": "", "rows": [], "extra": "1,2" })), [""; 0]);
    }
}
