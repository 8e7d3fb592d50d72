//! The subject of a review, beyond its title, which distinguishes reviews of one flow in the list.

use serde_json::Value;
use shared::review::{Item, Review};
use shared::topic::{cut, topic, topic_of};

/// The maximum number of subjects in a row.
const NAMED: usize = 2;
/// The maximum length of each, in characters: rows are narrow.
const LONGEST: usize = 40;

/// The subject of the calls or values under review, unless the title names it already.
pub fn subject(review: &Review) -> Option<String> {
    let calls = review.actions.iter().filter_map(|action| topic(&action.arguments));
    let values = review.items.iter().filter_map(of_item);
    let mut named: Vec<String> = Vec::new();
    for topic in calls.chain(values) {
        if named.len() == NAMED {
            break;
        }
        if !review.title.contains(&topic) && !named.iter().any(|named| named.contains(&topic)) {
            named.push(topic);
        }
    }
    let named: Vec<String> = named.iter().map(|topic| cut(topic, LONGEST)).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// The prompt of a review; `None` if the title is the same text.
pub fn prompt(review: &Review) -> Option<&str> {
    let prompt = review.prompt.trim();
    let title = review.title.split(" · ").next().unwrap_or_default();
    (prompt.trim_end_matches('.') != title).then_some(&review.prompt)
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
        let of = |patch: Value| subject(&review(1, 1, patch));
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
        assert_eq!(subject(&both).as_deref(), Some("/a"), "the same thing is named once");
        both.actions[1].arguments = json!({ "path": "x".repeat(80) }).as_object().cloned().unwrap();
        assert_eq!(subject(&both), Some(format!("/a, {}…", "x".repeat(LONGEST))));
    }
}
