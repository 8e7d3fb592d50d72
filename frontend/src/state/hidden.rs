//! Hidden characters: how many a value has, the value without them, and a text that names them.

use serde_json::Value;
use shared::invisible_characters::{count, replaced};

/// Counts the hidden characters in all strings of a value.
pub fn hidden_in(value: &Value) -> usize {
    match value {
        Value::String(text) => count(text),
        Value::Array(rows) => rows.iter().map(hidden_in).sum(),
        Value::Object(fields) => fields.values().map(hidden_in).sum(),
        _ => 0,
    }
}

pub fn without_hidden(text: &str) -> String {
    replaced(text, |_, _| String::new())
}

/// Removes the hidden characters from all strings of a value.
pub fn remove_hidden(value: &mut Value) {
    match value {
        Value::String(text) if count(text) > 0 => *text = without_hidden(text),
        Value::Array(rows) => rows.iter_mut().for_each(remove_hidden),
        Value::Object(fields) => fields.values_mut().for_each(remove_hidden),
        _ => {}
    }
}

/// A text with its hidden characters named in brackets, for places without elements: a tooltip, an option of a menu,
/// the title of the tab.
pub fn named(text: &str) -> String {
    replaced(text, |_, name| format!("[{name}]"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_but_what_is_hidden_is_taken_out() {
        let mut value = json!({ "to": "a\u{202e}b", "rows": ["\u{200b}", "plain\n", 5, null] });
        assert_eq!(hidden_in(&value), 2);
        remove_hidden(&mut value);
        assert_eq!((hidden_in(&value), value), (0, json!({ "to": "ab", "rows": ["", "plain\n", 5, null] })));
    }

    #[test]
    fn no_hidden_character_is_left_where_only_text_can_be() {
        assert_eq!(named("Approve\u{202e}tcejeR"), "Approve[RLO]tcejeR");
        assert_eq!(named("Approve"), "Approve");
    }
}
