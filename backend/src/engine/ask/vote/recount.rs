//! Rechecks who may vote: votes of people who have lost the right no longer count.
//!
//! If the first decision resolves and people are only named, inputs come without the users: beside the commits, the
//! server looks for reviews that no one can decide, and tells the run to recheck ([`crate::engine::Input::Recount`]).

use std::collections::BTreeSet;

use shared::access::REVIEWER;
use shared::id::{ReviewId, Username};
use shared::log::ReviewChange;
use shared::review::Review;

use super::electorate::{names_somebody, regroup, take_in};
use super::{tally, words};
use crate::engine::builder::Builder;

impl Builder<'_> {
    /// Returns the pending reviews whose voters may have changed. `all` adds those that were delegated, and those for
    /// people who are only named.
    pub(in crate::engine) fn to_recount(&self, all: bool) -> Vec<ReviewId> {
        if self.people.is_none() {
            return Vec::new();
        }
        let is_watched = |review: &Review| {
            review.depends_on_people() || (all && (names_somebody(review) || !review.delegations.is_empty()))
        };
        let asked = self.state.questions.iter().map(|question| question.review);
        asked.filter(|id| self.reviews.get(id).is_some_and(is_watched)).collect()
    }

    /// Rechecks who may vote on a pending review: people who have lost the right are no longer counted, nor are their
    /// votes. Returns whether anything changed.
    pub(in crate::engine) fn recount(&mut self, id: ReviewId) -> bool {
        // If the question was answered meanwhile, nobody has to vote.
        if self.state.question(id).is_none() {
            return false;
        }
        let Some(before) = self.reviews.get(&id).cloned() else { return false };
        let mut after = before.clone();
        let given_back = self.hand_back(&mut after);
        let now = self.those_who_may(&after);
        let (mut lost, mut added) = (Vec::new(), Vec::new());
        if let Some(voting) = &mut after.voting {
            let may = |name: &Username| now.iter().any(|person| person.username == *name);
            lost = voting.voters.iter().filter(|name| !may(name)).cloned().collect();
            voting.voters.retain(may);
            voting.voided.retain(may);
            after.decisions.retain(|vote| may(vote.voter()));
        }
        regroup(&mut after, &now, |_| false);
        if let Some(voting) = &mut after.voting
            && !tally::is_possible(&after.policy, voting)
        {
            added = take_in(voting, &now);
            regroup(&mut after, &now, |_| true);
        }
        after.problem = words::problem(&after, now.len());
        words::refresh(&mut after);
        if after == before {
            return false;
        }
        let review = self.change_review(id, |review| *review = after);
        if let Some(review) = review {
            let named = |names| Some(names).filter(|_| !review.is_secret());
            let change = ReviewChange::Voters { lost: named(lost), added: named(added), given_back };
            self.emit_updated(&review, None, change);
        }
        self.settle_votes(id);
        true
    }

    /// Gives votes of delegates who cannot decide any more back to whoever had them before. Returns those who hold them
    /// now.
    fn hand_back(&self, review: &mut Review) -> Vec<Username> {
        let mut given_back = BTreeSet::new();
        let Some(people) = &self.people else { return Vec::new() };
        let can = |name: &Username| people.iter().any(|person| person.username == *name && person.has(REVIEWER));
        let gone = |review: &Review| {
            // If an owner holds their own vote and is gone, the vote is lost: nobody had it before them.
            let held = review.holders().into_iter().find(|(owner, holder)| owner != holder && !can(holder));
            held.map(|(owner, holder)| (owner.clone(), holder.clone()))
        };
        while let Some((owner, holder)) = gone(review) {
            given_back.insert(owner.clone());
            review.delegations.retain(|handed| handed.to != holder || *handed.owner() != owner);
            // Their decision and their claim go too, as when they delegate it.
            review.decisions.retain(|decision| decision.by != holder || *decision.voter() != owner);
            review.claimed_by.take_if(|claim| claim.by == holder);
        }
        let holders = review.holders();
        given_back.iter().map(|owner| holders.get(owner).copied().unwrap_or(owner).clone()).collect()
    }
}
