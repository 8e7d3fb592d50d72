//! The voters, who are fixed when a review is requested, without those who have lost the right since.
//!
//! The engine itself knows no people: the existing users come with the snapshot, for flows that need them. If the
//! voters could not accept even if all of them did, the review says so (`problem`), and waits: then, and only then,
//! people who have the right now are added. If the run stopped instead, its work would be lost because of a role that
//! an admin can give in a moment; timers and withdrawals work as always.

use std::collections::BTreeSet;

use shared::access::{Principal, has_vote, voice};
use shared::id::{NodeId, ReviewId, Username};
use shared::review::{Reassignment, Review};
use shared::voting::{Voting, VotingGroup};

use super::tally::MAX_VOTERS;
use super::words;
use crate::engine::builder::Builder;

impl Builder<'_> {
    /// Fixes the voters of a new review, and says on it if nobody could resolve it.
    pub(in crate::engine::ask) fn open_voting(&mut self, review: &mut Review) {
        review.barred = self.barred_from(review);
        if !review.policy.is_first() {
            let policy = review.policy.clone();
            add_group_roles(review, policy.groups().map(|(role, _)| role));
            review.voting = Some(Voting::default());
        }
        if self.people.is_some() && (review.depends_on_people() || names_somebody(review)) {
            let now = self.those_who_may(review);
            if let Some(voting) = &mut review.voting {
                take_in(voting, &now);
            }
            regroup(review, &now, |_| true);
            review.problem = words::problem(review, now.len());
            words::refresh(review);
        }
    }

    /// Returns those who may not decide a review because of what they did: they decided or voted at the step that it
    /// checks (`not_same_as`), or chose by a reassignment who decides it.
    pub(in crate::engine::ask) fn barred_from(&self, review: &Review) -> Vec<Username> {
        let checked = review.node.as_ref().zip(review.reviewers.not_same_as.as_ref());
        let deciders = checked.and_then(|(own, checked)| self.state.deciders.get(&own.beside(checked)));
        let mut barred: Vec<Username> = deciders.into_iter().flatten().cloned().collect();
        for Reassignment { by, .. } in &review.reassignments {
            if !barred.contains(by) {
                barred.push(by.clone());
            }
        }
        barred
    }

    /// Returns the pending reviews that check a step which somebody new has decided since.
    pub(in crate::engine) fn checks_with_new_deciders(&self) -> Vec<ReviewId> {
        if self.state.deciders.is_empty() {
            return Vec::new();
        }
        let asked = self.state.questions.iter().filter_map(|question| self.reviews.get(&question.review));
        let outdated = asked.filter(|review| review.barred != self.barred_from(review));
        outdated.map(|review| review.id).collect()
    }

    /// Adds the people of a role to the voters of a review. Returns the review; `None` if it does not depend on people.
    pub(in crate::engine::ask) fn admit(&mut self, id: ReviewId, role: &str) -> Option<Review> {
        self.people.as_ref()?;
        let review = self.reviews.get(&id).filter(|review| review.depends_on_people())?.clone();
        let now = self.those_who_may(&review);
        let of_role: Vec<_> = now.iter().filter(|person| person.has(role)).cloned().collect();
        let review = self.reviews.get_mut(&id)?;
        let new = review.voting.as_mut().map(|voting| take_in(voting, &of_role)).unwrap_or_default();
        regroup(review, &now, |name| new.contains(name));
        review.problem = words::problem(review, now.len());
        words::refresh(review);
        Some(review.clone())
    }

    /// Returns the people who may decide a review now, whoever could when it was opened. If votes are counted, it is
    /// those who have a vote of their own, whoever casts it. Otherwise the first one suffices: all that counts is
    /// whether there is anybody.
    pub(super) fn those_who_may(&mut self, review: &Review) -> Vec<Principal> {
        let people = self.people.iter().flat_map(|people| people.iter());
        let those: Vec<Principal> = match review.voting {
            Some(_) => people.filter(|person| has_vote(person, review)).cloned().collect(),
            None => people.filter(|person| voice(person, review).is_ok()).take(1).cloned().collect(),
        };
        self.consult(those.iter().map(|person| &person.username));
        those
    }

    /// Notes that the transition depends on these people, whether they exist or not.
    pub(in crate::engine::ask) fn consult<'n>(&mut self, names: impl IntoIterator<Item = &'n Username>) {
        self.consulted.get_or_insert_default().extend(names.into_iter().cloned());
    }

    /// Remembers who decided or voted at a node, if others are to check it (`not_same_as`).
    pub(in crate::engine::ask) fn remember_deciders(&mut self, node: &NodeId, by: impl IntoIterator<Item = Username>) {
        if self.flow.is_checked_by_others(node) {
            self.state.deciders.entry(node.clone()).or_default().extend(by);
        }
    }
}

/// Whether a review is for people by name or role, and not for every reviewer.
pub(super) fn names_somebody(review: &Review) -> bool {
    !review.reviewers.roles.is_empty() || !review.reviewers.users.is_empty()
}

/// Adds the roles of a policy's groups to the reviewers.
fn add_group_roles<'a>(review: &mut Review, roles: impl Iterator<Item = &'a String>) {
    let mut roles = roles.peekable();
    let reviewers = &mut review.reviewers;
    if roles.peek().is_some() && reviewers.roles.is_empty() && reviewers.users.is_empty() {
        reviewers.roles.push(shared::access::REVIEWER.to_owned());
    }
    for role in roles {
        if !reviewers.roles.contains(role) {
            reviewers.roles.push(role.clone());
        }
    }
}

/// Adds people to the voters, and returns those who are new. More than [`MAX_VOTERS`] are not added at all.
pub(super) fn take_in(voting: &mut Voting, people: &[Principal]) -> Vec<Username> {
    if people.len() > MAX_VOTERS {
        return Vec::new();
    }
    let known: BTreeSet<_> = voting.voters.iter().cloned().collect();
    let new: Vec<_> = people.iter().map(|person| &person.username).filter(|name| !known.contains(*name)).collect();
    let new: Vec<Username> = new.into_iter().cloned().collect();
    voting.voters.extend(new.clone());
    new
}

/// Puts the voters into the groups whose role they have. `comes_in` says who may enter a group that they were not in
/// before.
pub(super) fn regroup(review: &mut Review, people: &[Principal], comes_in: impl Fn(&Username) -> bool) {
    let Some(voting) = &mut review.voting else { return };
    let has = |name: &Username, role: &str| people.iter().any(|person| person.username == *name && person.has(role));
    let was = |name: &Username, role: &str| {
        voting.groups.iter().any(|group| group.role == *role && group.voters.contains(name))
    };
    let groups = review.policy.groups().map(|(role, _)| {
        let stays = |name: &&Username| has(name, role) && (comes_in(name) || was(name, role));
        VotingGroup { role: role.clone(), voters: voting.voters.iter().filter(stays).cloned().collect() }
    });
    voting.groups = groups.collect();
}
