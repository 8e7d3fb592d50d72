//! What is stored of a run or of the log, as it is and as it is to be once a person was taken out of it.

use serde_json::Value;
use uuid::Uuid;

use super::Erasing;
use super::redact::Redaction;

/// What is stored.
pub(super) enum StoredPart {
    State,
    /// All that stand in the row of the run.
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

/// A row of the log beside its body.
pub(super) struct ErasedLogRow {
    pub seq: i64,
    pub at: i64,
    pub commit: Uuid,
    pub mac: Option<Vec<u8>>,
}

/// Something that is stored, as it is to be, and as it is where that is something else.
pub(super) struct Document {
    pub of: StoredPart,
    pub stored: String,
    pub before: Option<Value>,
    pub after: Value,
}

impl Document {
    /// As it is stored.
    pub fn before(&self) -> &Value {
        self.before.as_ref().unwrap_or(&self.after)
    }

    pub fn is_changed(&self) -> bool {
        self.before.as_ref().is_some_and(|before| *before != self.after)
    }

    /// Changes it. What is as it was is kept once: a run's rows of the log show its review
    /// again and again.
    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let mut changed = self.after.clone();
        change(&mut changed);
        if changed != self.after {
            let after = std::mem::replace(&mut self.after, changed);
            self.before.get_or_insert(after);
        }
    }
}

/// Takes the person out of what belongs together: what they typed in one place may have been passed on to another.
pub(super) fn redacted(mut documents: Vec<Document>, erasing: &Erasing) -> Vec<Document> {
    let mut redaction = Redaction::new(&erasing.username, &erasing.pseudonym);
    let rows: Vec<usize> =
        (0..documents.len()).filter(|index| matches!(documents[*index].of, StoredPart::Row(_))).collect();
    for (place, index) in rows.iter().enumerate() {
        documents[*index].change(|value| redaction.redact(value));
        // What was there before they typed it is not theirs: an approved text, or what somebody else has said. What they
        // have typed themselves is gone from there by now.
        let is_known = |word: &str| rows[..place].iter().any(|before| contains(&documents[*before].after, word));
        redaction.seek(&is_known);
        documents[*index].change(|value| redaction.trace(value));
    }
    for document in documents.iter_mut().filter(|document| !matches!(document.of, StoredPart::Row(_))) {
        document.change(|value| redaction.redact(value));
    }
    redaction.seek(&|_| false);
    for document in &mut documents {
        document.change(|value| redaction.trace(value));
    }
    documents
}

/// Whether a text stands anywhere in a value.
fn contains(value: &Value, text: &str) -> bool {
    match value {
        Value::String(whole) => whole.contains(text),
        Value::Array(items) => items.iter().any(|item| contains(item, text)),
        Value::Object(members) => members.values().any(|member| contains(member, text)),
        _ => false,
    }
}
