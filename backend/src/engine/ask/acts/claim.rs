//! Claims of a review: a person takes it for a limited time, and releases it.

use std::time::Duration;

use shared::access::{Act, Principal};
use shared::decision::Via;
use shared::id::ReviewId;
use shared::log::ReviewChange;
use shared::review::{Claim, Review};

use crate::engine::builder::Builder;
use crate::engine::transition::Refusal;

/// How long a claim holds. It is advisory: it does not stop anybody's decision.
const LEASE: Duration = Duration::from_mins(15);

impl Builder<'_> {
    /// Claims a review for a person. Claiming again in the second half of the lease renews it.
    pub(in crate::engine) fn claim(&mut self, id: ReviewId, by: &Principal, via: Via) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Handle)?;
        self.refuse_if_claimed(review, by)?;
        // Each version of a review is kept for ever, so a claim that would hardly be longer is not written.
        let own = |claim: &Claim| claim.by == by.username && claim.until > self.now.after(LEASE / 2);
        if review.claimed_by.as_ref().is_some_and(own) {
            return Ok(());
        }
        let claim = Claim { by: by.username.clone(), token: by.token_id, until: self.now.after(LEASE) };
        self.update(id, by, ReviewChange::Claim { via: Some(via) }, |review| review.claimed_by = Some(claim));
        Ok(())
    }

    /// Releases the claim of a person. Without a claim, nothing changes.
    pub(in crate::engine) fn release(&mut self, id: ReviewId, by: &Principal, via: Via) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Handle)?;
        self.refuse_if_claimed(review, by)?;
        if review.claimed_by.is_some() {
            self.update(id, by, ReviewChange::Release { via: Some(via) }, |review| review.claimed_by = None);
        }
        Ok(())
    }

    fn refuse_if_claimed(&self, review: &Review, by: &Principal) -> Result<(), Refusal> {
        let other = |claim: &Claim| claim.by != by.username && claim.until > self.now;
        if review.claimed_by.as_ref().is_some_and(other) {
            return Err(Refusal::ReviewClaimed(Box::new(review.clone())));
        }
        Ok(())
    }
}
