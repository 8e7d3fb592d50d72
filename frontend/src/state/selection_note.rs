//! The note on selected reviews as a draft: it is kept with the reviews for which it was written, and returns for those
//! only.

use serde_json::Value;
use shared::JsonMap;
use shared::id::ReviewId;

use super::selection::Selection;

/// The note of a selection with its reviews, to be kept; `None` without a note.
pub fn kept(selection: &Selection) -> Option<JsonMap> {
    let reviews: Vec<Value> = selection.shown().into_iter().map(|id| id.to_string().into()).collect();
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
        let kept = kept(&selection).unwrap();
        assert_eq!(returns(&kept, &[two, one]).as_deref(), Some("As agreed"));
        assert_eq!(returns(&kept, &[one]).as_deref(), Some("As agreed"), "the other is decided meanwhile");
        assert_eq!(returns(&kept, &[one, other]), None);
        assert_eq!(returns(&kept, &[]), None);
    }
}
