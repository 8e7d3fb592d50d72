//! Makes untrusted text harmless for a terminal: characters that would move the cursor, or colour, hide or reverse
//! text, are shown by name.

use std::fmt::Write as _;

use serde_json::Value;
use shared::invisible_characters::replaced;

/// Returns the text as one harmless line, in which line breaks are shown by name too.
pub fn line(text: &str) -> String {
    lines(text).join("‹U+000A›")
}

/// Splits the text into harmless lines.
pub fn lines(text: &str) -> Vec<String> {
    text.replace("\r\n", "\n").split('\n').map(inert).collect()
}

/// Returns the harmless lines with a bar before each, so that none can be mistaken for the menu.
pub fn barred(text: &str) -> String {
    lines(text).iter().fold(String::new(), |all, line| all + format!(" | {line}").trim_end() + "\n")
}

/// Formats a value for people: text as it is, null as `(nothing yet)`, and everything else as JSON. The result is not
/// harmless yet.
pub fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "(nothing yet)".to_owned(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// Formats a value as JSON with hidden characters escaped: programs read the same value, and a terminal shows it
/// safely.
pub fn json(value: &impl serde::Serialize) -> String {
    escaped(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Like [`json`], in one line.
pub fn json_line(value: &impl serde::Serialize) -> String {
    escaped(&serde_json::to_string(value).unwrap_or_default())
}

fn escaped(text: &str) -> String {
    replaced(text, |c, _| {
        let mut escape = String::new();
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(escape, "\\u{unit:04x}");
        }
        escape
    })
}

fn inert(text: &str) -> String {
    replaced(text, |_, name| format!("‹{name}›"))
}
