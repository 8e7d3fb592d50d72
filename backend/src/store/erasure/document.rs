//! The stored JSON of a run or of log rows, before and after a person was removed from it.

use serde_json::Value;
use uuid::Uuid;

use super::Erasing;
use super::redact::{OwnAccount, Redaction};
use super::user_data_paths::STATE;

/// The place of a stored value.
pub(super) enum StoredPart {
    State,
    /// All steps in the row of the run.
    Steps,
    Step(Uuid),
    Review(Uuid),
    Feedback(Uuid),
    Answer {
        scope: String,
        key: String,
    },
    Row(ErasedLogRow),
}

impl StoredPart {
    /// The root of the stored JSON in [`super::user_data_paths`].
    fn root(&self) -> &'static str {
        match self {
            Self::State => STATE,
            Self::Steps => "steps",
            Self::Step(_) => "step",
            Self::Review(_) => "review",
            Self::Feedback(_) => "feedback",
            Self::Answer { .. } => "answer",
            Self::Row(_) => "row",
        }
    }
}

/// The columns of a log row except for its body.
pub(super) struct ErasedLogRow {
    pub seq: i64,
    pub at: i64,
    pub commit: Uuid,
    pub mac: Option<Vec<u8>>,
}

/// A stored value with its new content, and its old content if that differs.
pub(super) struct Document {
    pub of: StoredPart,
    pub stored: String,
    pub before: Option<Value>,
    pub after: Value,
}

impl Document {
    /// The value as it is stored.
    pub fn before(&self) -> &Value {
        self.before.as_ref().unwrap_or(&self.after)
    }

    pub fn is_changed(&self) -> bool {
        self.before.as_ref().is_some_and(|before| *before != self.after)
    }

    /// Changes the value. If nothing changes, no second copy is kept: the log rows of a run contain its review many
    /// times.
    fn change(&mut self, change: impl FnOnce(&str, &mut Value)) {
        let mut changed = self.after.clone();
        change(self.of.root(), &mut changed);
        if changed != self.after {
            let after = std::mem::replace(&mut self.after, changed);
            self.before.get_or_insert(after);
        }
    }
}

/// Removes the person from documents that belong together: what they typed in one may have been copied to another. Also
/// removes what is said of the account, if there is one.
pub(super) fn redacted(
    mut documents: Vec<Document>,
    erasing: &Erasing,
    account: Option<OwnAccount<'_>>,
) -> Vec<Document> {
    let mut redaction = Redaction::new(&erasing.username, &erasing.pseudonym).with_account(account);
    let rows: Vec<usize> =
        (0..documents.len()).filter(|index| matches!(documents[*index].of, StoredPart::Row(_))).collect();
    for (place, index) in rows.iter().enumerate() {
        documents[*index].change(|root, value| redaction.redact(root, value));
        // A text that existed before they typed it is not theirs: it is an approved text, or someone else's words. What
        // they typed themselves was already removed from the earlier rows.
        let is_known = |word: &str| rows[..place].iter().any(|before| contains(&documents[*before].after, word));
        redaction.seek(&is_known);
        documents[*index].change(|_, value| redaction.trace(value));
    }
    for document in documents.iter_mut().filter(|document| !matches!(document.of, StoredPart::Row(_))) {
        document.change(|root, value| redaction.redact(root, value));
    }
    redaction.seek(&|_| false);
    for document in &mut documents {
        document.change(|_, value| redaction.trace(value));
    }
    documents
}

fn contains(value: &Value, text: &str) -> bool {
    match value {
        Value::String(whole) => whole.contains(text),
        Value::Array(items) => items.iter().any(|item| contains(item, text)),
        Value::Object(members) => members.values().any(|member| contains(member, text)),
        _ => false,
    }
}
