//! The words of a search: where they are looked for, and how.

use serde_json::Value;
use shared::review::Review;

use super::db::Sql;

/// How many words of a search count.
const MAX_WORDS: usize = 8;
/// How many characters of a review are searched.
const MAX_SEARCH: usize = 4000;
/// How many of them its title, prompt and flow's title have at most, each.
const MAX_HEAD: usize = 1000;

/// Adds that all words of a search stand in a column of [`text_of`].
pub(super) fn has_words(mut sql: Sql, column: &str, q: Option<&str>) -> Sql {
    for word in q.iter().flat_map(|words| words.split_whitespace()).take(MAX_WORDS) {
        sql = sql.push(" AND ").push(column).push(" LIKE ").bind(like(word)).push(" ESCAPE '\\'");
    }
    sql
}

/// The pattern of a word anywhere.
pub(super) fn like(word: &str) -> String {
    let mut pattern = String::from("%");
    for c in word.to_lowercase().chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

/// Where the words of a search are looked for, lower case, and not without end: title, prompt, flow title, node,
/// requester, actions by name, consequences, then the text in arguments and items.
pub(super) fn text_of(review: &Review) -> String {
    let mut text = Text::default();
    for head in [Some(&review.title), Some(&review.prompt), review.flow_title.as_ref()] {
        text.add(head.map(String::as_str).unwrap_or_default(), MAX_HEAD);
    }
    for one in [review.node.as_deref(), Some(&*review.requested_by)].into_iter().flatten() {
        text.add(one, MAX_SEARCH);
    }
    let actions = review.actions.iter().map(|action| &action.name);
    for one in actions.chain(&review.stakes.consequences) {
        text.add(one, MAX_SEARCH);
    }
    for value in review.actions.iter().flat_map(|action| action.arguments.values()) {
        text.add_value(value);
    }
    for item in &review.items {
        text.add_value(&item.value);
    }
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    /// Adds a line with so many characters at most.
    fn add(&mut self, line: &str, most: usize) {
        let room = MAX_SEARCH.saturating_sub(self.0.chars().count() + 1);
        if room == 0 || line.is_empty() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        // PostgreSQL's text has no U+0000.
        let kept = line.chars().flat_map(char::to_lowercase).filter(|c| *c != '\0');
        self.0.extend(kept.take(room.min(most)));
    }

    /// Adds every text and number in a value, but no names of members.
    fn add_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text, MAX_SEARCH),
            Value::Number(number) => self.add(&number.to_string(), MAX_SEARCH),
            Value::Array(list) => list.iter().take(MAX_SEARCH).for_each(|one| self.add_value(one)),
            Value::Object(members) => members.values().take(MAX_SEARCH).for_each(|one| self.add_value(one)),
            Value::Null | Value::Bool(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_is_shown_can_be_found_up_to_a_limit() {
        let review = |more: Value| -> Review {
            let mut review = json!({
                "id": uuid::Uuid::nil(), "revision": 1, "digest": "", "version": 1, "kind": "tool_calls",
                "status": "pending", "title": "A Title", "prompt": "p".repeat(5000), "requested_by": "dev",
                "created_at": "2026-01-01T00:00:00Z", "flow_title": "Newsletter", "node": "send",
                "consequences": ["4,200 people get it"],
            });
            review.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            serde_json::from_value(review).expect("a review")
        };
        let action = json!({ "id": "c1", "type": "tool", "name": "send_mail", "allowed_decisions": [],
            "arguments": { "to": [{ "mail": "A@example.org" }], "amount": 12.5 } });
        let item = json!({ "key": "draft", "content_type": "text", "value": "Hello\u{0} Ocean", "editable": false });
        let text = text_of(&review(json!({ "actions": [action], "items": [item] })));
        for word in
            ["a title", "newsletter", "send", "dev", "4,200", "send_mail", "a@example.org", "12.5", "hello ocean"]
        {
            assert!(text.contains(word), "{word} in {text}");
        }
        assert!(
            !text.contains("amount") && !text.contains('\0'),
            "no names of members, and nothing PostgreSQL refuses"
        );
        let long = json!({ "key": "k", "content_type": "text", "value": "ß".repeat(9000), "editable": false });
        assert_eq!(text_of(&review(json!({ "items": [long.clone(), long] }))).chars().count(), MAX_SEARCH);
    }
}
