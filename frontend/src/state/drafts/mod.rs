//! What a person has typed and not sent or saved yet: for a review on the revision that they saw, for a flow on the
//! version that they began from, and in forms that are sent by themselves. Kept when a conflict, a new revision or
//! another version arrives, over a reload of the page, and when the session ends. Another person at the same browser has
//! drafts of their own.

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

pub use password::asks_password;
pub use subject::{Edited, Form, Subject, storage_prefix};

/// Values of items are kept beside a draft up to this many bytes, so that what has changed since can be shown.
const KEPT_VALUES: usize = 64 * 1024;

/// What somebody has typed for one review, for one version of a flow (that is all in the text), or into one form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Draft {
    /// The revision that was on screen when it was typed, or that was looked at since.
    pub revision: u32,
    /// The items' values on that revision, where they are not too long.
    pub shown: JsonMap,
    /// The text in the bar, or all of the flow.
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
    /// What stands in a form that is sent by itself.
    pub form: JsonMap,
    /// When it was touched last.
    pub touched: Timestamp,
    /// Whether it is kept in the memory of the page only, since a password may be in it.
    #[serde(skip)]
    pub in_memory: bool,
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

    /// Chooses something, or takes it back where that is chosen already.
    pub fn press(&mut self, pressed: Chosen) {
        self.chosen = Some(pressed).filter(|pressed| self.chosen.as_ref() != Some(pressed));
        self.remember = None;
    }
}

impl Draft {
    /// Of a flow: all of it.
    pub fn of_flow(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// Of a form that is sent by itself.
    pub fn of_form(form: JsonMap) -> Self {
        Self { form, ..Self::default() }
    }

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

    /// Sets what goes with an option; nothing takes it back.
    pub fn fill(&mut self, option: &str, fields: JsonMap) {
        if fields.is_empty() {
            self.fields.remove(option);
        } else {
            self.fields.insert(option.to_owned(), fields);
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
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drafts {
    by_subject: BTreeMap<Subject, Draft>,
    taken_over: u64,
}

impl Drafts {
    /// Takes in all that was kept for whoever has logged in; the oldest of too many are left out.
    pub fn replace(&mut self, kept: impl IntoIterator<Item = (Subject, Draft)>) {
        self.by_subject = kept.into_iter().collect();
        self.taken_over += 1;
        while self.drop_oldest().is_some() {}
    }

    /// What was typed for something.
    pub fn get(&self, of: impl Into<Subject>) -> Option<&Draft> {
        self.by_subject.get(&of.into())
    }

    /// The versions of a flow for which something was typed.
    pub fn versions<'a>(&'a self, flow: &'a str) -> impl Iterator<Item = u32> + 'a {
        self.by_subject.keys().filter_map(move |of| match of {
            Subject::Flow((id, version)) if id == flow => Some(*version),
            _ => None,
        })
    }

    /// Changes what was typed for a review; an empty draft is forgotten. Gives the drafts that are to be kept anew or
    /// forgotten.
    pub fn change(&mut self, review: &Review, now: Timestamp, change: impl FnOnce(&mut Draft)) -> Vec<Subject> {
        let of = Subject::from(review.id);
        let mut draft = self.by_subject.remove(&of).unwrap_or_default();
        let begins = draft.is_empty();
        change(&mut draft);
        draft.touched = now;
        // Typing on does not make anybody look at a newer revision.
        if begins {
            draft.in_memory = password::asked_by(review);
            draft.see(review);
        }
        let draft = Some(draft).filter(|draft| !draft.is_empty());
        self.write(of, draft)
    }

    /// Notes what was typed for a flow or into a form; nothing: it was saved, sent or discarded. Gives the drafts that are
    /// to be kept anew or forgotten.
    pub fn note(&mut self, of: Subject, typed: Option<Draft>, now: Timestamp) -> Vec<Subject> {
        let is_kept = match (self.by_subject.get(&of), &typed) {
            (None, None) => true,
            (Some(kept), Some(typed)) => kept.text == typed.text && kept.form == typed.form,
            _ => false,
        };
        if is_kept {
            return Vec::new();
        }
        self.write(of, typed.map(|typed| Draft { touched: now, ..typed }))
    }

    fn write(&mut self, of: Subject, draft: Option<Draft>) -> Vec<Subject> {
        self.set(of.clone(), draft);
        std::iter::once(of).chain(self.drop_oldest()).collect()
    }

    /// The person has looked at the newest revision, and keeps what they wrote.
    pub fn see(&mut self, review: &Review) {
        if let Some(draft) = self.by_subject.get_mut(&review.id.into()) {
            draft.see(review);
        }
    }

    /// Takes in what another tab has kept, or that it has forgotten it.
    pub fn put(&mut self, of: Subject, draft: Option<Draft>) {
        self.set(of, draft);
        self.taken_over += 1;
    }

    /// How often drafts came that were not typed on this page: an editor follows these, and not what it has written itself.
    pub fn taken_over(&self) -> u64 {
        self.taken_over
    }

    /// Forgets what was sent with a decision: all but the comment.
    pub fn forget_decision(&mut self, id: ReviewId) {
        let Some(draft) = self.by_subject.remove(&id.into()) else { return };
        let Draft { revision, shown, comment, touched, in_memory, .. } = draft;
        let left = Draft { revision, shown, comment, touched, in_memory, ..Draft::default() };
        self.set(id.into(), Some(left).filter(|left| !left.is_empty()));
    }

    /// Forgets what was typed: it was sent, or discarded.
    pub fn forget(&mut self, of: impl Into<Subject>) {
        self.set(of.into(), None);
    }

    fn set(&mut self, of: Subject, draft: Option<Draft>) {
        match draft {
            Some(draft) => drop(self.by_subject.insert(of, draft)),
            None => drop(self.by_subject.remove(&of)),
        }
    }

    fn drop_oldest(&mut self) -> Option<Subject> {
        let too_many = |of: &Subject| self.by_subject.keys().filter(|other| other.is_like(of)).count() > of.most();
        let going = self.by_subject.iter().filter(|(of, _)| too_many(of));
        let oldest = going.min_by_key(|(_, draft)| draft.touched).map(|(of, _)| of.clone())?;
        self.by_subject.remove(&oldest);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests;
