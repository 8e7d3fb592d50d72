//! The measures of encoded JSON, found without parsing it.

use super::super::Error;
use super::{MAX_STORED_DEPTH, SCALAR};

/// The measures of encoded JSON.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// The length of the longest string in bytes, quotes included.
    pub longest_string: usize,
    /// The length of the longest container that is inside of the outer levels. It is at least the length by which
    /// containers are replaced.
    pub longest_container: usize,
    /// The depth to which arrays and objects are nested.
    pub depth: usize,
}

impl Shape {
    /// Measures encoded JSON, with this many outer levels. Returns [`Error::TooDeep`] if it is nested too deeply to be
    /// read back.
    pub fn checked(text: &str, outer: usize) -> Result<Self, Error> {
        let shape = Self::of(text, outer);
        if shape.depth > MAX_STORED_DEPTH { Err(Error::TooDeep) } else { Ok(shape) }
    }

    pub fn of(text: &str, outer: usize) -> Self {
        let (mut shape, mut at, mut length) = (Self::default(), 0, 0);
        // The lengths before the containers that are open.
        let mut open = Vec::new();
        let text = text.as_bytes();
        while let Some(byte) = text.get(at) {
            let (size, counted) = match byte {
                b'"' => {
                    let size = length_of_string(&text[at..]);
                    shape.longest_string = shape.longest_string.max(size);
                    (size, size)
                }
                b'[' | b'{' => {
                    open.push(length);
                    shape.depth = shape.depth.max(open.len());
                    // A comma is counted after the last part too.
                    (1, 2)
                }
                b']' | b'}' => {
                    if let Some(before) = open.pop()
                        && open.len() >= outer
                    {
                        shape.longest_container = shape.longest_container.max(length + 1 - before);
                    }
                    (1, 1)
                }
                b',' | b':' => (1, 1),
                _ => {
                    let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}');
                    let size = text[at..].iter().position(ends).unwrap_or(text.len() - at);
                    (size, size.max(SCALAR))
                }
            };
            at += size;
            length += counted;
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
