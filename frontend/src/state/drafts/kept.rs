//! The drafts of one kind of a person: a limited number, each as the browser stores it.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shared::time::Timestamp;

use super::subject::Subject;

/// A draft, and what is known of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept<D> {
    #[serde(flatten)]
    pub draft: D,
    /// When it was typed at last; the ones touched longest ago go first where there are too many.
    #[serde(default)]
    pub touched: Timestamp,
    /// Whether it is kept in the memory of the page only, since a password may be in it.
    #[serde(skip)]
    pub in_memory: bool,
}

/// Drafts of one kind, by what they are of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shelf<K, D> {
    most: usize,
    drafts: BTreeMap<K, Kept<D>>,
}

impl<K, D> Shelf<K, D>
where
    K: Clone + Ord + Into<Subject>,
    D: Clone + PartialEq + Serialize + DeserializeOwned,
{
    /// No drafts yet, and at most so many.
    pub fn new(most: usize) -> Self {
        Self { most, drafts: BTreeMap::new() }
    }

    pub fn get(&self, of: &K) -> Option<&D> {
        self.drafts.get(of).map(|kept| &kept.draft)
    }

    pub fn get_mut(&mut self, of: &K) -> Option<&mut D> {
        self.drafts.get_mut(of).map(|kept| &mut kept.draft)
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.drafts.keys()
    }

    pub fn put(&mut self, of: K, kept: Kept<D>) {
        self.drafts.insert(of, kept);
    }

    pub fn take(&mut self, of: &K) -> Option<Kept<D>> {
        self.drafts.remove(of)
    }

    /// Sets a draft, or forgets it, where it says something else now. Gives the drafts that are to be kept anew or
    /// forgotten.
    pub fn write(&mut self, of: K, kept: Option<Kept<D>>) -> Vec<Subject> {
        if self.get(&of) == kept.as_ref().map(|kept| &kept.draft) {
            return Vec::new();
        }
        self.set(of, kept)
    }

    /// Sets a draft, or forgets it. Gives the drafts that are to be kept anew or forgotten.
    pub fn set(&mut self, of: K, kept: Option<Kept<D>>) -> Vec<Subject> {
        match kept {
            Some(kept) => self.put(of.clone(), kept),
            None => drop(self.take(&of)),
        }
        std::iter::once(of).chain(self.drop_oldest()).map(Into::into).collect()
    }

    /// Drops the drafts over the limit, and says which.
    pub fn drop_oldest(&mut self) -> Vec<K> {
        let over = self.drafts.len().saturating_sub(self.most);
        if over == 0 {
            return Vec::new();
        }
        let mut by_age: Vec<_> = self.drafts.iter().map(|(of, kept)| (kept.touched, of.clone())).collect();
        by_age.sort();
        let dropped: Vec<K> = by_age.into_iter().take(over).map(|(_, of)| of).collect();
        self.drafts.retain(|of, _| !dropped.contains(of));
        dropped
    }

    /// A draft as JSON; `None` where there is none, or where it is kept in memory only.
    pub fn stored(&self, of: &K) -> Option<String> {
        let kept = self.drafts.get(of).filter(|kept| !kept.in_memory)?;
        serde_json::to_string(kept).ok()
    }

    /// Takes in a draft as JSON, or that it is gone. What cannot be read any more is gone.
    pub fn put_stored(&mut self, of: K, kept: Option<&str>) {
        match kept.and_then(|kept| shared::client::read(kept).ok()) {
            Some(kept) => self.put(of, kept),
            None => drop(self.take(&of)),
        }
    }
}
