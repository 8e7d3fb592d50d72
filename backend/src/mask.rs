//! Finds secrets in texts, in any form: as they are, in other letter case, escaped (JSON, percent encoding,
//! HTML), in hex or base64, or with white space in between.
//!
//! Escapes are decoded layer by layer, and the original position of each byte is kept. Each layer is searched for all
//! forms of the secrets, and matches are masked in the original text. Two layers of any kind are decoded, and three of
//! JSON, as in JSON in a text in JSON.

use std::fmt;
use std::ops::Range;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Decodes an escape at the beginning of a text: returns its length and its meaning.
type ReadEscape = fn(&[u8]) -> Option<(usize, Means)>;

/// The replacement of a secret.
pub const MASK: &str = "***";
/// Secrets shorter than this, in bytes, are searched only as they are: their other forms would match everywhere.
const SHORTEST: usize = 4;
/// The minimum length, in bytes, of secrets that are also searched as base64 and with white space in between.
const SHORTEST_SPLIT: usize = 8;

/// A searcher for all forms of a set of secrets.
#[derive(Clone, Default)]
pub struct Mask {
    /// Forms that are compared without regard to case.
    any_case: Option<AhoCorasick>,
    /// The same forms without white space, searched in texts without white space.
    split: Option<AhoCorasick>,
    /// Base64 forms for the three possible alignments, searched in texts without white space.
    base64: Option<AhoCorasick>,
    /// The values of secrets that are numbers.
    numbers: Vec<f64>,
    /// The length of the longest usual form of a secret, in bytes.
    longest: usize,
}

impl Mask {
    /// Builds the searcher for these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut any_case, mut split, mut base64, mut numbers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut longest = 0;
        for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
            longest = longest.max(secret.len() * 3);
            any_case.push(secret.as_bytes().to_vec());
            if secret.len() < SHORTEST {
                continue;
            }
            any_case.push(hex::encode(secret).into_bytes());
            numbers.extend(secret.trim().parse::<f64>().ok().filter(|number| number.is_finite()));
            if secret.len() >= SHORTEST_SPLIT {
                split.push(without_space(secret.as_bytes()));
                split.push(hex::encode(secret).into_bytes());
                base64.extend(base64_forms(secret.as_bytes()));
            }
        }
        let find = |forms: Vec<Vec<u8>>, any_case: bool| {
            let forms: Vec<_> = forms.into_iter().filter(|form| !form.is_empty()).collect();
            let automaton = AhoCorasick::builder().ascii_case_insensitive(any_case).build(&forms);
            // Fails only if the forms need more than 2^31 states.
            automaton.ok().filter(|_| !forms.is_empty())
        };
        Self { any_case: find(any_case, true), split: find(split, true), base64: find(base64, false), numbers, longest }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.any_case.is_none()
    }

    /// The number of bytes at the end of an unfinished text that may be the beginning of a secret.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether a number is a secret or contains one.
    pub fn is_secret(&self, number: &serde_json::Number) -> bool {
        let same = |secret: &f64| number.as_f64().is_some_and(|number| number.to_bits() == secret.to_bits());
        self.numbers.iter().any(same) || !self.spans(&number.to_string()).is_empty()
    }

    /// Returns the text with every secret masked.
    pub fn text(&self, text: &str) -> String {
        self.beginning(text, text.len())
    }

    /// Returns the text up to `end` with every secret masked, also one that goes on after `end`.
    pub fn beginning(&self, text: &str, end: usize) -> String {
        let mut masked = String::with_capacity(end);
        let mut done = 0;
        for span in self.spans(text).into_iter().take_while(|span| span.start < end) {
            masked.push_str(&text[done..span.start]);
            masked.push_str(MASK);
            done = span.end;
        }
        masked.push_str(&text[done.min(end)..end]);
        masked
    }

    /// Returns the byte ranges of secrets in a text, in order and without overlaps.
    pub fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if self.is_empty() {
            return found;
        }
        self.search(&Layer::of(text), &[], &mut found);
        merged(text, found)
    }

    /// Searches a layer, and the layers that result from decoding its escapes. `undone` lists the kinds decoded so far.
    fn search(&self, layer: &Layer, undone: &[Escape], found: &mut Vec<Range<usize>>) {
        layer.find(self.any_case.as_ref(), false, found);
        if self.split.is_some() {
            let tight = layer.without_space();
            tight.find(self.split.as_ref(), false, found);
            tight.find(self.base64.as_ref(), true, found);
        }
        for escape in [Escape::Json, Escape::Percent, Escape::Html] {
            let undone = [undone, &[escape]].concat();
            let is_deep = undone.len() > 2 && undone != [Escape::Json; 3];
            if let Some(inner) = layer.unescaped(escape).filter(|_| !is_deep) {
                self.search(&inner, &undone, found);
            }
        }
    }
}

/// Shows nothing: the searchers hold the secrets.
impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").finish_non_exhaustive()
    }
}

/// Returns the part of the base64 encoding around a secret that depends on the secret alone, for each of the three
/// alignments and both alphabets.
fn base64_forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let bytes = [&[0; 2][..before.min(2)], secret].concat();
        // Each character encodes six bits. Characters with bits of the neighbours are left out.
        let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            forms.extend(encoded.get(first..last).map(|form| form.as_bytes().to_vec()));
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

fn without_space(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// A text with some of its escapes decoded, and the range in the original text that each byte comes from.
struct Layer {
    bytes: Vec<u8>,
    places: Vec<(u32, u32)>,
}

impl Layer {
    fn of(text: &str) -> Self {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let places = (0..text.len()).map(|at| (place(at), place(at + 1))).collect();
        Self { bytes: text.as_bytes().to_vec(), places }
    }

    fn find(&self, forms: Option<&AhoCorasick>, is_base64: bool, found: &mut Vec<Range<usize>>) {
        let Some(forms) = forms else { return };
        for hit in forms.find_overlapping_iter(&self.bytes) {
            let (mut start, mut end) = (hit.start(), hit.end());
            if is_base64 {
                // The adjacent characters may encode a part of the secret.
                let is_one = |at: usize| {
                    self.bytes.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte))
                };
                start -= usize::from(start > 0 && is_one(start - 1));
                end += usize::from(is_one(end));
            }
            if start < end {
                found.push(self.places[start].0 as usize..self.places[end - 1].1 as usize);
            }
        }
    }

    fn without_space(&self) -> Self {
        let kept = || self.bytes.iter().zip(&self.places).filter(|(byte, _)| !byte.is_ascii_whitespace());
        Self { bytes: kept().map(|(byte, _)| *byte).collect(), places: kept().map(|(_, place)| *place).collect() }
    }

    /// Returns the layer with one kind of escape decoded. `None` if it contains no such escape.
    fn unescaped(&self, escape: Escape) -> Option<Self> {
        let (mark, read): (_, ReadEscape) = match escape {
            Escape::Json => (b'\\', json_escape),
            Escape::Percent => (b'%', percent_escape),
            Escape::Html => (b'&', html_escape),
        };
        if !self.bytes.contains(&mark) {
            return None;
        }
        let mut inner =
            Self { bytes: Vec::with_capacity(self.bytes.len()), places: Vec::with_capacity(self.bytes.len()) };
        let mut at = 0;
        let mut any = false;
        while let Some(&byte) = self.bytes.get(at) {
            let escape = if byte == mark { read(&self.bytes[at..]) } else { None };
            let (length, means) = escape.unwrap_or((1, Means::Byte(byte)));
            any |= escape.is_some();
            let place = (self.places[at].0, self.places[at + length - 1].1);
            match means {
                Means::Byte(byte) => {
                    inner.bytes.push(byte);
                    inner.places.push(place);
                }
                Means::Char(one) => {
                    let mut buffer = [0; 4];
                    let bytes = one.encode_utf8(&mut buffer).as_bytes();
                    inner.bytes.extend_from_slice(bytes);
                    inner.places.extend(std::iter::repeat_n(place, bytes.len()));
                }
            }
            at += length;
        }
        any.then_some(inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    Json,
    Percent,
    Html,
}

#[derive(Clone, Copy)]
enum Means {
    Byte(u8),
    Char(char),
}

fn json_escape(text: &[u8]) -> Option<(usize, Means)> {
    let byte = match text.get(1)? {
        same @ (b'"' | b'\\' | b'/' | b'\'') => *same,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'u' => {
            let high = hex_number(text.get(2..6)?)?;
            let low = || {
                let low = text.get(6..12)?.strip_prefix(b"\\u")?;
                hex_number(low).filter(|low| (0xdc00..0xe000).contains(low))
            };
            if (0xd800..0xdc00).contains(&high) {
                let both = 0x1_0000 + ((high - 0xd800) << 10) + (low()? - 0xdc00);
                return Some((12, Means::Char(char::from_u32(both)?)));
            }
            return Some((6, Means::Char(char::from_u32(high)?)));
        }
        _ => return None,
    };
    Some((2, Means::Byte(byte)))
}

fn percent_escape(text: &[u8]) -> Option<(usize, Means)> {
    let byte = hex_number(text.get(1..3)?)?;
    Some((3, Means::Byte(u8::try_from(byte).ok()?)))
}

fn html_escape(text: &[u8]) -> Option<(usize, Means)> {
    // The longest reference is `&#x10ffff;` with some leading zeros.
    let end = text.iter().take(14).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&text[1..end]).ok()?;
    let means = match name {
        "amp" | "AMP" => '&',
        "lt" | "LT" => '<',
        "gt" | "GT" => '>',
        "quot" | "QUOT" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "sol" => '/',
        "plus" => '+',
        "equals" => '=',
        "percnt" => '%',
        "num" => '#',
        "dollar" => '$',
        "colon" => ':',
        "commat" => '@',
        "lowbar" => '_',
        "excl" => '!',
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(number.ok()?)?
        }
    };
    Some((end + 1, Means::Char(means)))
}

fn hex_number(digits: &[u8]) -> Option<u32> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

/// Sorts the ranges, merges those that overlap, and widens each to whole characters.
fn merged(text: &str, mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_unstable_by_key(|span| span.start);
    let mut all: Vec<Range<usize>> = Vec::new();
    for span in found {
        let (start, end) = (text.floor_char_boundary(span.start), text.ceil_char_boundary(span.end));
        match all.last_mut().filter(|last| start < last.end) {
            Some(last) => last.end = last.end.max(end),
            None => all.push(start..end),
        }
    }
    all
}

#[cfg(test)]
mod tests;
