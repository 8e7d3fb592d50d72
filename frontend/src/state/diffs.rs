//! Differences between what was proposed and what is there now: by word for prose, by line for code and JSON.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use serde_json::Value;
use shared::definition::ContentType;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag, Instant, diff_ratio};

/// A difference is drawn at most so long after it was begun; a worse one, but at once, is better.
const PATIENCE: Duration = Duration::from_millis(150);
/// Lines that share less of their words than this are other lines, not changed ones: nothing in them is marked.
const ALIKE: f32 = 0.5;

/// Whether a piece of text was there before, is there now, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In both.
    Both,
    /// Only before.
    Old,
    /// Only now.
    New,
}

/// A piece of prose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where it is.
    pub side: Side,
    /// The text, spaces and line ends included.
    pub text: String,
}

/// A line of code, with the parts that make the difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it is.
    pub side: Side,
    /// Its number before, from 1.
    pub old: Option<usize>,
    /// Its number now, from 1.
    pub new: Option<usize>,
    /// Its text; true: this part makes the difference.
    pub parts: Vec<(bool, String)>,
}

/// The operations that make `new` of `old`. Tokens are numbered first, so that words and lines share one algorithm in
/// the bundle; `similar`'s own text interface would bring each of its algorithms several times.
fn operations(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut all = old.iter().chain(new).map(|token| {
        let next = known.len();
        *known.entry(token).or_insert(next)
    });
    let before: Vec<usize> = all.by_ref().take(old.len()).collect();
    let after: Vec<usize> = all.collect();
    let mut hook = Compact::new(Replace::new(Capture::new()), &before, &after);
    // Without the short cuts for large texts, which are as large as the algorithm itself; there is the deadline. Capturing
    // never fails.
    let Ok(()) = myers::diff_deadline_raw(&mut hook, &before, 0..before.len(), &after, 0..after.len(), deadline);
    hook.into_inner().into_inner().into_ops()
}

fn deadline() -> Option<Instant> {
    Instant::now().checked_add(PATIENCE)
}

/// Words, and the spaces between them.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| c.is_whitespace() != first.is_whitespace()).unwrap_or(rest.len());
        tokens.push(&rest[..end]);
        rest = &rest[end..];
    }
    tokens
}

/// The difference by words. A space between two changed words belongs to the change, so that a changed sentence reads
/// as one.
pub fn words(old: &str, new: &str) -> Vec<Piece> {
    let (old, new) = (tokens(old), tokens(new));
    let mut changes: Vec<(Side, String)> = Vec::new();
    for op in operations(&old, &new, deadline()) {
        let (tag, old_range, new_range) = op.as_tag_tuple();
        if tag == DiffTag::Equal {
            changes.extend(old[old_range].iter().map(|text| (Side::Both, (*text).to_owned())));
        } else {
            changes.extend(old[old_range].iter().map(|text| (Side::Old, (*text).to_owned())));
            changes.extend(new[new_range].iter().map(|text| (Side::New, (*text).to_owned())));
        }
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut out, mut into) = (String::new(), String::new());
    let mut changes = changes.into_iter().peekable();
    while let Some((side, text)) = changes.next() {
        match side {
            Side::Old => out.push_str(&text),
            Side::New => into.push_str(&text),
            Side::Both => {
                let between =
                    text.chars().all(|c| c == ' ') && changes.peek().is_some_and(|(side, _)| *side != Side::Both);
                if between && !(out.is_empty() && into.is_empty()) {
                    out.push_str(&text);
                    into.push_str(&text);
                    continue;
                }
                flush(&mut pieces, &mut out, &mut into);
                push(&mut pieces, Side::Both, text);
            }
        }
    }
    flush(&mut pieces, &mut out, &mut into);
    pieces
}

fn flush(pieces: &mut Vec<Piece>, out: &mut String, into: &mut String) {
    push(pieces, Side::Old, std::mem::take(out));
    push(pieces, Side::New, std::mem::take(into));
}

fn push(pieces: &mut Vec<Piece>, side: Side, text: String) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.side == side => last.text.push_str(&text),
        _ => pieces.push(Piece { side, text }),
    }
}

/// The difference by lines, with the changed words of a changed line marked.
pub fn lines(old: &str, new: &str) -> Vec<Line> {
    let deadline = deadline();
    let (old, new): (Vec<_>, Vec<_>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let mut lines = Vec::new();
    for op in operations(&old, &new, deadline) {
        let (tag, old_range, new_range) = op.as_tag_tuple();
        if tag == DiffTag::Equal {
            lines.extend(old_range.zip(new_range).map(|(before, after)| Line {
                side: Side::Both,
                old: Some(before + 1),
                new: Some(after + 1),
                parts: plain(old[before]),
            }));
            continue;
        }
        let marked = if tag == DiffTag::Replace {
            marked(&old[old_range.clone()], &new[new_range.clone()], deadline)
        } else {
            None
        };
        let (gone, come) = marked.unwrap_or_else(|| {
            let plainly = |lines: &[&str]| lines.iter().copied().map(plain).collect();
            (plainly(&old[old_range.clone()]), plainly(&new[new_range.clone()]))
        });
        lines.extend(old_range.zip(gone).map(|(before, parts)| Line {
            side: Side::Old,
            old: Some(before + 1),
            new: None,
            parts,
        }));
        lines.extend(new_range.zip(come).map(|(after, parts)| Line {
            side: Side::New,
            old: None,
            new: Some(after + 1),
            parts,
        }));
    }
    lines
}

type Parts = Vec<(bool, String)>;

fn plain(line: &str) -> Parts {
    vec![(false, line.trim_end_matches('\n').to_owned())]
}

/// Changed lines, before and now, with the words that make the difference; nothing where they have too little in common.
fn marked(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Option<(Vec<Parts>, Vec<Parts>)> {
    let (before, after) = (Words::of(old), Words::of(new));
    let operations = operations(&before.words, &after.words, deadline);
    if diff_ratio(&operations, before.words.len(), after.words.len()) < ALIKE {
        return None;
    }
    let (mut gone, mut come) = (vec![Parts::new(); old.len()], vec![Parts::new(); new.len()]);
    for op in operations {
        let (tag, old_range, new_range) = op.as_tag_tuple();
        before.mark(&mut gone, old_range, tag != DiffTag::Equal);
        after.mark(&mut come, new_range, tag != DiffTag::Equal);
    }
    Some((gone, come))
}

/// The words of some lines, and in which of the lines each one stands.
struct Words<'a> {
    words: Vec<&'a str>,
    lines: Vec<usize>,
}

impl<'a> Words<'a> {
    fn of(lines: &[&'a str]) -> Self {
        let mut all = Self { words: Vec::new(), lines: Vec::new() };
        for (index, line) in lines.iter().enumerate() {
            let words = tokens(line);
            all.lines.extend(words.iter().map(|_| index));
            all.words.extend(words);
        }
        all
    }

    /// Appends some of the words to the lines that they stand in. Line ends are never marked.
    fn mark(&self, lines: &mut [Parts], range: Range<usize>, differs: bool) {
        for index in range {
            let parts = &mut lines[self.lines[index]];
            let word = self.words[index].trim_end_matches('\n');
            match parts.last_mut() {
                _ if word.is_empty() => {}
                Some((marked, text)) if *marked == differs => text.push_str(word),
                _ => parts.push((differs, word.to_owned())),
            }
        }
    }
}

/// Whether a value of this type is compared by words.
pub fn is_prose(content_type: ContentType, value: &Value) -> bool {
    matches!(content_type, ContentType::Markdown | ContentType::Text) && value.is_string()
}

/// A value as text: strings as they are, everything else as indented JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pieces: &[Piece]) -> Vec<(Side, &str)> {
        pieces.iter().map(|piece| (piece.side, piece.text.as_str())).collect()
    }

    #[test]
    fn a_changed_phrase_reads_as_one_change() {
        let pieces = words("moves all the heat in a year.", "moves every heat in a month.");
        assert_eq!(
            told(&pieces),
            [
                (Side::Both, "moves "),
                (Side::Old, "all the"),
                (Side::New, "every"),
                (Side::Both, " heat in a "),
                (Side::Old, "year."),
                (Side::New, "month."),
            ]
        );
    }

    #[test]
    fn nothing_of_either_text_is_lost() {
        let (old, new) = ("a b  c\n\nd", "a x  c\ny\nd e");
        let pieces = words(old, new);
        let side = |wanted| -> String {
            pieces.iter().filter(|p| p.side == Side::Both || p.side == wanted).map(|p| p.text.as_str()).collect()
        };
        assert_eq!((side(Side::Old).as_str(), side(Side::New).as_str()), (old, new));
    }

    #[test]
    fn lines_carry_their_numbers() {
        let lines = lines("one\ntwo\n", "one\n2\n");
        let numbers: Vec<_> = lines.iter().map(|line| (line.side, line.old, line.new)).collect();
        assert_eq!(numbers, [(Side::Both, Some(1), Some(1)), (Side::Old, Some(2), None), (Side::New, None, Some(2))]);
    }
}
