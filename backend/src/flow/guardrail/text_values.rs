//! The texts in a value, which guardrails read and redact.

use std::borrow::Cow;
use std::ops::Range;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use shared::request::Request;

/// The replacement of what was found.
pub const REDACTED: &str = "[redacted]";
/// The maximum depth of JSON in texts within JSON.
const NESTED: usize = 8;

/// All texts that are searched. A command can be one text, or the words of a list.
#[derive(Debug, Default)]
pub struct Texts<'v>(pub Vec<Cow<'v, str>>);

impl<'v> Texts<'v> {
    /// Collects the texts of a value, including JSON in texts. `name` is the tool that gets the value.
    pub fn of(name: Option<&'v str>, value: &'v Value) -> Self {
        let mut texts = Self::default();
        texts.0.extend(name.map(Cow::Borrowed));
        texts.add(value, NESTED);
        if let (Some(name), Some(line)) = (name, line(value)) {
            texts.0.push(format!("{name} {line}").into());
        }
        texts
    }

    /// Collects what is searched in a value but cannot be redacted: its numbers and the names of its members.
    pub fn fixed(value: &'v Value) -> Self {
        let mut texts = Self::default();
        texts.add_fixed(value);
        texts
    }

    /// Adds the texts of a call's request. Secrets appear in it only by name.
    pub fn with_request(mut self, request: &'v Request) -> Self {
        if let Request::Http(http) = request {
            self.0.push(http.url.as_str().into());
            self.0.push(percent_decode_str(&http.url.replace('+', " ")).decode_utf8_lossy().into_owned().into());
            self.0.extend(http.headers.values().map(|value| Cow::Borrowed(value.as_str())));
            if let Some(body) = &http.body {
                self.add(body, NESTED);
            }
        }
        self.0.extend(request.text().map(Cow::Owned));
        self
    }

    fn add(&mut self, value: &'v Value, nested: usize) {
        match value {
            Value::String(text) => {
                self.0.push(text.as_str().into());
                if let Some(inner) = json(text, nested) {
                    self.0.extend(Texts::within(&inner, nested - 1));
                }
            }
            Value::Number(number) => self.0.push(number.to_string().into()),
            Value::Array(items) => items.iter().for_each(|item| self.add(item, nested)),
            Value::Object(members) => {
                for (key, member) in members {
                    self.0.push(key.as_str().into());
                    self.add(member, nested);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.0.extend(line(value).map(Cow::Owned));
    }

    fn add_fixed(&mut self, value: &'v Value) {
        match value {
            Value::Number(number) => self.0.push(number.to_string().into()),
            Value::Array(items) => items.iter().for_each(|item| self.add_fixed(item)),
            Value::Object(members) => {
                for (key, member) in members {
                    self.0.push(key.as_str().into());
                    self.add_fixed(member);
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }

    fn within(value: &Value, nested: usize) -> Vec<Cow<'v, str>> {
        let mut texts = Texts::default();
        texts.add(value, nested);
        texts.0.into_iter().map(|text| Cow::Owned(text.into_owned())).collect()
    }
}

/// Joins the values of a list or an object to a line of words, with the items of its lists last, as in `{"program":
/// "rm", "args": ["-rf", "/"]}`. `None` if it contains no words.
fn line(value: &Value) -> Option<String> {
    fn word(value: &Value) -> Option<Cow<'_, str>> {
        match value {
            Value::String(text) => Some(text.as_str().into()),
            Value::Number(number) => Some(number.to_string().into()),
            _ => None,
        }
    }
    let words: Vec<Cow<'_, str>> = match value {
        Value::Array(items) => items.iter().filter_map(word).collect(),
        Value::Object(members) => {
            let lists = members.values().filter_map(Value::as_array).flatten();
            members.values().chain(lists).filter_map(word).collect()
        }
        _ => return None,
    };
    (!words.is_empty()).then(|| words.join(" "))
}

/// Parses a text that is a JSON list or object.
fn json(text: &str, nested: usize) -> Option<Value> {
    let is_nested = nested > 0 && text.trim_start().starts_with(['{', '[']);
    is_nested.then(|| serde_json::from_str(text).ok()).flatten()
}

/// Replaces what `find` finds in the texts of a value, including JSON in texts, by `[redacted]`. `None` if nothing is
/// found. Numbers and keys stay as they are.
pub fn redact(value: &Value, find: &dyn Fn(&str) -> Vec<Range<usize>>) -> Option<Value> {
    redact_in(value, find, NESTED)
}

fn redact_in(value: &Value, find: &dyn Fn(&str) -> Vec<Range<usize>>, nested: usize) -> Option<Value> {
    match value {
        Value::String(text) => {
            let inner = json(text, nested).and_then(|inner| redact_in(&inner, find, nested - 1));
            let inner = inner.map(|inner| inner.to_string());
            let outer = redact_text(inner.as_deref().unwrap_or(text), find);
            outer.or(inner).map(Value::String)
        }
        Value::Array(items) => {
            let redacted: Vec<_> = items.iter().map(|item| redact_in(item, find, nested)).collect();
            let changed = redacted.iter().any(Option::is_some);
            let items = items.iter().zip(redacted).map(|(item, redacted)| redacted.unwrap_or_else(|| item.clone()));
            changed.then(|| items.collect())
        }
        Value::Object(members) => {
            let redacted: Vec<_> = members.values().map(|member| redact_in(member, find, nested)).collect();
            let changed = redacted.iter().any(Option::is_some);
            let members = members.iter().zip(redacted);
            let members = members.map(|((key, member), new)| (key.clone(), new.unwrap_or_else(|| member.clone())));
            changed.then(|| Value::Object(members.collect::<Map<_, _>>()))
        }
        _ => None,
    }
}

fn redact_text(text: &str, find: &dyn Fn(&str) -> Vec<Range<usize>>) -> Option<String> {
    let mut found = find(text);
    found.sort_by_key(|range| range.start);
    let (mut redacted, mut done) = (String::with_capacity(text.len()), 0);
    for range in &found {
        if range.start >= done {
            redacted.push_str(&text[done..range.start]);
            redacted.push_str(REDACTED);
        }
        done = done.max(range.end);
    }
    redacted.push_str(&text[done..]);
    (!found.is_empty()).then_some(redacted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_words_of_lists_and_of_json_in_texts_are_read_too() {
        let read = |name, value| Texts::of(name, &value).0.into_iter().map(Cow::into_owned).collect::<Vec<_>>();
        let has = |name, value, wanted: &str| {
            let texts = read(name, value);
            assert!(texts.iter().any(|text| text == wanted), "{wanted}: {texts:?}");
        };
        has(None, json!({ "a": [{ "b": "rm -rf /" }] }), "rm -rf /");
        has(None, json!(["rm", "-rf", "/"]), "rm -rf /");
        has(None, json!({ "args": ["-rf", "/"], "program": "rm" }), "rm -rf /");
        has(Some("rm"), json!({ "args": ["-rf", "/"] }), "rm -rf /");
        has(None, json!({ "body": "{\"command\":\"rm -rf \\u002f\"}" }), "rm -rf /");
        has(None, json!({ "n": 42, "deep": "[\"[\\\"x\\\"]\"]" }), "42");
        has(None, json!({ "n": 42, "deep": "[\"[\\\"x\\\"]\"]" }), "x");
        has(None, json!({ "4111": true }), "4111");
    }

    #[test]
    fn texts_are_redacted_and_nothing_else() {
        let find = |text: &str| text.match_indices("42").map(|(at, found)| at..at + found.len()).collect();
        let value = json!({ "a": ["4242", 42], "42": { "b": "x" }, "c": "{\"d\":\"\\u00342\"}" });
        let redacted = redact(&value, &find).expect("it has some");
        assert_eq!(
            redacted,
            json!({ "a": ["[redacted][redacted]", 42], "42": { "b": "x" }, "c": "{\"d\":\"[redacted]\"}" })
        );
        assert_eq!(redact(&json!({ "42": 42 }), &find), None);
        let overlapping = |_: &str| vec![1..3, 0..2];
        assert_eq!(redact(&json!("abcd"), &overlapping), Some(json!("[redacted]d")));
    }
}
