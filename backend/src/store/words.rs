//! Words: what a search looks for, and where. The server splits text into words itself, so that both databases, and
//! checks without an index, find the same.
//!
//! A word is a run of letters and digits, in lower case. In scripts without spaces between words, each character is a
//! word. An id is one word, written without hyphens. A search matches the beginnings of words.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;
use shared::log::Event;
use uuid::Uuid;

/// The number of characters of a word that count.
const MAX_WORD: usize = 64;
/// The number of words of a search that count.
const MAX_WORDS: usize = 8;

/// The words of a search; a match has all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Returns the words of a search. `None` if the text is blank. If it has no letter or digit, there are no words,
    /// and the search finds nothing.
    pub fn of(q: Option<&str>) -> Option<Self> {
        let q = q.filter(|q| !q.trim().is_empty())?;
        let mut words = Vec::new();
        each_word(q, &mut |word| {
            if words.len() < MAX_WORDS && !words.iter().any(|known| known == word) {
                words.push(word.to_owned());
            }
        });
        Some(Self(words))
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there are no words, so that nothing can be found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a text has all the words.
    pub fn are_in(&self, text: &str) -> bool {
        self.found(|visit| each_word(text, visit))
    }

    /// Whether an entry has all the words.
    pub fn are_in_event(&self, event: &Event) -> bool {
        self.found(|visit| each_word_of(event, visit))
    }

    fn found(&self, each: impl FnOnce(&mut dyn FnMut(&str))) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut missing: Vec<&String> = self.0.iter().collect();
        each(&mut |word| missing.retain(|wanted| !word.starts_with(wanted.as_str())));
        missing.is_empty()
    }
}

#[derive(Debug, Default)]
pub(super) struct WordSet(HashSet<String>);

impl WordSet {
    /// Adds a word. Returns whether it is new.
    pub fn add(&mut self, word: &str) -> bool {
        !self.0.contains(word) && self.0.insert(word.to_owned())
    }

    pub fn sorted(&self) -> Vec<String> {
        let mut words: Vec<_> = self.0.iter().cloned().collect();
        words.sort_unstable();
        words
    }
}

/// Calls `take` with each word of a text.
pub(super) fn each_word(text: &str, take: &mut dyn FnMut(&str)) {
    each_place(text, &mut |word, _| take(word));
}

/// Calls `take` with each word of a text and its range in bytes.
pub(super) fn each_place(text: &str, take: &mut dyn FnMut(&str, Range<usize>)) {
    let mut word = Word::default();
    let mut at = 0;
    for piece in text.split_inclusive(char::is_whitespace) {
        let begun = piece.trim_start_matches(|c: char| !c.is_alphanumeric());
        let from = at + piece.len() - begun.len();
        at += piece.len();
        let trimmed = begun.trim_end_matches(|c: char| !c.is_alphanumeric());
        if trimmed.len() == 36
            && let Ok(id) = trimmed.parse::<Uuid>()
        {
            take(id.simple().encode_lower(&mut Uuid::encode_buffer()), from..from + trimmed.len());
            continue;
        }
        // Most text is ASCII, where words have no marks and no character is a word by itself.
        if trimmed.is_ascii() {
            let mut start = from;
            for run in trimmed.split(|c: char| !c.is_ascii_alphanumeric()) {
                word.push_ascii(run, start);
                word.give(take);
                start += run.len() + 1;
            }
            continue;
        }
        for (offset, c) in trimmed.char_indices() {
            let here = from + offset..from + offset + c.len_utf8();
            if stands_alone(c) {
                word.give(take);
                word.push(c, here);
                word.give(take);
            } else if c.is_alphanumeric() || is_mark(c) {
                word.push(c, here);
            } else {
                word.give(take);
            }
        }
        word.give(take);
    }
}

/// A word that is being read.
#[derive(Default)]
struct Word {
    text: String,
    place: Range<usize>,
}

impl Word {
    fn push(&mut self, c: char, here: Range<usize>) {
        if self.text.is_empty() {
            self.place.start = here.start;
        }
        self.place.end = here.end;
        self.text.extend(c.to_lowercase().filter(|c| !is_mark(*c)));
    }

    /// Begins with a run of ASCII letters and digits, which may be empty.
    fn push_ascii(&mut self, run: &str, start: usize) {
        self.place = start..start + run.len();
        self.text.push_str(run);
        self.text.make_ascii_lowercase();
    }

    fn give(&mut self, take: &mut dyn FnMut(&str, Range<usize>)) {
        if self.text.len() > MAX_WORD
            && let Some((end, _)) = self.text.char_indices().nth(MAX_WORD)
        {
            self.text.truncate(end);
        }
        if !self.text.is_empty() {
            take(&self.text, self.place.clone());
            self.text.clear();
        }
    }
}

/// Whether a character is a mark on the letter before it. Marks are ignored; the lower case of some letters has one.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}')
}

/// Whether a character is a word by itself, because its script has no spaces between words.
fn stands_alone(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x9FFF | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF)
}

/// Calls `take` with each word of an entry: of its kind, its actor, its ids, and every text and number in its data.
/// Times and names of members are left out.
pub(super) fn each_word_of(event: &Event, take: &mut dyn FnMut(&str)) {
    each_word(event.kind.as_str(), take);
    if let Some(actor) = &event.actor {
        each_word(actor, take);
    }
    let ids = [event.token.map(|token| token.0), event.run_id.map(|run| run.0), event.review_id.map(|review| review.0)];
    for id in ids.into_iter().flatten() {
        take(id.simple().encode_lower(&mut Uuid::encode_buffer()));
    }
    event.data.values().for_each(|value| each_word_in(value, take));
}

fn each_word_in(value: &Value, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) if !is_time(text) => each_word(text, take),
        Value::Number(number) => each_word(&number.to_string(), take),
        Value::Array(list) => list.iter().for_each(|one| each_word_in(one, take)),
        Value::Object(members) => members.values().for_each(|one| each_word_in(one, take)),
        Value::String(_) | Value::Null | Value::Bool(_) => {}
    }
}

/// Whether a text has the form of times in entries: `2026-01-01T00:00:00Z`.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    (20..=30).contains(&bytes.len())
        && bytes.ends_with(b"Z")
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')].iter().all(|(at, byte)| bytes[*at] == *byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The words of a text and their ranges by the plain rule: character by character, in any script.
    fn plain_places(text: &str) -> Vec<(String, Range<usize>)> {
        fn end(words: &mut Vec<(String, Range<usize>)>, word: &mut Option<(String, Range<usize>)>) {
            let limited = word.take().map(|(text, place)| (text.chars().take(MAX_WORD).collect::<String>(), place));
            words.extend(limited.filter(|(text, _)| !text.is_empty()));
        }
        let mut words = Vec::new();
        for piece in text.split(char::is_whitespace) {
            let trimmed = piece.trim_matches(|c: char| !c.is_alphanumeric());
            let from = trimmed.as_ptr().addr() - text.as_ptr().addr();
            if trimmed.len() == 36
                && let Ok(id) = trimmed.parse::<Uuid>()
            {
                words.push((id.simple().to_string(), from..from + trimmed.len()));
                continue;
            }
            let mut word: Option<(String, Range<usize>)> = None;
            for (offset, c) in trimmed.char_indices() {
                let here = from + offset..from + offset + c.len_utf8();
                let (alone, part) = (stands_alone(c), c.is_alphanumeric() || is_mark(c));
                if alone || !part {
                    end(&mut words, &mut word);
                }
                if alone || part {
                    // A word begins with a letter: marks before it do not count.
                    let (text, place) = word.get_or_insert_with(|| (String::new(), here.clone()));
                    let start = if text.is_empty() { here.start } else { place.start };
                    *place = start..here.end;
                    text.extend(c.to_lowercase().filter(|c| !is_mark(*c)));
                }
                if alone {
                    end(&mut words, &mut word);
                }
            }
            end(&mut words, &mut word);
        }
        words
    }

    proptest! {
        #[test]
        fn every_text_has_the_words_of_the_plain_rule(
            parts in prop::collection::vec(
                prop_oneof![
                    "[a-zA-Z0-9 _.,@/-]{0,24}",
                    "[A-Z0-9]{60,70}",
                    "[Ääßİ\u{212a}\u{300}\u{307}審で²٣€–\u{a0}\u{3000}a-cX ]{0,12}",
                    "\\PC{0,8}",
                    any::<[u8; 16]>().prop_map(|id| Uuid::from_bytes(id).to_string().to_uppercase()),
                ],
                0..8,
            ),
        ) {
            let text = parts.concat();
            let mut found = Vec::new();
            each_place(&text, &mut |word, place| found.push((word.to_owned(), place)));
            prop_assert_eq!(found, plain_places(&text));
        }
    }

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, &mut |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn text_is_divided_into_words() {
        assert_eq!(words("Pay €4,200.50 to O'Brien-Meyer!"), ["pay", "4", "200", "50", "to", "o", "brien", "meyer"]);
        assert_eq!(words("ÄRGER İstanbul"), ["ärger", "istanbul"]);
        assert_eq!(words("審査 okですか"), ["審", "査", "ok", "で", "す", "か"]);
        assert_eq!(words("run (0198C2AA-1b2c-7000-8000-0123456789ab),"), ["run", "0198c2aa1b2c700080000123456789ab"]);
        assert_eq!(words(&"x".repeat(100)), ["x".repeat(64)]);
        assert_eq!(words("¦ — …"), [""; 0]);
    }

    #[test]
    fn all_words_of_a_search_must_begin_words_of_the_text() {
        let found = |q: &str, text: &str| Words::of(Some(q)).is_some_and(|words| words.are_in(text));
        assert!(found("new let", "The letter is NEW"));
        assert!(!found("etter", "The letter is new"), "not in the middle of a word");
        assert!(!found("letter old", "The letter is new"));
        assert!(!found("!?", "The letter is new!?"), "nothing is looked for, and nothing is found");
        assert_eq!(Words::of(Some("  ")), None);
        assert!(found("0198c2aa-1b2c-7000-8000-0123456789ab", "of 0198c2aa1b2c700080000123456789ab"));
    }
}
