//! Describes in words how a review has changed since a person read it, and tells whether they changed it themselves.

use shared::review::{Item, Review};

use super::words::{count, person};

/// How a review differs from the one that a person has read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentChange {
    /// The change in sentences; empty if nothing is known about it.
    pub says: String,
    /// Whether the cards can show the difference.
    pub is_shown: bool,
}

/// Returns how `now` differs from `before`, the review as it was read. `None`: that is not known any more.
pub fn between(before: Option<&Review>, now: &Review, me: Option<&str>) -> ContentChange {
    let Some(before) = before else { return ContentChange::default() };
    let same = |item: &&Item| before.items.iter().any(|old| old.key == item.key && old.value == item.value);
    // The calls of a review never change.
    let items = now.items.iter().filter(|item| !same(item)).count();
    let mut says = Vec::new();
    if items > 0 {
        says.push(format!("{} changed.", count(items, "value has", "values have")));
    }
    match now.paused.as_ref().filter(|_| before.paused.is_none()) {
        Some(paused) => says.push(format!("Paused by {}: other answers are offered now.", person(&paused.by, me))),
        None if before.options != now.options => says.push("Other answers are offered now.".to_owned()),
        None => {}
    }
    ContentChange { says: says.join(" "), is_shown: items > 0 }
}

/// Whether this person made the newest revision by deciding on the one before: they paused the review, or voted with
/// changes.
pub fn is_own(before: &Review, now: &Review, me: Option<&str>) -> bool {
    let is_mine = |name: &str| me == Some(name);
    let paused = || before.paused.is_none() && now.paused.as_ref().is_some_and(|paused| is_mine(&paused.by));
    let voted =
        || now.decisions.iter().any(|said| is_mine(&said.by) && said.revision == now.revision && said.shown.is_some());
    now.revision == before.revision + 1 && (paused() || voted())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    #[test]
    fn whoever_pauses_a_review_is_not_told_that_it_changed() {
        let before = review(1, 1, json!({ "kind": "checkpoint" }));
        let resume = json!([{ "id": "resume", "kind": "accept", "label": "Resume" }]);
        let paused = json!({ "by": "ana", "at": "2026-11-20T10:05:00Z" });
        let now = review(1, 2, json!({ "kind": "checkpoint", "revision": 2, "paused": paused, "options": resume }));
        assert!(is_own(&before, &now, Some("ana")));
        assert!(!is_own(&before, &now, Some("tom")));
        let seen = between(Some(&before), &now, Some("tom"));
        assert_eq!(
            seen,
            ContentChange { says: "Paused by ana: other answers are offered now.".into(), is_shown: false }
        );
    }

    #[test]
    fn a_difference_is_promised_only_where_there_is_one() {
        let before = review(1, 1, json!({}));
        let mut now = review(1, 2, json!({ "revision": 2 }));
        assert_eq!(between(Some(&before), &now, None), ContentChange::default());
        now.items[0].value = json!("Hello all");
        let change = between(Some(&before), &now, None);
        assert_eq!((change.says.as_str(), change.is_shown), ("1 value has changed.", true));
        assert_eq!(between(None, &now, None), ContentChange::default());
    }
}
