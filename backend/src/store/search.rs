//! Searches reviews for words: the text that is searched, and lists of the matches.

use serde_json::Value;
use shared::review::Review;
use uuid::Uuid;

use super::Error;
use super::db::{Conn, Row, Sql};
use super::log_index::{ReviewSearch, WordIndex};
use super::words::Words;

/// If at most this many reviews have the words of a search, each is looked up and sorted. If more, they are found
/// quickly along the list. Tests use both ways.
pub(super) const FEW: usize = if cfg!(test) { 9 } else { 2000 };
/// The largest searched text of a review, in characters.
const MAX_SEARCH: usize = 4000;
/// The largest part of it for each of title, prompt and flow title, in characters.
const MAX_HEAD: usize = 1000;
/// The number of reviews that are read at once when each is checked.
const BATCH: u32 = 500;
/// The number of reviews after which a page ends; the next page continues with the others.
const MAX_CHECKED: usize = 20_000;

/// Prepares a search for the words of a query in these indexes. `None` if the query has no words.
pub(super) async fn of(conn: &mut Conn, q: Option<&str>, indexes: &[WordIndex]) -> Result<Option<ReviewSearch>, Error> {
    match Words::of(q) {
        Some(words) => Ok(Some(conn.search_reviews(words, indexes, FEW).await?)),
        None => Ok(None),
    }
}

/// Checks the reviews of a list one after the other, beginning after a place. `page` selects the next rows after a
/// place; the first column is the id, the others are for `fits` and `place_of`. Returns the ids and places of matching
/// reviews, and the place at which the next page begins, if there is one.
pub(super) async fn each<P: Clone>(
    conn: &mut Conn,
    fits: impl Fn(&Row) -> Result<bool, Error>,
    limit: u32,
    mut place: Option<P>,
    page: impl Fn(Option<P>, u32) -> Sql,
    place_of: impl Fn(&Row) -> Result<P, Error>,
) -> Result<(Vec<(Uuid, P)>, Option<P>), Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut found, mut asked): (Vec<(Uuid, P)>, _) = (Vec::new(), 0);
    loop {
        let rows = conn.fetch(page(place.clone(), BATCH)).await?;
        asked += rows.len();
        for row in &rows {
            let here = place_of(row)?;
            if fits(row)? {
                if found.len() == limit {
                    let last = found.last().map(|(_, place)| place.clone());
                    return Ok((found, last));
                }
                found.push((row.uuid(0)?, here.clone()));
            }
            place = Some(here);
        }
        if rows.len() < BATCH as usize {
            return Ok((found, None));
        }
        if asked >= MAX_CHECKED {
            return Ok((found, place));
        }
    }
}

/// The text of a review that is searched, in lower case and limited: title, prompt, flow title, node, requester, names
/// of actions, consequences, then the text in arguments and items.
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
    text.lines
}

#[derive(Default)]
struct Text {
    lines: String,
    /// The number of characters in the lines.
    length: usize,
}

impl Text {
    /// Adds a line, cut off after `most` characters.
    fn add(&mut self, line: &str, most: usize) {
        let room = MAX_SEARCH.saturating_sub(self.length + 1);
        if room == 0 || line.is_empty() {
            return;
        }
        if !self.lines.is_empty() {
            self.lines.push('\n');
            self.length += 1;
        }
        let most = room.min(most);
        // Most text is ASCII, where each byte is a character. Text in PostgreSQL cannot contain U+0000.
        let head = line.get(..most.min(line.len()));
        if let Some(head) = head.filter(|head| head.is_ascii() && !head.contains('\0')) {
            self.length += head.len();
            self.lines.push_str(&head.to_ascii_lowercase());
            return;
        }
        for c in line.chars().flat_map(char::to_lowercase).filter(|c| *c != '\0').take(most) {
            self.length += 1;
            self.lines.push(c);
        }
    }

    /// Adds every text and number in a value, but not the names of members.
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
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The text of lines by the plain rule.
    fn plain(lines: &[(String, usize)]) -> String {
        let mut text = String::new();
        for (line, most) in lines {
            let room = MAX_SEARCH.saturating_sub(text.chars().count() + 1);
            if room > 0 && !line.is_empty() {
                text.push_str(if text.is_empty() { "" } else { "\n" });
                let kept: Vec<char> = line.chars().flat_map(char::to_lowercase).filter(|c| *c != '\0').collect();
                text.extend(&kept[..room.min(*most).min(kept.len())]);
            }
        }
        text
    }

    proptest! {
        #[test]
        fn lines_are_added_up_to_the_limit(
            lines in prop::collection::vec(
                (
                    prop_oneof!["[A-Za-z \u{0}İß審]{0,40}", "[A-Za-z.]{0,40}", "[A-Z]{900,1100}", "\\PC{0,40}"],
                    prop_oneof![Just(MAX_SEARCH), Just(MAX_HEAD), 1..50_usize],
                ),
                0..12,
            ),
        ) {
            let mut text = Text::default();
            for (line, most) in &lines {
                text.add(line, *most);
            }
            prop_assert_eq!(text.length, text.lines.chars().count());
            prop_assert_eq!(text.lines, plain(&lines));
        }
    }

    #[test]
    fn everything_that_is_shown_can_be_found_up_to_a_limit() {
        let review = |more: Value| -> Review {
            let mut review = json!({
                "id": Uuid::nil(), "revision": 1, "digest": "", "version": 1, "kind": "tool_calls",
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
