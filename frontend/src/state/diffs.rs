//! Differences between the proposed and the current value: by word for prose, by line for code, by key for JSON. The
//! crate `similar` splits the text into words and computes the differences.

use std::time::Duration;

use serde_json::Value;
use shared::definition::ContentType;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{Change as Changed, ChangeTag, DiffOp, DiffTag, DiffableStr, Instant, diff_ratio};

/// The time limit for one diff. When it is over, `similar` returns a coarser result.
const DIFF_TIMEOUT: Duration = Duration::from_millis(150);
/// The least similarity, from 0 to 1, at which replaced lines count as changed. Below it they are unrelated, and no
/// words in them are marked.
const ALIKE: f32 = 0.5;

/// Whether a piece of text is in the old text, in the new one, or in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Both,
    Old,
    New,
}

impl From<ChangeTag> for Side {
    fn from(tag: ChangeTag) -> Self {
        match tag {
            ChangeTag::Equal => Self::Both,
            ChangeTag::Delete => Self::Old,
            ChangeTag::Insert => Self::New,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Which of the two texts it is in.
    pub side: Side,
    /// The text, spaces and line ends included.
    pub text: String,
}

/// A line of code, with the changed words marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Which of the two texts it is in.
    pub side: Side,
    /// Its number in the old text, from 1; `None` if it is not there.
    pub old: Option<usize>,
    /// Its number in the new text, from 1; `None` if it is not there.
    pub new: Option<usize>,
    /// Its text, without the line end.
    pub parts: LineParts,
}

/// The text of a line in parts; `true` marks a changed part.
type LineParts = Vec<(bool, String)>;

/// A change of one value in a JSON document.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueChange {
    /// The path to the value: keys of objects, and positions in lists, from 1.
    pub path: Vec<String>,
    /// The old value; `None` if it was added.
    pub old: Option<Value>,
    /// The new value; `None` if it was removed.
    pub new: Option<Value>,
}

/// Returns the operations that turn `old` into `new`. `TextDiff` does the same, but selects its algorithm at run time
/// and so links all five, each several times: a tenth of the bundle.
fn operations(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    // Capturing never fails.
    let Ok(()) = myers::diff_deadline_raw(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline);
    hook.into_inner().into_inner().into_ops()
}

/// Lists the tokens of both texts in reading order.
fn changes<'a>(
    operations: &[DiffOp],
    old: &'a [&'a str],
    new: &'a [&'a str],
) -> impl Iterator<Item = Changed<&'a str>> {
    operations.iter().flat_map(|operation| operation.iter_changes(old, new))
}

fn deadline() -> Option<Instant> {
    Instant::now().checked_add(DIFF_TIMEOUT)
}

/// Compares two texts by words. A space between two changed words belongs to the change, so that a changed sentence
/// reads as one.
pub fn words(old: &str, new: &str) -> Vec<Piece> {
    let (old, new) = (old.tokenize_words(), new.tokenize_words());
    let operations = operations(&old, &new, deadline());
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut out, mut into) = (String::new(), String::new());
    let mut changes =
        changes(&operations, &old, &new).map(|change| (Side::from(change.tag()), change.value())).peekable();
    while let Some((side, text)) = changes.next() {
        match side {
            Side::Old => out.push_str(text),
            Side::New => into.push_str(text),
            Side::Both => {
                let between =
                    text.chars().all(|c| c == ' ') && changes.peek().is_some_and(|(side, _)| *side != Side::Both);
                if between && !(out.is_empty() && into.is_empty()) {
                    out.push_str(text);
                    into.push_str(text);
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
    push(pieces, Side::Old, &std::mem::take(out));
    push(pieces, Side::New, &std::mem::take(into));
}

fn push(pieces: &mut Vec<Piece>, side: Side, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.side == side => last.text.push_str(text),
        _ => pieces.push(Piece { side, text: text.to_owned() }),
    }
}

/// Compares two texts by lines, and marks the changed words in changed lines.
pub fn lines(old: &str, new: &str) -> Vec<DiffLine> {
    let deadline = deadline();
    let (old, new): (Vec<_>, Vec<_>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let mut lines = Vec::new();
    for operation in operations(&old, &new, deadline) {
        let marked = match operation.as_tag_tuple() {
            (DiffTag::Replace, before, after) => marked(&old[before], &new[after], deadline),
            _ => None,
        };
        let mut marked = marked.into_iter().flatten();
        lines.extend(changes(&[operation], &old, &new).map(|change| DiffLine {
            side: change.tag().into(),
            old: change.old_index().map(|before| before + 1),
            new: change.new_index().map(|after| after + 1),
            parts: marked.next().unwrap_or_else(|| vec![(false, change.value().trim_end_matches('\n').to_owned())]),
        }));
    }
    lines
}

/// The old lines and then the new ones, with changed words marked; `None` if they have too little in common.
fn marked(old: &[&str], new: &[&str], deadline: Option<Instant>) -> Option<Vec<LineParts>> {
    let (old, new) = (old.concat(), new.concat());
    let (old, new) = (old.tokenize_words(), new.tokenize_words());
    let operations = operations(&old, &new, deadline);
    if diff_ratio(&operations, old.len(), new.len()) < ALIKE {
        return None;
    }
    let mut lines = Vec::new();
    for other in [ChangeTag::Insert, ChangeTag::Delete] {
        let mut line = LineParts::new();
        for change in changes(&operations, &old, &new).filter(|change| change.tag() != other) {
            // Spaces between words may hold the ends of lines.
            for piece in change.value().split_inclusive('\n') {
                let text = piece.trim_end_matches('\n');
                if !text.is_empty() {
                    line.push((change.tag() != ChangeTag::Equal, text.to_owned()));
                }
                if piece.ends_with('\n') {
                    lines.push(std::mem::take(&mut line));
                }
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    Some(lines)
}

/// Lists the values in which two JSON documents differ, in the order of the old document; added keys follow the other
/// keys of their object. Lists of the same length are compared item by item, others as a whole.
pub fn keys(old: &Value, new: &Value) -> Vec<ValueChange> {
    let mut changes = Vec::new();
    compare(&mut Vec::new(), Some(old), Some(new), &mut changes);
    changes
}

fn compare(path: &mut Vec<String>, old: Option<&Value>, new: Option<&Value>, changes: &mut Vec<ValueChange>) {
    let mut step = |key: String, old: Option<&Value>, new: Option<&Value>| {
        path.push(key);
        compare(path, old, new, changes);
        path.pop();
    };
    match (old, new) {
        (Some(old), Some(new)) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for (key, value) in old {
                step(key.clone(), Some(value), new.get(key));
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                step(key.clone(), None, Some(value));
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                step((index + 1).to_string(), Some(old), Some(new));
            }
        }
        _ => changes.push(ValueChange { path: path.clone(), old: old.cloned(), new: new.cloned() }),
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
    use serde_json::json;

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

    #[test]
    fn words_that_changed_in_a_line_are_marked() {
        let lines = lines("let a = one;\n", "let a = two;\n");
        let marked =
            |line: &DiffLine| line.parts.iter().filter(|(marked, _)| *marked).map(|(_, text)| text.clone()).collect();
        let marks: Vec<Vec<String>> = lines.iter().map(marked).collect();
        assert_eq!(marks, [["one;"], ["two;"]]);
        let texts: Vec<String> =
            lines.iter().map(|line| line.parts.iter().map(|(_, text)| text.as_str()).collect()).collect();
        assert_eq!(texts, ["let a = one;", "let a = two;"]);
    }

    #[test]
    fn lines_that_share_little_are_others_and_each_keeps_its_place() {
        let lines = lines("keep one word here\n\nlast of old", "keep two word here\nnew\n");
        let told: Vec<_> = lines.iter().map(|line| (line.side, line.old, line.new, line.parts.len())).collect();
        let texts: Vec<String> =
            lines.iter().map(|line| line.parts.iter().map(|(_, text)| text.as_str()).collect()).collect();
        assert_eq!(texts, ["keep one word here", "", "last of old", "keep two word here", "new"], "{told:?}");
        assert_eq!(
            told.iter().map(|told| (told.1, told.2)).collect::<Vec<_>>(),
            [(Some(1), None), (Some(2), None), (Some(3), None), (None, Some(1)), (None, Some(2)),]
        );
    }

    #[test]
    fn json_is_compared_by_key() {
        let old =
            json!({"to": "all", "body": "One.\nTwo.", "tags": ["a", "b"], "by": {"name": "ana", "id": 1}, "cc": null});
        let new =
            json!({"to": "all", "body": "One.\n2.", "tags": ["a", "c"], "by": {"name": "ana"}, "cc": null, "n": 1});
        let told: Vec<_> = keys(&old, &new).into_iter().map(|c| (c.path.join("/"), c.old, c.new)).collect();
        let changed = |path: &str, old: Value, new: Value| (path.to_owned(), Some(old), Some(new));
        assert_eq!(
            told,
            [
                changed("body", json!("One.\nTwo."), json!("One.\n2.")),
                changed("tags/2", json!("b"), json!("c")),
                ("by/id".to_owned(), Some(json!(1)), None),
                ("n".to_owned(), None, Some(json!(1))),
            ]
        );
    }

    #[test]
    fn null_is_a_value_and_lists_of_other_lengths_differ_as_a_whole() {
        let told = keys(&json!({"a": null, "b": [1, 2]}), &json!({"b": [2]}));
        assert_eq!(told[0], ValueChange { path: vec!["a".into()], old: Some(Value::Null), new: None });
        assert_eq!(told[1], ValueChange { path: vec!["b".into()], old: Some(json!([1, 2])), new: Some(json!([2])) });
        assert_eq!(keys(&json!([1, {"a": 2}]), &json!([1, {"a": 2}])), []);
        assert_eq!(
            keys(&json!("a"), &json!(1)),
            [ValueChange { path: vec![], old: Some(json!("a")), new: Some(json!(1)) }]
        );
    }
}
