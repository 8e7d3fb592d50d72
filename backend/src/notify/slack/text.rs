//! The parts of Slack's Block Kit that hold text. All text is plain text with `&`, `<` and `>` escaped, so that foreign
//! text cannot create links, mentions or markup. It is cut to the length that Slack accepts, in which escapes count.

use serde_json::{Value, json};

use super::super::message;

/// The longest text of a section or a line of context that Slack accepts, in characters.
pub(super) const MAX_SECTION: usize = 3000;
/// The longest header.
const MAX_HEADER: usize = 150;
/// The longest label of a button.
pub(super) const MAX_LABEL: usize = 75;
/// The label of the button that opens a review.
pub(super) const OPEN: &str = "Open";

pub(super) fn header(text: &str) -> Value {
    json!({ "type": "header", "text": plain(text, MAX_HEADER) })
}

pub(super) fn section(text: &str) -> Value {
    json!({ "type": "section", "text": plain(text, MAX_SECTION) })
}

pub(super) fn context(text: &str) -> Value {
    json!({ "type": "context", "elements": [plain(text, MAX_SECTION)] })
}

pub(super) fn open_button(link: &str) -> Value {
    json!({ "type": "button", "action_id": "open", "text": plain(OPEN, MAX_LABEL), "url": link })
}

/// Text without markup, escaped and cut to `max` characters.
pub(super) fn plain(text: &str, max: usize) -> Value {
    json!({ "type": "plain_text", "text": escaped(&fitted(text, max).0), "emoji": false })
}

/// Returns the first characters of a text, made inert, that take at most `max` characters once they are escaped, and
/// whether that is the whole text.
pub(super) fn fitted(text: &str, max: usize) -> (String, bool) {
    let text = message::inert(text.trim());
    if escaped_length(&text) <= max {
        return (text, true);
    }
    let mut used = 1; // The ellipsis.
    let first = text.chars().take_while(|c| {
        used += width(*c);
        used <= max
    });
    (first.chain(['…']).collect(), false)
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn escaped_length(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn width(c: char) -> usize {
    match c {
        '&' => "&amp;".len(),
        '<' | '>' => "&lt;".len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_what_fits_with_its_escapes() {
        assert_eq!(fitted(" a & b\n", 9), ("a & b".to_owned(), true));
        assert_eq!(fitted("a & b", 8), ("a &…".to_owned(), false));
        assert_eq!(fitted("a & b", 7), ("a …".to_owned(), false));
        assert_eq!(fitted("\u{202e}", 14), ("<U+202E>".to_owned(), true));
        for text in ["&<>", "a&", "&", "日本 <"] {
            let text = text.repeat(40);
            let shown = plain(&text, 75)["text"].as_str().unwrap().to_owned();
            assert!(shown.chars().count() <= 75 && shown.ends_with('…'), "{shown}");
        }
    }
}
