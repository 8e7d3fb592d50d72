//! A log entry with its review, which is read once, and only the part that decides who may see it. Imports `shared`
//! only.

use shared::log::Entry;
use shared::review::Review;
use shared::run::Usage;

/// An entry, with its review parsed once.
pub(super) struct ParsedEntry {
    pub entry: Entry,
    /// The review of `data.review`, without its content.
    pub review: Option<Review>,
}

impl ParsedEntry {
    /// Parses the review of an entry.
    pub fn new(entry: Entry) -> Self {
        let review = entry.event.review().map(without_content);
        Self { entry, review }
    }
}

/// Removes everything from a review that does not determine who may see it, since the ring holds thousands.
pub(super) fn without_content(mut review: Review) -> Review {
    review.prompt = String::new();
    review.items = Vec::new();
    review.options = Vec::new();
    review.actions = Vec::new();
    review.comments = Vec::new();
    review.usage = Usage::default();
    review.context.metadata.clear();
    review.resolution = None;
    for decision in &mut review.decisions {
        decision.edits.clear();
        decision.metadata.clear();
        decision.shown = None;
        decision.comment = None;
    }
    review
}
