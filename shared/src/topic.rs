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
    // A picture or file in a text has no topic.
    let mut lines = text.lines().filter(|line| !is_data_uri(line.trim_start())).map(plain);
    let line = lines.find(|line| !line.is_empty())?;
    Some(cut(&line, LONGEST_TOPIC))
}

/// Whether a line begins with a `data:` URI, whose data follow a comma (RFC 2397), and not with a word and a colon.
fn is_data_uri(line: &str) -> bool {
    let address = line.split_whitespace().next().unwrap_or_default();
    address.starts_with("data:") && (address.contains(',') || address.len() > LONGEST_TOPIC)
}

/// Returns a line of Markdown without its marks of headings, lists, emphasis and code, and links as their text.
pub fn plain(line: &str) -> String {
    let line = without_addresses(line.trim_start_matches(['#', '>', '-', ' ', '\t']));
    line.chars().filter(|c| !matches!(c, '*' | '`')).collect::<String>().trim().to_owned()
}

/// A line with `[text](address)` and `![text](address)` as their text.
fn without_addresses(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let link = before.rsplit_once('[').zip(after.split_once(')'));
        let Some(((before, text), (_, after))) = link else {
            out.extend([before, "]("]);
            rest = after;
            continue;
        };
        out.extend([before.strip_suffix('!').unwrap_or(before), text]);
        rest = after;
    }
    out + rest
}

/// Returns the beginning of a text on one line, at most `most` characters; what is longer ends with `…`.
pub fn beginning(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_link_is_its_text_and_a_picture_no_topic() {
        assert_eq!(
            plain("Is this right? See [the picture](https://example.com/a.png)."),
            "Is this right? See the picture."
        );
        assert_eq!(plain("![A cat](data:image/png;base64,AAAA) and a [b] (c)"), "A cat and a [b] (c)");
        assert_eq!(plain("a](b) [c](d"), "a](b) [c](d");
        assert_eq!(topic_of(&json!("data:image/png;base64,AAAA")), None);
        assert_eq!(topic_of(&json!({ "a": "data:image/png;base64,AAAA", "b": "A cat" })).as_deref(), Some("A cat"));
    }
}
