//! Records that a person has viewed a review. That changes nothing.

use shared::access::{Act, Principal};
use shared::id::ReviewId;
use shared::log::{EventData, ReviewViewed};

use crate::engine::builder::Builder;
use crate::engine::transition::Refusal;

impl Builder<'_> {
    /// Emits that a person opened a review, whether it is pending or not, and what they saw.
    pub(in crate::engine) fn viewed(
        &mut self,
        id: ReviewId,
        by: &Principal,
        seen: Option<ReviewViewed>,
    ) -> Result<(), Refusal> {
        let review = self.visible_review(id, by, Act::SeeReview)?;
        let seen = seen.unwrap_or_else(|| ReviewViewed::of(review));
        self.emit(Some(id), Some(by.into()), EventData::ReviewViewed(seen));
        Ok(())
    }
}
