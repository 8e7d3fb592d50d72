//! The measures of encoded JSON, found without parsing it.

use super::super::Error;
use super::MAX_STORED_DEPTH;

/// The measures of encoded JSON.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// The length of the longest string in bytes, quotes included.
    pub longest_string: usize,
    /// The depth to which arrays and objects are nested.
    pub depth: usize,
}

impl Shape {
    /// Measures encoded JSON. Returns [`Error::TooDeep`] if it is nested too deeply to be read back.
    pub fn checked(text: &str) -> Result<Self, Error> {
        let shape = Self::of(text);
        if shape.depth > MAX_STORED_DEPTH { Err(Error::TooDeep) } else { Ok(shape) }
    }

    pub fn of(text: &str) -> Self {
        let (mut shape, mut at, mut open) = (Self::default(), 0, 0_usize);
        let text = text.as_bytes();
        while let Some(byte) = text.get(at) {
            match byte {
                b'"' => {
                    let size = length_of_string(&text[at..]);
                    shape.longest_string = shape.longest_string.max(size);
                    at += size;
                    continue;
                }
                b'[' | b'{' => {
                    open += 1;
                    shape.depth = shape.depth.max(open);
                }
                b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        shape
    }
}

/// The length of the string at the start of this JSON, quotes included.
fn length_of_string(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(next) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += next;
        if text[at] == b'"' {
            return at + 1;
        }
        // A character after a backslash never ends the string.
        at += 2;
    }
    text.len()
}
