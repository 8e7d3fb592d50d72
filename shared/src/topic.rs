//! What a value, an input or the arguments of a call are about, in a few words: what tells one from the next in a list.
//! The server makes headlines of it, and the console the rows of its list.

use serde_json::Value;

use crate::JsonMap;

/// The longest topic, in characters.
pub const LONGEST_TOPIC: usize = 60;
/// How much of a text is looked at for its topic, in characters.
const LOOKED_AT: usize = 4096;
/// Names of values that mostly say what all of them are about, the most telling first.
const TELLING: [&str; 14] = [
    "title",
    "subject",
    "name",
    "topic",
    "to",
    "recipient",
    "path",
    "file",
    "url",
    "command",
    "query",
    "key",
    "id",
    "message",
];

/// What an input or the arguments of a call are about: the most telling text in them, else the first, else a number.
pub fn topic(values: &JsonMap) -> Option<String> {
    let telling = TELLING.iter().filter_map(|name| values.get(*name));
    let text = telling.chain(values.values()).find_map(|value| value.as_str().and_then(headline));
    text.or_else(|| values.iter().find(|(_, value)| value.is_number()).map(|(name, value)| format!("{name} {value}")))
}

/// What a value is about, such as an item of a list.
pub fn topic_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => headline(text),
        Value::Object(values) => topic(values),
        _ => None,
    }
}

fn headline(text: &str) -> Option<String> {
    // A text may be one line of megabytes.
    let text = text.char_indices().nth(LOOKED_AT).map_or(text, |(end, _)| &text[..end]);
    let line = text.lines().map(plain).find(|line| !line.is_empty())?;
    Some(cut(&line, LONGEST_TOPIC))
}

/// A line of Markdown without what is not read out: marks of headings, lists, emphasis and code.
pub fn plain(line: &str) -> String {
    let line = line.trim_start_matches(['#', '>', '-', ' ', '\t']);
    line.chars().filter(|c| !matches!(c, '*' | '`')).collect::<String>().trim().to_owned()
}

/// At most so many characters, at the end of a word where there is one.
pub fn cut(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let kept = &text[..end];
    let kept = match kept.rfind(' ') {
        Some(space) if space > end / 2 => &kept[..space],
        _ => kept,
    };
    format!("{}…", kept.trim_end_matches([' ', ',', '.', ':']))
}
