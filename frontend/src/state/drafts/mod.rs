//! What a person has typed but not sent or saved yet: for a review, on the revision that they saw; for a flow, on the
//! version that they began from; and in separately submitted forms. Drafts survive conflicts, new revisions or
//! versions, a reload of the page and the end of the session. Each person at a browser has separate drafts.

pub mod chosen;
mod draft_key;
mod kept;
mod password;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::ActionKind;
use shared::grant::GrantScope;
use shared::id::ReviewId;
use shared::review::Review;
use shared::time::Timestamp;

pub use draft_key::{DraftKey, Edited, Form, storage_prefix};
use kept::{Kept, Shelf};
pub use password::{asked_by as may_ask_password, asks_password};

use super::unparsed::Unparsed;

/// The largest total size, in bytes, of item values that are stored with a draft. With them, the console can show what
/// has changed since.
const KEPT_VALUES: usize = 64 * 1024;

/// The draft of a decision on one review.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draft {
    /// The newest revision that the person has looked at: the one on screen when they began, or a later one.
    pub revision: u32,
    /// The items' values on that revision; empty if they are too long.
    pub shown: JsonMap,
    /// The text in the decision bar.
    pub text: String,
    /// Edited values by item key; only those that differ.
    pub edits: JsonMap,
    /// The choice for each action, by the action's id.
    pub actions: HashMap<String, ActionDraft>,
    /// The values of the form of each option, by the option's id.
    pub fields: BTreeMap<String, JsonMap>,
    /// Metadata for later steps, sent with any choice.
    pub metadata: JsonMap,
    /// A comment for the other reviewers, which is sent separately.
    pub comment: String,
    /// Texts that were typed in a form and cannot be read. The values at their places are older, so nothing is sent of a
    /// form that has one.
    #[serde(rename = "unread")]
    pub unparsed: Unparsed,
}

/// An edited definition of one version of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowDraft {
    pub text: String,
}

/// The content of a form that is submitted separately from a decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormDraft {
    pub form: JsonMap,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionDraft {
    /// The decision about it; `None` if nothing is chosen.
    #[serde(rename = "choice")]
    pub chosen: Option<Chosen>,
    /// All arguments after editing; `None` if none was edited.
    pub arguments: Option<JsonMap>,
    /// The reason of a rejection, or the text of an answer.
    pub message: String,
    /// The scope in which later calls of the tool are approved too; only beside an approval.
    pub remember: Option<GrantScope>,
}

/// A decision about an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Chosen {
    /// One of the four kinds of decision.
    Answer(ActionKind),
    /// An alternative that takes the place of the action.
    Alternative {
        /// The id of the alternative.
        alternative: String,
    },
}

impl ActionDraft {
    /// The kind of decision that was chosen; `None` for an alternative.
    pub fn answer(&self) -> Option<ActionKind> {
        match self.chosen {
            Some(Chosen::Answer(kind)) => Some(kind),
            Some(Chosen::Alternative { .. }) | None => None,
        }
    }

    /// The id of the alternative that was chosen.
    pub fn alternative(&self) -> Option<&str> {
        match &self.chosen {
            Some(Chosen::Alternative { alternative }) => Some(alternative),
            Some(Chosen::Answer(_)) | None => None,
        }
    }

    /// Selects `pressed`, or clears the choice if it is selected already. An approval that covers later calls too is
    /// not cleared.
    pub fn press(&mut self, pressed: Chosen) {
        let approves = pressed == Chosen::Answer(ActionKind::Approve);
        if approves && self.remember.is_some() {
            self.chosen = Some(pressed);
            return;
        }
        self.chosen = Some(pressed).filter(|pressed| self.chosen.as_ref() != Some(pressed));
        self.remember = None;
    }

    /// Approves this call and later ones in `scope`; `None` limits the approval to this call.
    pub fn remember(&mut self, scope: Option<GrantScope>) {
        self.remember = scope;
        if scope.is_some() {
            self.chosen = Some(Chosen::Answer(ActionKind::Approve));
        }
    }
}

impl Draft {
    /// Whether the draft has no content and need not be kept.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
            && self.edits.is_empty()
            && self.fields.is_empty()
            && self.metadata.is_empty()
            && self.comment.trim().is_empty()
            && self.unparsed.is_empty()
            && self.actions.values().all(|a| *a == ActionDraft::default())
    }

    /// Whether the review has a newer revision than the person has looked at. Then nothing may be sent until they have.
    pub fn is_behind(&self, review: &Review) -> bool {
        !self.is_empty() && self.revision < review.revision
    }

    /// The review as the person saw it when they wrote the draft; `None` if it has no values, or they were too long to
    /// keep.
    pub fn saw(&self, now: &Review) -> Option<Review> {
        let mut review = now.clone();
        review.revision = self.revision;
        for item in &mut review.items {
            item.value = self.shown.get(&item.key)?.clone();
        }
        (!review.items.is_empty()).then_some(review)
    }

    fn see(&mut self, review: &Review) {
        self.revision = review.revision;
        let length: usize = review.items.iter().map(|item| item.value.to_string().len()).sum();
        let items = review.items.iter().filter(|_| length <= KEPT_VALUES);
        self.shown = items.map(|item| (item.key.clone(), item.value.clone())).collect();
    }

    /// Sets an edit, or removes it if `value` equals `shown`.
    pub fn edit(&mut self, key: &str, value: Value, shown: &Value) {
        if value == *shown {
            self.edits.shift_remove(key);
        } else {
            self.edits.insert(key.to_owned(), value);
        }
    }

    /// Sets the values of an option's form, which may be empty. `None`: the form is untouched, so its defaults are
    /// sent.
    pub fn fill(&mut self, option: &str, fields: Option<JsonMap>) {
        match fields {
            Some(fields) => drop(self.fields.insert(option.to_owned(), fields)),
            None => drop(self.fields.remove(option)),
        }
    }

    /// The whole content as text for copying.
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
        let more = self.fields.iter().map(|(option, fields)| (option.as_str(), fields));
        for (name, more) in more.chain([("metadata", &self.metadata)]).filter(|(_, more)| !more.is_empty()) {
            parts.push(format!("{name}:\n{}", super::diffs::text_of(&Value::Object(more.clone()))));
        }
        parts.extend(self.unparsed.iter().map(|(place, text)| format!("{place}:\n{text}")));
        if !self.comment.trim().is_empty() {
            parts.push(format!("comment: {}", self.comment.trim()));
        }
        parts.join("\n\n")
    }
}

/// The drafts of the person who is logged in.
#[derive(Debug, Clone, PartialEq)]
pub struct Drafts {
    reviews: Shelf<ReviewId, Draft>,
    flows: Shelf<Edited, FlowDraft>,
    forms: Shelf<Form, FormDraft>,
    taken_over: u64,
}

impl Default for Drafts {
    fn default() -> Self {
        // The definitions of flows are long.
        Self { reviews: Shelf::new(100), flows: Shelf::new(20), forms: Shelf::new(20), taken_over: 0 }
    }
}

impl Drafts {
    /// Replaces all drafts by those stored for the person who has logged in, as JSON; the oldest over the limit are
    /// dropped.
    pub fn replace<'a>(&mut self, kept: impl IntoIterator<Item = (DraftKey, &'a str)>) {
        *self = Self { taken_over: self.taken_over + 1, ..Self::default() };
        for (of, kept) in kept {
            self.put_stored(of, Some(kept));
        }
        self.reviews.drop_oldest();
        self.flows.drop_oldest();
        self.forms.drop_oldest();
    }

    /// Takes over a draft that another tab has stored, as JSON, or its removal (`None`).
    pub fn take_over(&mut self, of: DraftKey, kept: Option<&str>) {
        self.put_stored(of, kept);
        self.taken_over += 1;
    }

    fn put_stored(&mut self, of: DraftKey, kept: Option<&str>) {
        match of {
            DraftKey::Review(id) => self.reviews.put_stored(id, kept),
            DraftKey::Flow(edited) => self.flows.put_stored(edited, kept),
            DraftKey::Form(form) => self.forms.put_stored(form, kept),
        }
    }

    /// A draft as JSON for the browser's storage; `None` if there is none, or if it is kept in memory only.
    pub fn stored(&self, of: &DraftKey) -> Option<String> {
        match of {
            DraftKey::Review(id) => self.reviews.stored(id),
            DraftKey::Flow(edited) => self.flows.stored(edited),
            DraftKey::Form(form) => self.forms.stored(form),
        }
    }

    pub fn review(&self, id: ReviewId) -> Option<&Draft> {
        self.reviews.get(&id)
    }

    pub fn flow(&self, edited: &Edited) -> Option<&str> {
        self.flows.get(edited).map(|draft| draft.text.as_str())
    }

    pub fn versions<'a>(&'a self, flow: &'a str) -> impl Iterator<Item = u32> + 'a {
        self.flows.keys().filter(move |(id, _)| id == flow).map(|(_, version)| *version)
    }

    pub fn form(&self, form: &Form) -> Option<&JsonMap> {
        self.forms.get(form).map(|draft| &draft.form)
    }

    /// Changes the draft of a review; an empty draft is removed. Returns the keys whose stored form has to be
    /// written or removed.
    pub fn change(&mut self, review: &Review, now: Timestamp, change: impl FnOnce(&mut Draft)) -> Vec<DraftKey> {
        // Taken out, not cloned: a draft may be long, and this runs at each key press.
        let Kept { mut draft, mut in_memory, .. } = self.reviews.take(&review.id).unwrap_or_default();
        let begins = draft.is_empty();
        change(&mut draft);
        // Only the first input sets the revision: a person who keeps typing need not have seen a newer one.
        if begins {
            in_memory = password::asked_by(review);
            draft.see(review);
        }
        let kept = (!draft.is_empty()).then_some(Kept { draft, touched: now, in_memory });
        self.reviews.set(review.id, kept)
    }

    /// Sets the edited text of a version of a flow; `None` after it was saved or discarded. Returns the keys whose
    /// stored form has to be written or removed.
    pub fn write_flow(&mut self, edited: &Edited, text: Option<String>, now: Timestamp) -> Vec<DraftKey> {
        let kept = text.map(|text| Kept { draft: FlowDraft { text }, touched: now, in_memory: false });
        self.flows.write(edited.clone(), kept)
    }

    /// Sets the values typed into a form; `None` after it was sent or cleared. `in_memory`: they may contain a
    /// password, from now until the form is sent or cleared. Returns the keys whose stored form has to be written or
    /// removed.
    pub fn write_form(
        &mut self,
        form: &Form,
        typed: Option<JsonMap>,
        in_memory: bool,
        now: Timestamp,
    ) -> Vec<DraftKey> {
        let in_memory = in_memory || self.forms.is_in_memory(form);
        let kept = typed.map(|form| Kept { draft: FormDraft { form }, touched: now, in_memory });
        self.forms.write(form.clone(), kept)
    }

    /// Records that the person has looked at the newest revision; the content of their draft stays.
    pub fn see(&mut self, review: &Review) {
        if let Some(draft) = self.reviews.get_mut(&review.id) {
            draft.see(review);
        }
    }

    pub fn count(&self) -> usize {
        self.reviews.keys().count() + self.flows.keys().count() + self.forms.keys().count()
    }

    /// The number of times that drafts came from outside this page. Editors reload when it changes, but not after their
    /// own writes.
    pub fn taken_over(&self) -> u64 {
        self.taken_over
    }

    /// Removes what was sent with a decision: everything but the comment.
    pub fn forget_decision(&mut self, id: ReviewId) {
        if let Some(Kept { draft, touched, in_memory }) = self.reviews.take(&id) {
            let Draft { revision, shown, comment, .. } = draft;
            let draft = Draft { revision, shown, comment, ..Draft::default() };
            if !draft.is_empty() {
                self.reviews.put(id, Kept { draft, touched, in_memory });
            }
        }
    }

    /// Removes the draft of a review when the person discards it.
    pub fn forget_review(&mut self, id: ReviewId) {
        self.reviews.take(&id);
    }
}

#[cfg(test)]
mod tests;
