//! What a person has typed for a review and not sent yet, on the revision that they saw: kept when a conflict or a new
//! revision arrives, and over a reload of the page. Another person at the same browser has drafts of their own.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::ActionKind;
use shared::grant::GrantScope;
use shared::id::{ReviewId, Username};
use shared::review::Review;
use shared::time::Timestamp;

use super::flow_drafts::Edited;

/// How many drafts of one person are kept; the ones touched longest ago go first.
const KEPT: usize = 100;
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
    /// When it was touched last.
    pub touched: Timestamp,
}

/// What was chosen for one action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionDraft {
    /// What shall become of it.
    #[serde(rename = "choice")]
    pub chosen: Option<Chosen>,
    /// Changed arguments.
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
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
            && self.edits.is_empty()
            && self.fields.is_empty()
            && self.metadata.is_empty()
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
        parts.join("\n\n")
    }
}

/// What a draft is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A review.
    Review(ReviewId),
    /// A version of a flow.
    Flow(Edited),
}

impl Subject {
    /// Under which name the browser keeps a person's draft of it.
    pub fn storage_key(&self, owner: &Username) -> String {
        let prefix = storage_prefix(owner);
        match self {
            Self::Review(id) => format!("{prefix}review/{id}"),
            Self::Flow((id, version)) => format!("{prefix}flow/{id}/{version}"),
        }
    }

    /// What a draft of a person is of, by the name under which the browser keeps it.
    pub fn of_storage_key(key: &str, owner: &Username) -> Option<Self> {
        let (kind, of) = key.strip_prefix(&storage_prefix(owner))?.split_once('/')?;
        match kind {
            "review" => of.parse().ok().map(Self::Review),
            "flow" => {
                of.rsplit_once('/').and_then(|(id, version)| Some(Self::Flow((id.to_owned(), version.parse().ok()?))))
            }
            _ => None,
        }
    }
}

/// How the names of all drafts of a person begin. No username has a slash: that of nobody else begins so too.
pub fn storage_prefix(owner: &Username) -> String {
    format!("countersign.draft.{owner}/")
}

/// The drafts of the person who is logged in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drafts {
    by_review: HashMap<ReviewId, Draft>,
}

impl Drafts {
    /// Drafts as they were kept; the oldest of too many are left out.
    pub fn new(kept: impl IntoIterator<Item = (ReviewId, Draft)>) -> Self {
        let mut drafts = Self { by_review: kept.into_iter().collect() };
        while drafts.drop_oldest().is_some() {}
        drafts
    }

    /// What was typed for a review.
    pub fn get(&self, id: ReviewId) -> Option<&Draft> {
        self.by_review.get(&id)
    }

    /// Changes what was typed for a review; an empty draft is forgotten. Gives the review whose draft had to go for it.
    pub fn change(&mut self, review: &Review, now: Timestamp, change: impl FnOnce(&mut Draft)) -> Option<ReviewId> {
        let draft = self.by_review.entry(review.id).or_default();
        let begins = draft.is_empty();
        change(draft);
        draft.touched = now;
        // Typing on does not make anybody look at a newer revision.
        if begins {
            draft.see(review);
        }
        if draft.is_empty() {
            self.by_review.remove(&review.id);
        }
        self.drop_oldest()
    }

    /// The person has looked at the newest revision, and keeps what they wrote.
    pub fn see(&mut self, review: &Review) {
        if let Some(draft) = self.by_review.get_mut(&review.id) {
            draft.see(review);
        }
    }

    /// Takes in what another tab has kept, or that it has forgotten it.
    pub fn put(&mut self, id: ReviewId, draft: Option<Draft>) {
        match draft {
            Some(draft) => drop(self.by_review.insert(id, draft)),
            None => self.forget(id),
        }
    }

    /// Forgets what was typed: it was sent, or discarded.
    pub fn forget(&mut self, id: ReviewId) {
        self.by_review.remove(&id);
    }

    fn drop_oldest(&mut self) -> Option<ReviewId> {
        let oldest = || self.by_review.iter().min_by_key(|(_, draft)| draft.touched).map(|(id, _)| *id);
        let id = (self.by_review.len() > KEPT).then(oldest).flatten()?;
        self.by_review.remove(&id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    fn on(revision: u32, draft: &str) -> Review {
        let mut review = review(1, u64::from(revision), json!({ "revision": revision }));
        review.items[0].value = json!(draft);
        review
    }

    #[test]
    fn a_draft_stays_on_the_revision_that_was_on_screen_until_a_newer_one_was_looked_at() {
        let mut drafts = Drafts::default();
        let (first, second) = (on(1, "Hello"), on(2, "Hello all"));
        drafts.change(&first, Timestamp(1), |draft| draft.edit("draft", json!("Hi"), &json!("Hello")));
        // The tab is closed and opened again, or the person goes on typing: neither is looking at what is new.
        let kept = serde_json::to_string(drafts.get(first.id).unwrap()).unwrap();
        let mut drafts = Drafts::new([(first.id, serde_json::from_str(&kept).unwrap())]);
        drafts.change(&second, Timestamp(2), |draft| draft.text = "Shorter".into());
        let draft = drafts.get(first.id).unwrap().clone();
        assert!(draft.is_behind(&second) && !draft.is_behind(&first));
        assert_eq!((draft.revision, &draft.shown["draft"]), (1, &json!("Hello")));
        assert_eq!(draft.to_text(), "Shorter\n\ndraft:\nHi");
        drafts.see(&second);
        let draft = drafts.get(first.id).unwrap();
        assert_eq!((draft.is_behind(&second), &draft.shown["draft"]), (false, &json!("Hello all")));
    }

    #[test]
    fn one_thing_is_chosen_for_an_action_and_pressing_it_again_takes_it_back() {
        let (answer, instead) =
            (Chosen::Answer(ActionKind::Reject), Chosen::Alternative { alternative: "wait".to_owned() });
        let mut action = ActionDraft::default();
        for (pressed, expected) in
            [(&answer, Some(&answer)), (&instead, Some(&instead)), (&answer, Some(&answer)), (&answer, None)]
        {
            action.press(pressed.clone());
            assert_eq!(action.chosen.as_ref(), expected);
            let kept: ActionDraft = serde_json::from_value(json!(action)).unwrap();
            assert_eq!(kept, action);
        }
        let kept: ActionDraft = serde_json::from_value(json!({ "choice": "edit", "message": "" })).unwrap();
        assert_eq!(kept.answer(), Some(ActionKind::Edit), "what an earlier version kept is still there");
    }

    #[test]
    fn an_edit_that_is_taken_back_leaves_no_draft() {
        let review = on(1, "Hello");
        let mut drafts = Drafts::default();
        drafts.change(&review, Timestamp(1), |draft| draft.edit("draft", json!("Hi"), &json!("Hello")));
        drafts.change(&review, Timestamp(2), |draft| draft.edit("draft", json!("Hello"), &json!("Hello")));
        assert_eq!(drafts.get(review.id), None);
    }

    #[test]
    fn drafts_are_of_a_person_and_the_oldest_of_too_many_go() {
        let name = |name: &str| name.parse::<Username>().unwrap();
        for of in [Subject::Review(on(1, "").id), Subject::Flow(("article".into(), 3))] {
            let key = of.storage_key(&name("ana.b"));
            assert_eq!(Subject::of_storage_key(&key, &name("ana.b")), Some(of));
            for other in ["ana", "tom"] {
                assert!(!key.starts_with(&storage_prefix(&name(other))), "{key}");
                assert_eq!(Subject::of_storage_key(&key, &name(other)), None);
            }
        }
        let draft =
            |at: usize| Draft { text: "x".into(), touched: Timestamp(i64::try_from(at).unwrap()), ..Draft::default() };
        let number = |n: usize| review(u8::try_from(n).unwrap(), 1, json!({})).id;
        let mut drafts = Drafts::new((1..=KEPT + 1).map(|n| (number(n), draft(n))));
        assert_eq!((drafts.get(number(1)), drafts.get(number(2)).is_some()), (None, true));
        let one = review(200, 1, json!({}));
        assert_eq!(drafts.change(&one, Timestamp(500), |draft| draft.text = "y".into()), Some(number(2)));
    }
}
