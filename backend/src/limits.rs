//! The size limits of values from outside: one bound for bodies, socket messages, answers of tools and models, results
//! of functions, and rendered templates. Everything within it can be stored, and read again; integers of more than 64
//! bits could not.

use serde_json::Value;
use shared::JsonMap;

/// The maximum depth of nested arrays and objects.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of values and keys.
pub const MAX_VALUES: usize = 100_000;
/// The maximum total length of texts and keys, in bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The maximum length of a handler's or guardrail's reason, in characters. Longer ones are cut: a reviewer reads it
/// beside everything else.
pub const MAX_REASON: usize = 2_000;

/// The limit that a value exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// It is nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH}")]
    Depth,
    /// It has more values and keys than [`MAX_VALUES`].
    #[error("more than {MAX_VALUES} values")]
    Values,
    /// Its texts and keys have more bytes than [`MAX_BYTES`].
    #[error("more than {MAX_BYTES} bytes of text")]
    Bytes,
}

/// Checks a value against the limits. Stops at the first level that is too deep, so no value can overflow the stack.
pub fn check(value: &Value) -> Result<(), Exceeded> {
    Size::default().value(value)
}

/// Checks the members of an object against the limits.
pub fn check_map(members: &JsonMap) -> Result<(), Exceeded> {
    Size::default().members(members, 0)
}

/// A running total, for several values that together must stay within the limits of one.
#[derive(Debug, Default)]
pub struct Size {
    values: usize,
    bytes: usize,
}

impl Size {
    /// Counts a value with everything in it.
    pub fn value(&mut self, value: &Value) -> Result<(), Exceeded> {
        self.below(value, 0)
    }

    /// Counts a text or a key.
    pub fn text(&mut self, text: &str) -> Result<(), Exceeded> {
        self.one()?;
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_BYTES { Err(Exceeded::Bytes) } else { Ok(()) }
    }

    /// Counts one value without its contents.
    pub fn one(&mut self) -> Result<(), Exceeded> {
        self.values += 1;
        if self.values > MAX_VALUES { Err(Exceeded::Values) } else { Ok(()) }
    }

    fn below(&mut self, value: &Value, depth: usize) -> Result<(), Exceeded> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.one(),
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                self.one()?;
                if depth >= MAX_DEPTH {
                    return Err(Exceeded::Depth);
                }
                items.iter().try_for_each(|item| self.below(item, depth + 1))
            }
            Value::Object(members) => {
                self.one()?;
                self.members(members, depth)
            }
        }
    }

    fn members(&mut self, members: &JsonMap, depth: usize) -> Result<(), Exceeded> {
        if depth >= MAX_DEPTH {
            return Err(Exceeded::Depth);
        }
        members.iter().try_for_each(|(key, member)| {
            self.text(key)?;
            self.below(member, depth + 1)
        })
    }
}

/// The message for an integer that [`long_integer`] finds.
pub const LONG_INTEGER: &str = "an integer of more than 64 bits cannot be kept exactly; write it as a text";

/// Returns the number of numbers before the first integer of more than 64 bits in a JSON text. Such an integer would be
/// read as a double, which changes its value. `None` if there is no such integer.
pub fn long_integer(json: &[u8]) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    let (mut numbers, mut rest) = (0, json);
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'"' => after_text(after),
            b'-' | b'0'..=b'9' => {
                let (number, after) = rest.split_at(rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len()));
                let number = str::from_utf8(number).unwrap_or_default();
                let is_integer = !number.contains(['.', 'e', 'E']);
                if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(numbers);
                }
                numbers += 1;
                after
            }
            _ => after,
        };
    }
    None
}

/// Returns what follows the closing quote of a string.
fn after_text(mut rest: &[u8]) -> &[u8] {
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'"' => return after,
            b'\\' => after.get(1..).unwrap_or_default(),
            _ => after,
        };
    }
    rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |value, level| if level % 2 == 0 { json!([value]) } else { json!({ "a": value }) })
    }

    #[test]
    fn each_limit_is_met_exactly() {
        assert_eq!(check(&nested(MAX_DEPTH)), Ok(()));
        assert_eq!(check(&nested(MAX_DEPTH + 1)), Err(Exceeded::Depth));
        assert_eq!(check(&nested(1_000)), Err(Exceeded::Depth));
        let map = |depth| nested(depth).as_object().cloned().expect("an even number of levels is an object");
        assert_eq!((check_map(&map(MAX_DEPTH)), check_map(&map(MAX_DEPTH + 2))), (Ok(()), Err(Exceeded::Depth)));
        assert_eq!(check(&json!(vec![0; MAX_VALUES - 1])), Ok(()));
        assert_eq!(check(&json!(vec![0; MAX_VALUES])), Err(Exceeded::Values));
        assert_eq!(check(&json!("x".repeat(MAX_BYTES))), Ok(()));
        assert_eq!(check(&json!({ "k": "x".repeat(MAX_BYTES) })), Err(Exceeded::Bytes));
    }
}
