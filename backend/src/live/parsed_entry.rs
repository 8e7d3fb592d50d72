//! A log entry with its review, which is read once, and only the part that decides who may see it. Imports `shared`
//! only.

use shared::log::Entry;
use shared::review::Review;
use shared::run::Usage;

/// An entry, with what it carries read once.
pub(super) struct ParsedEntry {
    pub entry: Entry,
    /// The review of `data.review`, without its content.
    pub review: Option<Review>,
}

impl ParsedEntry {
    /// Reads what an entry carries.
    pub fn new(entry: Entry) -> Self {
        let review = entry.event.review().map(without_content);
        Self { entry, review }
    }
}

/// A review with only what says who may see it: the ring holds thousands.
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
