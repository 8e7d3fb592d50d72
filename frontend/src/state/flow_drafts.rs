//! What a person has typed into the editor of flows and not saved yet, by flow and by the version that it began from:
//! somebody may have saved another version since, and neither takes the place of the other. Kept as drafts of reviews
//! are ([`super::drafts`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared::time::Timestamp;

/// How many of these drafts of one person are kept; the ones touched longest ago go first.
const KEPT: usize = 20;

/// A flow, and the version that is edited; 0: it is not saved yet.
pub type Edited = (String, u32);

/// What somebody has typed for one version of a flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowDraft {
    /// All of the text.
    pub text: String,
    /// When it was touched last.
    pub touched: Timestamp,
}

/// The drafts of flows of the person who is logged in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowDrafts {
    by_version: BTreeMap<Edited, FlowDraft>,
    /// How often drafts came that were not typed on this page.
    taken_over: u64,
}

impl FlowDrafts {
    /// Takes in all that was kept for whoever has logged in; the oldest of too many are left out.
    pub fn replace(&mut self, kept: impl IntoIterator<Item = (Edited, FlowDraft)>) {
        self.by_version = kept.into_iter().collect();
        self.taken_over += 1;
        while self.drop_oldest().is_some() {}
    }

    /// What was typed for a version of a flow.
    pub fn get(&self, edited: &Edited) -> Option<&FlowDraft> {
        self.by_version.get(edited)
    }

    /// The versions of a flow for which something was typed.
    pub fn versions<'a>(&'a self, flow: &'a str) -> impl Iterator<Item = u32> + 'a {
        self.by_version.keys().filter(move |(id, _)| id == flow).map(|(_, version)| *version)
    }

    /// Notes what was typed; nothing: it was saved, or discarded. Gives the drafts that are to be kept anew or forgotten.
    pub fn write(&mut self, edited: &Edited, text: Option<String>, now: Timestamp) -> Vec<Edited> {
        if self.get(edited).map(|draft| &draft.text) == text.as_ref() {
            return Vec::new();
        }
        match text {
            Some(text) => drop(self.by_version.insert(edited.clone(), FlowDraft { text, touched: now })),
            None => drop(self.by_version.remove(edited)),
        }
        std::iter::once(edited.clone()).chain(self.drop_oldest()).collect()
    }

    /// Takes in what another tab has kept, or that it has forgotten it.
    pub fn put(&mut self, edited: Edited, draft: Option<FlowDraft>) {
        match draft {
            Some(draft) => drop(self.by_version.insert(edited, draft)),
            None => drop(self.by_version.remove(&edited)),
        }
        self.taken_over += 1;
    }

    /// How often drafts came that were not typed on this page: an editor follows these, and not what it has written itself.
    pub fn taken_over(&self) -> u64 {
        self.taken_over
    }

    fn drop_oldest(&mut self) -> Option<Edited> {
        let oldest = || self.by_version.iter().min_by_key(|(_, draft)| draft.touched).map(|(edited, _)| edited.clone());
        let edited = (self.by_version.len() > KEPT).then(oldest).flatten()?;
        self.by_version.remove(&edited);
        Some(edited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: u32) -> Edited {
        ("article".to_owned(), version)
    }

    #[test]
    fn each_version_has_a_draft_of_its_own_and_what_is_saved_has_none() {
        let mut drafts = FlowDrafts::default();
        assert_eq!(drafts.write(&of(1), Some("a".into()), Timestamp(1)), [of(1)]);
        assert_eq!(drafts.write(&of(1), Some("a".into()), Timestamp(2)), [], "nothing new is to be kept");
        assert_eq!(drafts.write(&of(3), Some("b".into()), Timestamp(3)), [of(3)]);
        assert_eq!(drafts.versions("article").collect::<Vec<_>>(), [1, 3]);
        assert_eq!(drafts.versions("art").count(), 0);
        assert_eq!(drafts.write(&of(3), None, Timestamp(4)), [of(3)]);
        assert_eq!((drafts.get(&of(1)).is_some(), drafts.get(&of(3))), (true, None));
        assert_eq!(drafts.taken_over(), 0, "all of it was typed here");
    }

    #[test]
    fn what_another_tab_writes_is_told_from_what_is_typed_here() {
        let mut drafts = FlowDrafts::default();
        drafts.put(of(1), Some(FlowDraft { text: "a".into(), touched: Timestamp(1) }));
        drafts.put(of(1), None);
        assert_eq!((drafts.get(&of(1)), drafts.taken_over()), (None, 2));
    }

    #[test]
    fn the_oldest_of_too_many_go() {
        let mut drafts = FlowDrafts::default();
        let draft = |at: u32| FlowDraft { text: "a".into(), touched: Timestamp(at.into()) };
        let most = u32::try_from(KEPT).unwrap();
        drafts.replace((1..=most + 1).map(|version| (of(version), draft(version))));
        assert_eq!((drafts.get(&of(1)), drafts.get(&of(2)).is_some()), (None, true));
        assert_eq!(drafts.write(&of(1), Some("b".into()), Timestamp(100)), [of(1), of(2)]);
    }
}
