//! The topic of a value, an input or the arguments of a call, in a few words, to tell items of a list apart. The server
//! uses it for headlines, and the console for the rows of its list.

use serde_json::Value;

use crate::JsonMap;

/// The longest topic, in characters.
pub const LONGEST_TOPIC: usize = 60;
/// How much of a text is read for its topic, in characters.
const LOOKED_AT: usize = 4096;
/// Names of values that usually contain the topic, most telling first.
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

/// Returns the topic of an input or of arguments: the most telling text, otherwise the first text, otherwise a number.
pub fn topic(values: &JsonMap) -> Option<String> {
    let telling = TELLING.iter().filter_map(|name| values.get(*name));
    let text = telling.chain(values.values()).find_map(|value| value.as_str().and_then(headline));
    text.or_else(|| values.iter().find(|(_, value)| value.is_number()).map(|(name, value)| format!("{name} {value}")))
}

/// Returns the topic of a value, such as an item of a list.
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

/// Returns a line of Markdown without its marks of headings, lists, emphasis and code.
pub fn plain(line: &str) -> String {
    let line = line.trim_start_matches(['#', '>', '-', ' ', '\t']);
    line.chars().filter(|c| !matches!(c, '*' | '`')).collect::<String>().trim().to_owned()
}

/// Shortens a text to this many characters, preferably at the end of a word.
pub fn cut(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let kept = &text[..end];
    let kept = match kept.rfind(' ') {
        Some(space) if space > end / 2 => &kept[..space],
        _ => kept,
    };
    format!("{}…", kept.trim_end_matches([' ', ',', '.', ':']))
}
