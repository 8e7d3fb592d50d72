//! A log entry with the part of its review that decides who may see it, read once.

use std::sync::Arc;

use shared::inbox::rights_outline;
use shared::log::Entry;
use shared::review::Review;

pub(super) struct ParsedEntry {
    pub entry: Entry,
    /// The outline of `data.review`.
    pub review: Option<Arc<Review>>,
}

impl ParsedEntry {
    pub fn new(entry: Entry) -> Self {
        let review = entry.event.review().map(|review| Arc::new(rights_outline(&review)));
        Self { entry, review }
    }
}
