//! The note on selected reviews: it goes with the decisions on the reviews for which it was written. As a draft, it is
//! kept with those that still wait for it, and returns for those only.

use serde_json::Value;
use shared::JsonMap;
use shared::id::ReviewId;

/// A note, and the reviews that were selected when it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub reviews: Vec<ReviewId>,
}

impl Note {
    /// Whether there is nothing to send.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Whether the note was written for this review.
    pub fn is_for(&self, id: ReviewId) -> bool {
        self.reviews.contains(&id)
    }

    /// The text that goes with the decision on a review.
    pub fn of(&self, id: ReviewId) -> &str {
        if self.is_for(id) { &self.text } else { "" }
    }

    /// The note with those of its reviews that are selected (`ticked`), to be kept; `None` without a note, and once none
    /// of them is selected, since those that are only shown are over or have got their decision.
    pub fn kept(&self, ticked: impl Iterator<Item = ReviewId>) -> Option<JsonMap> {
        let reviews: Vec<Value> = ticked.filter(|id| self.is_for(*id)).map(|id| id.to_string().into()).collect();
        let written = !self.is_blank() && !reviews.is_empty();
        let parts = || [("note".to_owned(), self.text.clone().into()), ("reviews".to_owned(), reviews.into())];
        written.then(|| parts().into_iter().collect())
    }

    /// Returns the kept note if it was written for all these reviews.
    pub fn returns(kept: &JsonMap, shown: &[ReviewId]) -> Option<Self> {
        let ids = kept.get("reviews")?.as_array()?.iter().filter_map(|id| id.as_str()?.parse().ok());
        let note = Self { text: kept.get("note")?.as_str()?.to_owned(), reviews: ids.collect() };
        (!shown.is_empty() && shown.iter().all(|id| note.is_for(*id))).then_some(note)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::review;

    #[test]
    fn a_note_is_kept_for_its_reviews_that_wait_and_returns_for_no_others() {
        let [one, two, other] = [1, 2, 3].map(|number| review(number, 1, json!({})).id);
        let kept = |note: &Note, ticked: &[ReviewId]| note.kept(ticked.iter().copied());
        assert_eq!(kept(&Note { text: " ".to_owned(), reviews: vec![one, two] }, &[one, two]), None);
        let note = Note { text: "As agreed".to_owned(), reviews: vec![one, two] };
        let both = kept(&note, &[one, two, other]).unwrap();
        assert_eq!(Note::returns(&both, &[two, one]), Some(note.clone()));
        assert_eq!(Note::returns(&both, &[one]), Some(note.clone()), "the other is decided meanwhile");
        assert_eq!(Note::returns(&both, &[one, other]), None);
        assert_eq!(Note::returns(&both, &[]), None);

        let left = kept(&note, &[two, other]).unwrap();
        assert_eq!((Note::returns(&left, &[one]), Note::returns(&left, &[two]).is_some()), (None, true));
        assert_eq!(kept(&note, &[other]), None, "it was not written for this one");
        assert_eq!(kept(&note, &[one, two]), Some(both), "both decisions were undone");
    }
}
