//! Acts on a review other than decisions: claims, comments, views.

use std::time::Duration;

use shared::access::{Act, Principal};
use shared::decision::Via;
use shared::error::Mistake;
use shared::id::ReviewId;
use shared::log::{EventData, ReviewChange, ReviewViewed};
use shared::review::{Claim, Comment, Review};

use crate::engine::builder::Builder;
use crate::engine::transition::Refusal;

/// How long a claim holds. It is advisory: it does not stop anybody's decision.
const LEASE: Duration = Duration::from_mins(15);
/// The longest comment, in bytes.
const MAX_COMMENT: usize = 10_000;
/// The maximum number of comments on a review: each version of it holds all of them.
const MAX_COMMENTS: usize = 200;

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

    /// Adds the comment of a person to a review.
    pub(in crate::engine) fn comment(
        &mut self,
        id: ReviewId,
        by: &Principal,
        via: Via,
        text: String,
    ) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Comment)?;
        let mistake = if review.comments.len() >= MAX_COMMENTS {
            Some(("too_many", format!("a review has at most {MAX_COMMENTS} comments")))
        } else if text.trim().is_empty() {
            Some(("required", "the comment is empty".to_owned()))
        } else if text.len() > MAX_COMMENT {
            Some(("too_long", format!("longer than {MAX_COMMENT} bytes")))
        } else {
            None
        };
        if let Some((code, message)) = mistake {
            return Err(Refusal::Invalid(vec![Mistake::new("/text", code, message)]));
        }
        let comment = Comment { by: by.username.clone(), at: self.now, token: by.token_id, text };
        self.update(id, by, ReviewChange::Comment { via: Some(via) }, |review| review.comments.push(comment));
        Ok(())
    }

    /// Changes a review, and emits the change with its author.
    pub(in crate::engine) fn update(
        &mut self,
        id: ReviewId,
        by: &Principal,
        what: ReviewChange,
        change: impl FnOnce(&mut Review),
    ) {
        if let Some(review) = self.change_review(id, change) {
            self.emit_updated(&review, Some(by.into()), what);
        }
    }

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
