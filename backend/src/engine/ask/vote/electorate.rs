//! Who may vote: fixed when a review is asked, less those who have lost the right since.
//!
//! The engine knows nobody by itself: the people who exist come with the snapshot, for flows that need them. Where
//! those who may vote could not accept even if all of them did, the review says so (`problem`), and waits: then, and
//! only then, people who have the right now are taken in. A run that stopped instead would lose its work because of a
//! role that an admin can give in a moment; timers and withdrawals work as always.
//!
//! Where the first decision resolves and people are only named, the people do not come with every input: the server
//! looks for what waits for nobody beside the commits, and tells the run to look again ([`crate::engine::Input::Recount`]).

use std::collections::BTreeSet;

use shared::access::{Principal, has_vote, voice};
use shared::id::{NodeId, ReviewId, Username};
use shared::log::ReviewChange;
use shared::review::Review;
use shared::voting::{Voting, VotingGroup};

use crate::engine::builder::Builder;
use super::{tally, words};

/// The most people who may vote on one review.
pub(super) const MAX_VOTERS: usize = 1000;

impl Builder<'_> {
    /// Fixes who may vote on a new review, and says where nobody could resolve it.
    pub(in crate::engine::ask) fn open_voting(&mut self, review: &mut Review) {
        if let (Some(own), Some(checked)) = (&review.node, &review.reviewers.not_same_as) {
            review.barred = self.state.deciders.get(&own.beside(checked)).into_iter().flatten().cloned().collect();
        }
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

    /// The pending reviews whose voters may have changed. `all`: also those for people who are only named.
    pub(in crate::engine) fn watched(&self, all: bool) -> Vec<ReviewId> {
        if self.people.is_none() {
            return Vec::new();
        }
        let is_watched = |review: &Review| review.depends_on_people() || (all && names_somebody(review));
        let asked = self.state.questions.iter().map(|question| question.review);
        asked.filter(|id| self.reviews.get(id).is_some_and(is_watched)).collect()
    }

    /// Looks again at who may vote on a pending review; whoever has lost the right is no longer counted, nor is their vote.
    /// Says whether anything changed.
    pub(in crate::engine) fn recount(&mut self, id: ReviewId) -> bool {
        // One that was answered meanwhile waits for nobody.
        if self.state.question(id).is_none() {
            return false;
        }
        let Some(before) = self.reviews.get(&id).cloned() else { return false };
        let now = self.those_who_may(&before);
        let mut after = before.clone();
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
            let change = ReviewChange::Voters { lost: named(lost), added: named(added) };
            self.emit_updated(&review, None, change);
        }
        self.settle_votes(id);
        true
    }

    /// A role is asked too: its people may vote with the others. The review, where that changed it.
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

    /// The people who have the right to decide a review now, whoever could when it was asked. Where votes are counted,
    /// those who have one of their own, whoever casts it.
    fn those_who_may(&mut self, review: &Review) -> Vec<Principal> {
        self.people_asked = true;
        let may = |person: &&Principal| match review.voting {
            Some(_) => has_vote(person, review),
            None => voice(person, review).is_ok(),
        };
        self.people.iter().flat_map(|people| people.iter()).filter(may).cloned().collect()
    }

    /// Remembers who decided at a node that others must not check: for `not_same_as`.
    pub(in crate::engine::ask) fn remember_deciders(&mut self, node: &NodeId, by: impl IntoIterator<Item = Username>) {
        if self.flow.is_checked_by_others(node) {
            self.state.deciders.entry(node.clone()).or_default().extend(by);
        }
    }
}

/// Whether a review is for people by name or role, and not for every reviewer.
fn names_somebody(review: &Review) -> bool {
    !review.reviewers.roles.is_empty() || !review.reviewers.users.is_empty()
}

/// The members of a policy's groups are among the reviewers, whoever else is.
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

/// Lets people vote who could not; too many are none. Answers with who is new.
fn take_in(voting: &mut Voting, people: &[Principal]) -> Vec<Username> {
    if people.len() > MAX_VOTERS {
        return Vec::new();
    }
    let known: BTreeSet<_> = voting.voters.iter().cloned().collect();
    let new: Vec<_> = people.iter().map(|person| &person.username).filter(|name| !known.contains(*name)).collect();
    let new: Vec<Username> = new.into_iter().cloned().collect();
    voting.voters.extend(new.clone());
    new
}

/// Puts the voters into the groups whose role they have; one that was not there before only where they
/// may come in.
fn regroup(review: &mut Review, people: &[Principal], comes_in: impl Fn(&Username) -> bool) {
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
