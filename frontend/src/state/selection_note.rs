//! The note on selected reviews as a draft: it is kept with the reviews that still wait for it, and returns for those
//! only.

use serde_json::Value;
use shared::JsonMap;
use shared::id::ReviewId;

use super::selection::Selection;

/// The note of a selection with its reviews, to be kept; `None` without a note, and once none of them is selected, since
/// those that are only shown are over or have got their decision.
pub fn kept(selection: &Selection) -> Option<JsonMap> {
    let reviews: Vec<Value> = selection.ticked().map(|id| id.to_string().into()).collect();
    let written = !selection.note.trim().is_empty() && !reviews.is_empty();
    let parts = || [("note".to_owned(), selection.note.clone().into()), ("reviews".to_owned(), reviews.into())];
    written.then(|| parts().into_iter().collect())
}

/// Returns the kept note if it was written for all these reviews.
pub fn returns(kept: &JsonMap, reviews: &[ReviewId]) -> Option<String> {
    let known = kept.get("reviews")?.as_array()?;
    let is_known = |id: &ReviewId| known.iter().any(|known| known.as_str() == Some(id.to_string().as_str()));
    let note = kept.get("note")?.as_str()?;
    (!reviews.is_empty() && reviews.iter().all(is_known)).then(|| note.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    #[test]
    fn a_note_returns_for_its_reviews_and_for_no_others() {
        let [one, two, other] = [1, 2, 3].map(|number| review(number, 1, json!({})).id);
        let mut selection = Selection::default();
        selection.tick(one);
        selection.tick(two);
        assert_eq!(kept(&selection), None);
        selection.note = "As agreed".to_owned();
        let both = kept(&selection).unwrap();
        assert_eq!(returns(&both, &[two, one]).as_deref(), Some("As agreed"));
        assert_eq!(returns(&both, &[one]).as_deref(), Some("As agreed"), "the other is decided meanwhile");
        assert_eq!(returns(&both, &[one, other]), None);
        assert_eq!(returns(&both, &[]), None);
    }

    #[test]
    fn a_note_is_kept_only_for_reviews_that_are_not_decided_yet() {
        let [one, two] = [1, 2].map(|number| review(number, 1, json!({})).id);
        let mut selection = Selection::default();
        selection.tick(one);
        selection.tick(two);
        selection.note = "As agreed".to_owned();
        let both = kept(&selection);
        selection.follow(true, |id| (id == two).then_some(1));
        let left = kept(&selection).unwrap();
        assert_eq!((returns(&left, &[one]), returns(&left, &[two]).as_deref()), (None, Some("As agreed")));
        selection.follow(true, |_| None);
        assert_eq!(kept(&selection), None);
        selection.follow(true, |_| Some(1));
        assert_eq!(kept(&selection), both, "both decisions were undone");
    }
}
