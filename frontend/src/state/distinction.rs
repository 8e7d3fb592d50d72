//! The line that distinguishes reviews of one flow in the list, beside their titles.

use serde_json::Value;
use shared::review::{Item, Review};
use shared::topic::{cut, plain, topic, topic_of};

use super::words;

/// The maximum number of topics in a row.
const MAX_TOPICS: usize = 2;
/// The maximum length of each, in characters: rows are narrow.
const MAX_TOPIC: usize = 40;

/// The topics of the calls or values under review, unless the title names it already.
pub fn distinction(review: &Review) -> Option<String> {
    let calls = review.actions.iter().filter_map(|action| topic(&action.arguments));
    let values = review.items.iter().filter_map(of_item);
    let mut named: Vec<String> = Vec::new();
    for topic in calls.chain(values) {
        if named.len() == MAX_TOPICS {
            break;
        }
        if !review.title.contains(&topic) && !named.iter().any(|named| named.contains(&topic)) {
            named.push(topic);
        }
    }
    let named: Vec<String> = named.iter().map(|topic| cut(topic, MAX_TOPIC)).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// The prompt of a review; `None` if the title is the same text.
pub fn prompt(review: &Review) -> Option<&str> {
    let prompt = review.prompt.trim();
    let title = review.title.split(" · ").next().unwrap_or_default();
    (prompt.trim_end_matches('.') != title).then_some(&review.prompt)
}

/// The beginning of the prompt without its markup; `None` if the title begins with it, as titles usually do.
pub fn untitled_prompt(review: &Review) -> Option<String> {
    let lines: Vec<_> = review.prompt.lines().map(plain).collect();
    let prompt = words::cut(&lines.join(" "));
    let said = |word: &str| review.title.contains(word.trim_matches(|c: char| !c.is_alphanumeric()));
    (!prompt.split_whitespace().take(4).all(said)).then_some(prompt)
}

fn of_item(item: &Item) -> Option<String> {
    match &item.value {
        Value::Number(number) => Some(format!("{} {number}", item.label.as_ref().unwrap_or(&item.key))),
        value => topic_of(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::{calls, review};

    #[test]
    fn reviews_of_one_flow_are_told_apart_by_what_is_under_review() {
        let of = |patch: Value| distinction(&review(1, 1, patch));
        let text =
            |text: &str| json!([{ "key": "draft", "content_type": "markdown", "value": text, "editable": true }]);
        assert_eq!(of(json!({ "items": text("# The **ocean**\n\nIt is deep.") })).as_deref(), Some("The ocean"));
        assert_eq!(of(json!({ "items": text("The ocean"), "title": "Publish The ocean?" })), None, "the title says it");
        assert_eq!(
            of(json!({ "items": [{ "key": "amount", "content_type": "text", "value": 12, "editable": false }] })),
            Some("amount 12".to_owned())
        );
        let mut both = calls(1, 1);
        both.title = "delete_file and list_files".to_owned();
        assert_eq!(distinction(&both).as_deref(), Some("/a"), "the same thing is named once");
        both.actions[1].arguments = json!({ "path": "x".repeat(80) }).as_object().cloned().unwrap();
        assert_eq!(distinction(&both), Some(format!("/a, {}…", "x".repeat(MAX_TOPIC))));
    }

    #[test]
    fn a_row_does_not_repeat_the_question_of_its_title() {
        let mut review =
            review(1, 1, json!({ "prompt": "See [the invoice](https://a/i/17) and pay.\n\n- It is **due**." }));
        review.title = "See the invoice and pay.".to_owned();
        assert_eq!(untitled_prompt(&review), None, "the title has the text of the link");
        review.title = "Pay".to_owned();
        assert_eq!(untitled_prompt(&review).as_deref(), Some("See the invoice and pay. It is due."));
    }
}
