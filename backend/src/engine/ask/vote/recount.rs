//! Rechecks who may vote: votes of people who have lost the right no longer count.
//!
//! If the first decision resolves and people are only named, inputs come without the users: beside the commits, the
//! server looks for reviews that no one can decide, and tells the run to recheck ([`crate::engine::Input::Recount`]).

use std::collections::BTreeSet;

use shared::access::{Principal, REVIEWER, has_vote};
use shared::id::{ReviewId, Username};
use shared::log::ReviewChange;
use shared::review::Review;

use super::electorate::{names_somebody, regroup, take_in};
use super::{tally, words};
use crate::engine::builder::Builder;

/// The people for whom a recheck of a review changed something.
#[derive(Debug, Default)]
pub(in crate::engine::ask) struct Rechecked {
    lost: Vec<Username>,
    added: Vec<Username>,
    given_back: Vec<Username>,
    /// The number of people who may decide the review.
    pub(in crate::engine::ask) may: usize,
}

impl Builder<'_> {
    /// Returns the pending reviews whose voters may have changed. `all` adds those for people who are only named.
    pub(in crate::engine) fn to_recount(&self, all: bool) -> Vec<ReviewId> {
        if self.people.is_none() {
            return Vec::new();
        }
        let is_watched = |review: &Review| {
            review.depends_on_people() || !review.delegations.is_empty() || (all && names_somebody(review))
        };
        let asked = self.state.questions.iter().map(|question| question.review);
        asked.filter(|id| self.reviews.get(id).is_some_and(is_watched)).collect()
    }

    /// Rechecks who may decide a pending review: people who have lost the right are no longer counted, nor are their
    /// votes, and whoever has them by delegation loses them too. Returns whether anything changed.
    pub(in crate::engine) fn recount(&mut self, id: ReviewId) -> bool {
        // If the question was answered meanwhile, nobody has to vote.
        if self.state.question(id).is_none() {
            return false;
        }
        let Some(before) = self.reviews.get(&id).cloned() else { return false };
        let mut after = before.clone();
        let Rechecked { lost, added, given_back, .. } = self.recheck(&mut after, |_| false);
        if after == before {
            return false;
        }
        let review = self.change_review(id, |review| *review = after);
        if let Some(review) = review {
            let named = |names: BTreeSet<Username>| Some(Vec::from_iter(names)).filter(|_| !review.is_secret());
            let (lost, added) = (named(BTreeSet::from_iter(lost)), named(BTreeSet::from_iter(added)));
            let change = ReviewChange::Voters { lost, added, given_back };
            self.emit_updated(&review, None, change);
        }
        self.settle_votes(id);
        true
    }

    /// Applies to a review who may decide it now: those who may not are no voters, and have neither votes nor
    /// delegations. Of those who may, `joins` says who becomes a voter; if there are too few voters, all of them do.
    pub(in crate::engine::ask) fn recheck(
        &mut self,
        review: &mut Review,
        joins: impl Fn(&Principal) -> bool,
    ) -> Rechecked {
        let before = std::mem::take(&mut review.barred);
        review.barred = self.barred_from(review);
        let lost = review.barred.iter().filter(|name| !before.contains(name)).cloned().collect();
        let mut rechecked = Rechecked { lost, ..Rechecked::default() };
        review.claimed_by.take_if(|claim| review.barred.contains(&claim.by));
        if self.people.is_none() {
            return rechecked;
        }
        self.consult(review.holders().into_iter().flat_map(|(owner, holder)| [owner, holder]));
        rechecked.lost.extend(self.end_delegations(review));
        rechecked.given_back = self.hand_back(review);
        let now = self.those_who_may(review);
        rechecked.may = now.len();
        if let Some(voting) = &mut review.voting {
            let may = |name: &Username| now.iter().any(|person| person.username == *name);
            rechecked.lost.extend(voting.voters.iter().filter(|name| !may(name)).cloned());
            voting.voters.retain(may);
            voting.voided.retain(may);
            review.decisions.retain(|vote| may(vote.voter()) && !review.barred.contains(&vote.by));
            let new: Vec<_> = now.iter().filter(|person| joins(person)).cloned().collect();
            rechecked.added = take_in(voting, &new);
        }
        regroup(review, &now, |name| rechecked.added.contains(name));
        if let Some(voting) = &mut review.voting
            && !tally::is_possible(&review.policy, voting)
        {
            rechecked.added.extend(take_in(voting, &now));
            regroup(review, &now, |_| true);
        }
        review.problem = words::problem(review, now.len());
        words::refresh(review);
        rechecked
    }

    /// Ends the delegations of votes whose owners have lost the right to decide. Returns the owners.
    fn end_delegations(&self, review: &mut Review) -> Vec<Username> {
        let may = |name: &Username| {
            self.people
                .iter()
                .flat_map(|people| people.iter())
                .any(|person| person.username == *name && has_vote(person, review))
        };
        let ended = review.holders().into_iter().filter(|(owner, _)| !may(owner));
        let ended: Vec<_> = ended.map(|(owner, holder)| (owner.clone(), holder.clone())).collect();
        for (owner, holder) in &ended {
            review.delegations.retain(|handed| handed.owner() != owner);
            release(review, owner, holder);
        }
        ended.into_iter().map(|(owner, _)| owner).collect()
    }

    /// Gives votes of delegates who cannot decide any more back to whoever had them before. Returns those who hold them
    /// now.
    fn hand_back(&self, review: &mut Review) -> Vec<Username> {
        let mut given_back = BTreeSet::new();
        let Some(people) = &self.people else { return Vec::new() };
        let gone = |review: &Review| {
            let is_reviewer =
                |name: &Username| people.iter().any(|person| person.username == *name && person.has(REVIEWER));
            let can = |name: &Username| is_reviewer(name) && !review.barred.contains(name);
            // If an owner holds their own vote and is gone, the vote is lost: nobody had it before them.
            let held = review.holders().into_iter().find(|(owner, holder)| owner != holder && !can(holder));
            held.map(|(owner, holder)| (owner.clone(), holder.clone()))
        };
        while let Some((owner, holder)) = gone(review) {
            given_back.insert(owner.clone());
            review.delegations.retain(|handed| handed.to != holder || *handed.owner() != owner);
            release(review, &owner, &holder);
        }
        let holders = review.holders();
        given_back.iter().map(|owner| holders.get(owner).copied().unwrap_or(owner).clone()).collect()
    }
}

/// Removes a vote that its holder has cast, and their claim, as when they delegate it.
fn release(review: &mut Review, owner: &Username, holder: &Username) {
    review.remove_votes(|vote| vote.by == *holder && vote.voter() == owner);
    review.claimed_by.take_if(|claim| claim.by == *holder);
}
