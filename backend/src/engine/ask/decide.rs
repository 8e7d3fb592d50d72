//! The decision of a person: whether it is allowed, and its effect on the run. Everything is checked before anything is
//! changed.

pub(super) mod effect;
pub(super) mod validate;
pub(super) mod verdict;

use shared::access::{Act, Principal, access, voice};
use shared::decision::{Decision, DecisionRequest, Via};
use shared::id::ReviewId;
use shared::review::{Checked, Review};

use crate::engine::builder::Builder;
use crate::engine::digest;
use crate::engine::transition::Refusal;

use super::fit::Fitting;
use verdict::CheckedVerdict;

impl Builder<'_> {
    /// Applies the decision or the vote of a person.
    pub(in crate::engine) fn decide(
        &mut self,
        id: ReviewId,
        by: &Principal,
        via: Via,
        request: DecisionRequest,
    ) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Decide)?;
        if request.revision != review.revision || request.digest != review.digest {
            return Err(Refusal::RevisionChanged(Box::new(review.clone())));
        }
        let subject = &self.state.question(id).ok_or(Refusal::NotFound)?.subject;
        let until = self.closes_at(id);
        let fitting = self.fit(review, subject, &request).map_err(|refusal| refusal.in_time(until));
        let Fitting { said, put_in, requests } = fitting?;
        let sent = Some(digest::of_request(&request));
        let on_behalf_of = voice(by, review).ok().flatten();
        let votes = review.voting.is_some();
        let granted = match &said {
            CheckedVerdict::Actions(decisions, _) => {
                let review = review.clone();
                self.remembered(&review, by, on_behalf_of.as_ref(), decisions)?
            }
            CheckedVerdict::Node(_) => Vec::new(),
        };
        let DecisionRequest { revision, digest, verdict, edits, comment, metadata } = request;
        let decision = Decision {
            by: by.username.clone(),
            on_behalf_of,
            at: self.now,
            via,
            token: by.token_id,
            revision,
            digest,
            shown: None,
            sent,
            verdict,
            edits,
            comment,
            metadata,
            grant: None,
            requests,
        };
        let done = if votes {
            self.vote(id, decision, &put_in)
        } else {
            let by = std::slice::from_ref(&decision.by);
            self.carry_out(id, said, &decision, &put_in, by)
        };
        done.ok_or(Refusal::NotFound)?;
        self.give(granted);
        Ok(())
    }

    /// Returns what guardrails would do with a decision of a person who may make it.
    pub(in crate::engine) fn check_only(
        &self,
        id: ReviewId,
        by: &Principal,
        request: &DecisionRequest,
    ) -> Result<Checked, Refusal> {
        let review = self.pending_review(id, by, Act::Decide)?;
        if request.revision != review.revision || request.digest != review.digest {
            return Err(Refusal::RevisionChanged(Box::new(review.clone())));
        }
        self.check_size(request)?;
        self.check_decision(review, request)
    }

    /// Returns a pending review if the person may act on it in this way.
    pub(in crate::engine::ask) fn pending_review<'s>(
        &'s self,
        id: ReviewId,
        by: &Principal,
        act: impl FnOnce(&'s Review) -> Act<'s>,
    ) -> Result<&'s Review, Refusal> {
        let review = self.visible_review(id, by, act)?;
        if !review.is_pending() {
            return Err(Refusal::ReviewResolved(Box::new(review.clone())));
        }
        Ok(review)
    }

    /// Returns a review, whether pending or not, if the person may act on it in this way.
    pub(in crate::engine::ask) fn visible_review<'s>(
        &'s self,
        id: ReviewId,
        by: &Principal,
        act: impl FnOnce(&'s Review) -> Act<'s>,
    ) -> Result<&'s Review, Refusal> {
        let own = |review: &&Review| review.run_id == self.state.shown_id();
        let review = self.reviews.get(&id).filter(own).ok_or(Refusal::NotFound)?;
        Refusal::unless(access(by, act(review)))?;
        Ok(review)
    }
}
