//! What a person has typed and not sent or saved yet: for a review on the revision that they saw, for a flow on the
//! version that they began from, and in forms that are sent by themselves. Kept when a conflict, a new revision or
//! another version arrives, over a reload of the page, and when the session ends. Another person at the same browser has
//! drafts of their own.

pub mod chosen;
mod kept;
mod password;
mod subject;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::ActionKind;
use shared::grant::GrantScope;
use shared::id::ReviewId;
use shared::review::Review;
use shared::time::Timestamp;

use kept::{Kept, Shelf};
pub use password::{asked_by as may_ask_password, asks_password};
pub use subject::{Edited, Form, Subject, storage_prefix};

/// Values of items are kept beside a draft up to this many bytes, so that what has changed since can be shown.
const KEPT_VALUES: usize = 64 * 1024;

/// What somebody has typed for one review.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draft {
    /// The revision that was on screen when it was typed, or that was looked at since.
    pub revision: u32,
    /// The items' values on that revision, where they are not too long.
    pub shown: JsonMap,
    /// The text in the bar.
    pub text: String,
    /// Changed values by item key; only those that differ.
    pub edits: JsonMap,
    /// What was chosen for each action.
    pub actions: HashMap<String, ActionDraft>,
    /// What goes with an option, by its id.
    pub fields: BTreeMap<String, JsonMap>,
    /// What later steps are told, whatever is chosen.
    pub metadata: JsonMap,
    /// A comment for the other reviewers, which is sent by itself.
    pub comment: String,
}

/// What somebody has made of one version of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowDraft {
    /// All of the definition.
    pub text: String,
}

/// What somebody has typed into a form that is sent by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormDraft {
    /// The values of its fields.
    pub form: JsonMap,
}

/// What was chosen for one action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionDraft {
    /// What shall become of it.
    #[serde(rename = "choice")]
    pub chosen: Option<Chosen>,
    /// All arguments as they were edited; `None` where nothing was.
    pub arguments: Option<JsonMap>,
    /// Why it is rejected, or what the answer is.
    pub message: String,
    /// Beside an approval: where later calls of the tool are approved too.
    pub remember: Option<GrantScope>,
}

/// What shall become of an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Chosen {
    /// One of the four answers to it.
    Answer(ActionKind),
    /// Something else is done in its place.
    Alternative {
        /// The id of the alternative.
        alternative: String,
    },
}

impl ActionDraft {
    /// Which of the four answers was chosen.
    pub fn answer(&self) -> Option<ActionKind> {
        match self.chosen {
            Some(Chosen::Answer(kind)) => Some(kind),
            Some(Chosen::Alternative { .. }) | None => None,
        }
    }

    /// Which alternative was chosen, by its id.
    pub fn alternative(&self) -> Option<&str> {
        match &self.chosen {
            Some(Chosen::Alternative { alternative }) => Some(alternative),
            Some(Chosen::Answer(_)) | None => None,
        }
    }

    /// Chooses something, or takes it back where that is chosen already. What goes for later calls too stays approved.
    pub fn press(&mut self, pressed: Chosen) {
        let approves = pressed == Chosen::Answer(ActionKind::Approve);
        if approves && self.remember.is_some() {
            self.chosen = Some(pressed);
            return;
        }
        self.chosen = Some(pressed).filter(|pressed| self.chosen.as_ref() != Some(pressed));
        self.remember = None;
    }

    /// Approves later calls too, and so this one; or this one only.
    pub fn remember(&mut self, scope: Option<GrantScope>) {
        self.remember = scope;
        if scope.is_some() {
            self.chosen = Some(Chosen::Answer(ActionKind::Approve));
        }
    }
}

impl Draft {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
            && self.edits.is_empty()
            && self.fields.is_empty()
            && self.metadata.is_empty()
            && self.comment.trim().is_empty()
            && self.actions.values().all(|a| *a == ActionDraft::default())
    }

    /// Whether a newer revision came after the one that was on screen: nothing of it may be sent before that was seen.
    pub fn is_behind(&self, review: &Review) -> bool {
        !self.is_empty() && self.revision < review.revision
    }

    /// The review as the person saw it when they wrote this; none where that was too long to keep.
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

    /// Sets an edit, or takes it back where `value` is what is shown anyway.
    pub fn edit(&mut self, key: &str, value: Value, shown: &Value) {
        if value == *shown {
            self.edits.shift_remove(key);
        } else {
            self.edits.insert(key.to_owned(), value);
        }
    }

    /// Sets what goes with an option, which may be nothing at all; `None`: its form is untouched, and so its defaults go.
    pub fn fill(&mut self, option: &str, fields: Option<JsonMap>) {
        match fields {
            Some(fields) => drop(self.fields.insert(option.to_owned(), fields)),
            None => drop(self.fields.remove(option)),
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
        let more = self.fields.iter().map(|(option, fields)| (option.as_str(), fields));
        for (name, more) in more.chain([("metadata", &self.metadata)]).filter(|(_, more)| !more.is_empty()) {
            parts.push(format!("{name}:\n{}", super::diffs::text_of(&Value::Object(more.clone()))));
        }
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
    /// Takes in all that was kept for whoever has logged in, as JSON; the oldest of too many are left out.
    pub fn replace<'a>(&mut self, kept: impl IntoIterator<Item = (Subject, &'a str)>) {
        *self = Self { taken_over: self.taken_over + 1, ..Self::default() };
        for (of, kept) in kept {
            self.put_stored(of, Some(kept));
        }
        self.reviews.drop_oldest();
        self.flows.drop_oldest();
        self.forms.drop_oldest();
    }

    /// Takes in what another tab has kept, as JSON, or that it has forgotten it.
    pub fn take_over(&mut self, of: Subject, kept: Option<&str>) {
        self.put_stored(of, kept);
        self.taken_over += 1;
    }

    fn put_stored(&mut self, of: Subject, kept: Option<&str>) {
        match of {
            Subject::Review(id) => self.reviews.put_stored(id, kept),
            Subject::Flow(edited) => self.flows.put_stored(edited, kept),
            Subject::Form(form) => self.forms.put_stored(form, kept),
        }
    }

    /// A draft as the browser keeps it: JSON. `None` where there is none, or where it is kept in memory only.
    pub fn stored(&self, of: &Subject) -> Option<String> {
        match of {
            Subject::Review(id) => self.reviews.stored(id),
            Subject::Flow(edited) => self.flows.stored(edited),
            Subject::Form(form) => self.forms.stored(form),
        }
    }

    /// What was typed for a review.
    pub fn review(&self, id: ReviewId) -> Option<&Draft> {
        self.reviews.get(&id)
    }

    /// The text of a version of a flow that is being edited.
    pub fn flow(&self, edited: &Edited) -> Option<&str> {
        self.flows.get(edited).map(|draft| draft.text.as_str())
    }

    /// The versions of a flow for which something was typed.
    pub fn versions<'a>(&'a self, flow: &'a str) -> impl Iterator<Item = u32> + 'a {
        self.flows.keys().filter(move |(id, _)| id == flow).map(|(_, version)| *version)
    }

    /// What was typed into a form.
    pub fn form(&self, form: &Form) -> Option<&JsonMap> {
        self.forms.get(form).map(|draft| &draft.form)
    }

    /// Changes what was typed for a review; an empty draft is forgotten. Gives the drafts that are to be kept anew or
    /// forgotten.
    pub fn change(&mut self, review: &Review, now: Timestamp, change: impl FnOnce(&mut Draft)) -> Vec<Subject> {
        // Taken out, not copied: it may be long, and this is done at each key.
        let Kept { mut draft, mut in_memory, .. } = self.reviews.take(&review.id).unwrap_or_default();
        let begins = draft.is_empty();
        change(&mut draft);
        // Typing on does not make anybody look at a newer revision.
        if begins {
            in_memory = password::asked_by(review);
            draft.see(review);
        }
        let kept = (!draft.is_empty()).then_some(Kept { draft, touched: now, in_memory });
        self.reviews.set(review.id, kept)
    }

    /// Notes what a version of a flow was changed to; `None`: it was saved, or discarded. Gives the drafts that are to be
    /// kept anew or forgotten.
    pub fn write_flow(&mut self, edited: &Edited, text: Option<String>, now: Timestamp) -> Vec<Subject> {
        let kept = text.map(|text| Kept { draft: FlowDraft { text }, touched: now, in_memory: false });
        self.flows.write(edited.clone(), kept)
    }

    /// Notes what stands in a form; `None`: it was sent, or nothing was typed. `in_memory`: a password may be in it. Gives
    /// the drafts that are to be kept anew or forgotten.
    pub fn write_form(&mut self, form: &Form, typed: Option<JsonMap>, in_memory: bool, now: Timestamp) -> Vec<Subject> {
        let kept = typed.map(|form| Kept { draft: FormDraft { form }, touched: now, in_memory });
        self.forms.write(form.clone(), kept)
    }

    /// The person has looked at the newest revision, and keeps what they wrote.
    pub fn see(&mut self, review: &Review) {
        if let Some(draft) = self.reviews.get_mut(&review.id) {
            draft.see(review);
        }
    }

    /// How often drafts came that were not typed on this page: an editor follows these, and not what it has written itself.
    pub fn taken_over(&self) -> u64 {
        self.taken_over
    }

    /// Forgets what was sent with a decision: all but the comment.
    pub fn forget_decision(&mut self, id: ReviewId) {
        if let Some(Kept { draft, touched, in_memory }) = self.reviews.take(&id) {
            let Draft { revision, shown, comment, .. } = draft;
            let draft = Draft { revision, shown, comment, ..Draft::default() };
            if !draft.is_empty() {
                self.reviews.put(id, Kept { draft, touched, in_memory });
            }
        }
    }

    /// Forgets what was typed for a review: the person discards it.
    pub fn forget_review(&mut self, id: ReviewId) {
        self.reviews.take(&id);
    }
}

#[cfg(test)]
mod tests;
