//! Differences between what was proposed and what is there now: by word for prose, by line for code and JSON.

use std::time::Duration;

use serde_json::Value;
use shared::definition::ContentType;
use similar::{ChangeTag, TextDiff};

/// A difference is drawn at most so long after it was begun; a worse one, but at once, is better.
const PATIENCE: Duration = Duration::from_millis(150);

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

fn side(tag: ChangeTag) -> Side {
    match tag {
        ChangeTag::Equal => Side::Both,
        ChangeTag::Delete => Side::Old,
        ChangeTag::Insert => Side::New,
    }
}

/// The difference by words. A space between two changed words belongs to the change, so that a changed sentence reads
/// as one.
pub fn words(old: &str, new: &str) -> Vec<Piece> {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_words(old, new);
    let changes: Vec<_> =
        diff.iter_all_changes().map(|change| (side(change.tag()), change.value().to_owned())).collect();
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
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let mut lines = Vec::new();
    for op in diff.ops() {
        for change in diff.iter_inline_changes(op) {
            let parts = change.values().iter().map(|(marked, text)| (*marked, text.trim_end_matches('\n').to_owned()));
            lines.push(Line {
                side: side(change.tag()),
                old: change.old_index().map(|index| index + 1),
                new: change.new_index().map(|index| index + 1),
                parts: parts.collect(),
            });
        }
    }
    lines
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
