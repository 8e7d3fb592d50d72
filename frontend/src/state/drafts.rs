//! What somebody has typed for a review and not sent yet: kept when a conflict or a new revision arrives, and over a
//! reload of the page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::ActionKind;
use shared::grant::GrantScope;
use shared::id::ReviewId;
use shared::time::Timestamp;

/// Under which name the browser keeps the drafts.
pub const STORAGE_KEY: &str = "countersign.drafts";

/// How many drafts are kept; the ones touched longest ago go first.
const KEPT: usize = 100;

/// What somebody has typed for one review.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draft {
    /// The revision that was shown when it was typed last.
    pub revision: u32,
    /// The text in the bar.
    pub text: String,
    /// Changed values by item key; only those that differ.
    pub edits: JsonMap,
    /// What was chosen for each action.
    pub actions: BTreeMap<String, ActionDraft>,
    /// When it was touched last.
    pub touched: Timestamp,
}

/// What was chosen for one action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionDraft {
    /// Which of the four.
    pub choice: Option<ActionKind>,
    /// Changed arguments.
    pub arguments: Option<JsonMap>,
    /// Why it is rejected, or what the answer is.
    pub message: String,
    /// Beside an approval: where later calls of the tool are approved too.
    pub remember: Option<GrantScope>,
}

impl Draft {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
            && self.edits.is_empty()
            && self.actions.values().all(|a| *a == ActionDraft::default())
    }

    /// Sets an edit, or takes it back where `value` is what is shown anyway.
    pub fn edit(&mut self, key: &str, value: Value, shown: &Value) {
        if value == *shown {
            self.edits.shift_remove(key);
        } else {
            self.edits.insert(key.to_owned(), value);
        }
    }

    /// All that was written, as text to copy.
    pub fn to_text(&self) -> String {
        let mut parts = Vec::new();
        if !self.text.trim().is_empty() {
            parts.push(self.text.trim().to_owned());
        }
        for (key, value) in &self.edits {
            parts.push(format!("{key}:\n{}", super::diffs::text_of(value)));
        }
        for (id, action) in &self.actions {
            if !action.message.trim().is_empty() {
                parts.push(format!("{id}: {}", action.message.trim()));
            }
            if let Some(arguments) = &action.arguments {
                parts.push(format!("{id}:\n{}", super::diffs::text_of(&Value::Object(arguments.clone()))));
            }
        }
        parts.join("\n\n")
    }
}

/// The drafts of this browser.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Drafts {
    by_review: BTreeMap<ReviewId, Draft>,
}

impl Drafts {
    /// What was typed for a review.
    pub fn get(&self, id: ReviewId) -> Option<&Draft> {
        self.by_review.get(&id)
    }

    /// Changes what was typed for a review; an empty draft is forgotten.
    pub fn change(&mut self, id: ReviewId, revision: u32, now: Timestamp, change: impl FnOnce(&mut Draft)) {
        let draft = self.by_review.entry(id).or_default();
        change(draft);
        draft.revision = revision;
        draft.touched = now;
        if draft.is_empty() {
            self.by_review.remove(&id);
        }
        while self.by_review.len() > KEPT {
            let Some(oldest) = self.by_review.iter().min_by_key(|(_, draft)| draft.touched).map(|(id, _)| *id) else {
                break;
            };
            self.by_review.remove(&oldest);
        }
    }

    /// Forgets what was typed: it was sent, or thrown away.
    pub fn forget(&mut self, id: ReviewId) {
        self.by_review.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    #[test]
    fn a_draft_outlives_a_new_revision_and_a_reload() {
        let id = review(1, 1, json!({})).id;
        let mut drafts = Drafts::default();
        drafts.change(id, 1, Timestamp(1), |draft| draft.edit("draft", json!("Hi"), &json!("Hello")));
        drafts.change(id, 2, Timestamp(2), |draft| draft.text = "Shorter".into());
        let kept: Drafts = serde_json::from_value(json!(drafts)).unwrap();
        let draft = kept.get(id).unwrap();
        assert_eq!((draft.revision, draft.edits["draft"].as_str()), (2, Some("Hi")));
        assert_eq!(draft.to_text(), "Shorter\n\ndraft:\nHi");
    }

    #[test]
    fn an_edit_that_is_taken_back_leaves_no_draft() {
        let id = review(1, 1, json!({})).id;
        let mut drafts = Drafts::default();
        drafts.change(id, 1, Timestamp(1), |draft| draft.edit("draft", json!("Hi"), &json!("Hello")));
        drafts.change(id, 1, Timestamp(2), |draft| draft.edit("draft", json!("Hello"), &json!("Hello")));
        assert_eq!(drafts.get(id), None);
    }
}
