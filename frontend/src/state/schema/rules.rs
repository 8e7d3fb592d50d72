//! The checks of a text that the browser can make by its schema: length and format. It reports only what is certainly
//! wrong; the server decides. Patterns are left to the server, since a foreign regular expression could block the
//! browser for good.

use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextRules {
    min: u64,
    max: Option<u64>,
    format: String,
}

impl TextRules {
    pub fn of(schema: &Value) -> Self {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { min: count("minLength").unwrap_or(0), max: count("maxLength"), format }
    }

    /// The first mistake in a text; `None` if there is none.
    pub fn mistake(&self, text: &str) -> Option<String> {
        let count = text.chars().count() as u64;
        let characters = if count == 1 { "character" } else { "characters" };
        if count < self.min {
            return Some(format!("{count} {characters}; at least {}", self.min));
        }
        if let Some(max) = self.max.filter(|max| count > *max) {
            return Some(format!("{count} {characters}; at most {max}"));
        }
        lacks_format(&self.format, text).map(ToOwned::to_owned)
    }
}

/// What a text of this format looks like, if the text does not. `None` too for formats that cannot be checked without
/// doubt.
fn lacks_format(format: &str, text: &str) -> Option<&'static str> {
    let is_plain = !text.contains(char::is_whitespace);
    let (fits, expected) = match format {
        "email" => {
            let parts = text.rsplit_once('@').filter(|(name, host)| !name.is_empty() && !host.is_empty());
            (is_plain && parts.is_some(), "An e-mail address, such as ana@example.com")
        }
        "uri" => {
            let is_scheme = |scheme: &str| {
                scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
            };
            let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme));
            (is_plain && has_scheme, "A full address, such as https://example.com")
        }
        "date" => (is_date(text), "A date, such as 2026-11-20"),
        "uuid" => {
            let lengths = text.split('-').map(str::len);
            let is_hex = text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
            (lengths.eq([8, 4, 4, 4, 12]) && is_hex, "A UUID, such as 018f0000-0000-7000-8000-000000000001")
        }
        "ipv4" => (text.parse::<std::net::Ipv4Addr>().is_ok(), "An IPv4 address, such as 192.0.2.1"),
        _ => return None,
    };
    (!fits).then_some(expected)
}

/// Whether a date input can show this text; it would show anything else as empty.
pub fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == 3
        && parts.iter().zip([4, 2, 2]).all(|(part, len)| part.len() == len && part.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_length_of_a_text_is_checked_in_characters() {
        let rules = TextRules::of(&json!({ "minLength": 3, "maxLength": 5 }));
        assert_eq!(rules.mistake("äö").as_deref(), Some("2 characters; at least 3"));
        assert_eq!(rules.mistake("äöüäöü").as_deref(), Some("6 characters; at most 5"));
        assert_eq!(rules.mistake("äöü"), None);
        assert_eq!(
            TextRules::of(&json!({ "pattern": "^[0-9]+$" })).mistake("abc"),
            None,
            "that is for the server to say"
        );
    }

    #[test]
    fn only_what_is_certainly_no_such_text_is_refused() {
        for (format, good, bad) in [
            ("email", &["a@b", "ana.b+c@example.com"][..], &["ana", "@b", "a@", "a b@c"][..]),
            ("uri", &["https://example.com/a?b", "urn:x"], &["example.com", "://x", "a b:c"]),
            ("date", &["2026-11-20"], &["20.11.2026", "2026-11"]),
            ("uuid", &["018F0000-0000-7000-8000-000000000001"], &["018f", "018f0000-0000-7000-8000-00000000000x"]),
            ("ipv4", &["192.0.2.1"], &["192.0.2", "300.0.0.1"]),
            ("hostname", &["anything at all"], &[]),
        ] {
            let rules = TextRules::of(&json!({ "format": format }));
            assert!(good.iter().all(|text| rules.mistake(text).is_none()), "{format}");
            assert!(bad.iter().all(|text| rules.mistake(text).is_some()), "{format}");
        }
    }
}
