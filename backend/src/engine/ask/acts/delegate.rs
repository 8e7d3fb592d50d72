//! Delegates a review to another person, whose decision counts in the place of the delegator's.

use shared::access::{Act, Principal, may_be_handed, votes_to_hand_over};
use shared::decision::Via;
use shared::error::Mistake;
use shared::id::{ReviewId, Username};
use shared::log::ReviewChange;
use shared::review::Delegation;

use crate::engine::ask::vote;
use crate::engine::builder::Builder;
use crate::engine::transition::Refusal;

/// The maximum number of delegations of votes on one review.
const MAX_DELEGATIONS: usize = 20;

impl Builder<'_> {
    /// Hands all votes that a person has on a review to somebody else. Votes that the person has cast on it no longer
    /// count, and their claim ends.
    pub(in crate::engine) fn delegate(
        &mut self,
        id: ReviewId,
        by: &Principal,
        via: Via,
        to: &Username,
        person: Option<&Principal>,
    ) -> Result<(), Refusal> {
        let review = self.pending_review(id, by, Act::Decide)?;
        let votes = votes_to_hand_over(by, review);
        if votes.is_empty() {
            let why = "a deputy cannot delegate: decide, or leave it to the person you stand in for";
            return Err(Refusal::Forbidden(why.to_owned()));
        }
        let refused = |code, message: String| Err(Refusal::Invalid(vec![Mistake::new("/to", code, message)]));
        let Some(person) = person else {
            return refused("unknown", format!("there is no active user `{to}`"));
        };
        if person.username == by.username {
            return refused("not_allowed", "you cannot delegate to yourself".to_owned());
        }
        if let Err(why) = may_be_handed(person, review) {
            return refused("not_allowed", format!("`{to}` may not decide this review: {why}"));
        }
        if review.delegations.len() + votes.len() > MAX_DELEGATIONS {
            let message = "this review was delegated too often: decide it, or say in a comment what is missing";
            return refused("too_many", message.to_owned());
        }
        let at = self.now;
        let (from, token) = (&by.username, by.token_id);
        self.update(id, by, ReviewChange::Delegated { via: Some(via) }, |review| {
            review.remove_votes(|vote| vote.by == *from);
            if review.claimed_by.as_ref().is_some_and(|claim| claim.by == *from) {
                review.claimed_by = None;
            }
            let handed = votes.into_iter().map(|on_behalf_of| Delegation {
                from: from.clone(),
                to: to.clone(),
                on_behalf_of,
                token,
                at,
            });
            review.delegations.extend(handed);
            vote::refresh(review);
        });
        Ok(())
    }
}
