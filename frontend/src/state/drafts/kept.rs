//! A bounded collection of one person's drafts of one kind, with their stored form.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shared::time::Timestamp;

use super::draft_key::DraftKey;

/// A draft with its bookkeeping.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept<D> {
    #[serde(flatten)]
    pub draft: D,
    /// The time of the last change. When there are too many drafts, those changed longest ago are dropped first.
    #[serde(default)]
    pub touched: Timestamp,
    /// Whether the draft is kept only in the memory of the page, since it may contain a password.
    #[serde(skip)]
    pub in_memory: bool,
}

/// Drafts of one kind, by key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shelf<K, D> {
    most: usize,
    drafts: BTreeMap<K, Kept<D>>,
}

impl<K, D> Shelf<K, D>
where
    K: Clone + Ord + Into<DraftKey>,
    D: Clone + PartialEq + Serialize + DeserializeOwned,
{
    /// Creates an empty shelf for at most this many drafts.
    pub fn new(most: usize) -> Self {
        Self { most, drafts: BTreeMap::new() }
    }

    pub fn get(&self, of: &K) -> Option<&D> {
        self.drafts.get(of).map(|kept| &kept.draft)
    }

    /// Whether a draft is only in the memory of the page.
    pub fn is_in_memory(&self, of: &K) -> bool {
        self.drafts.get(of).is_some_and(|kept| kept.in_memory)
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

    /// Sets a draft, or removes it if `kept` is `None`; does nothing if the content stays the same. Returns the
    /// keys whose stored form has to be written or removed.
    pub fn write(&mut self, of: K, kept: Option<Kept<D>>) -> Vec<DraftKey> {
        if self.get(&of) == kept.as_ref().map(|kept| &kept.draft) {
            return Vec::new();
        }
        self.set(of, kept)
    }

    /// Sets a draft, or removes it if `kept` is `None`. Returns the keys whose stored form has to be written or
    /// removed.
    pub fn set(&mut self, of: K, kept: Option<Kept<D>>) -> Vec<DraftKey> {
        match kept {
            Some(kept) => self.put(of.clone(), kept),
            None => drop(self.take(&of)),
        }
        std::iter::once(of).chain(self.drop_oldest()).map(Into::into).collect()
    }

    /// Drops the oldest drafts over the limit, and returns their keys.
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

    /// A draft as JSON; `None` if there is none, or if it is kept in memory only.
    pub fn stored(&self, of: &K) -> Option<String> {
        let kept = self.drafts.get(of).filter(|kept| !kept.in_memory)?;
        serde_json::to_string(kept).ok()
    }

    /// Takes over the stored form of a draft. `None` and unreadable JSON remove the draft.
    pub fn put_stored(&mut self, of: K, kept: Option<&str>) {
        match kept.and_then(|kept| shared::client::read(kept).ok()) {
            Some(kept) => self.put(of, kept),
            None => drop(self.take(&of)),
        }
    }
}
