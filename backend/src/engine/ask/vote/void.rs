//! Voids votes when the content changes.

use shared::id::Username;
use shared::review::{Item, Review};
use shared::voting::Edited;

use super::words;
use crate::engine::digest;

/// Voids the votes so far, and returns whose they were.
pub(in crate::engine::ask) fn void(review: &mut Review) -> Vec<Username> {
    let voided: Vec<Username> = review.decisions.drain(..).map(|decision| decision.voter().clone()).collect();
    if let Some(voting) = &mut review.voting {
        let new: Vec<_> = voided.iter().filter(|name| !voting.voided.contains(name)).cloned().collect();
        voting.voided.extend(new);
    }
    words::refresh(review);
    voided
}

/// Puts the edits of voters over items from the state, and returns those that still hold. An edit is dropped if the
/// state's value has changed since.
pub(in crate::engine::ask) fn overlay(review: &Review, items: &mut [Item]) -> Vec<Edited> {
    let mut kept = Vec::new();
    for edited in review.voting.iter().flat_map(|voting| &voting.edited) {
        let shown = review.items.iter().find(|item| item.key == edited.key);
        let item = items.iter_mut().find(|item| item.key == edited.key);
        if let (Some(shown), Some(item)) = (shown, item)
            && digest::of_value(&item.value) == edited.replaces
        {
            item.value = shown.value.clone();
            kept.push(edited.clone());
        }
    }
    kept
}
