//! Acts on a review other than decisions.

mod claim;
mod comment;
mod delegate;
mod reassign;
mod viewed;
mod withdraw;

use shared::access::Principal;
use shared::id::ReviewId;
use shared::log::ReviewChange;
use shared::review::Review;

use crate::engine::builder::Builder;

impl Builder<'_> {
    /// Changes a review, and emits the change with its author.
    fn update(&mut self, id: ReviewId, by: &Principal, what: ReviewChange, change: impl FnOnce(&mut Review)) {
        if let Some(review) = self.change_review(id, change) {
            self.emit_updated(&review, Some(by.into()), what);
        }
    }
}
