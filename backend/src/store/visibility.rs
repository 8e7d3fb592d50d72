//! Who sees what, in SQL. The rule is [`shared::access`]'s; here it is only written a second time so that a list can
//! use an index. A test compares both. Only what follows from votes that were cast in other names is left to the rule: a
//! list may show a pending review on which somebody has spoken already.

use std::collections::BTreeSet;

use shared::access::{ADMIN, DEVELOPER, Principal, REVIEWER};
use shared::id::Username;
use shared::review::Review;

/// The subjects under which a review is found: those that it is for, who asked, who has decided it or handed it over,
/// who has somebody else's vote, who may vote, and who may not. `gave:x` finds nothing for x: their own vote is with
/// somebody else.
pub(super) fn subjects_of(review: &Review) -> BTreeSet<String> {
    let reviewers = &review.reviewers;
    let mut subjects: BTreeSet<String> = reviewers.roles.iter().map(|role| role_subject(role)).collect();
    subjects.extend(reviewers.users.iter().map(|user| format!("user:{user}")));
    if subjects.is_empty() {
        subjects.insert(role_subject(REVIEWER));
    }
    subjects.insert(format!("asked:{}", review.requested_by));
    let decided = review.decisions.iter().flat_map(|decision| [Some(&decision.by), decision.on_behalf_of.as_ref()]);
    let handed = review.delegations.iter().map(|handed| Some(&handed.from));
    subjects.extend(decided.chain(handed).flatten().map(|name| format!("decided:{name}")));
    for (owner, holder) in review.holders() {
        if owner != holder {
            subjects.insert(gave_subject(owner));
            subjects.extend(review.may_vote(owner).then(|| format!("handed:{holder}")));
        }
    }
    subjects.extend(review.barred.iter().map(barred_subject));
    if let Some(voting) = &review.voting {
        subjects.insert(VOTES.to_owned());
        subjects.extend(voting.voters.iter().map(voter_subject));
    }
    if review.depends_on_people() {
        subjects.insert(WATCHED.to_owned());
    }
    subjects
}

/// The subject of reviews that only voters may decide.
pub(super) const VOTES: &str = "votes";
/// The subject of reviews that depend on who there is.
pub(super) const WATCHED: &str = "watched";

/// The subject of somebody who may vote.
pub(super) fn voter_subject(name: &Username) -> String {
    format!("voter:{name}")
}

/// The subject of somebody who is shut out.
pub(super) fn barred_subject(name: &Username) -> String {
    format!("barred:{name}")
}

/// The subject of a role.
pub(super) fn role_subject(role: &str) -> String {
    format!("role:{role}")
}

/// The subject of somebody whose own vote is with somebody else.
pub(super) fn gave_subject(name: &Username) -> String {
    format!("gave:{name}")
}

/// Whether somebody sees every run and review.
pub(super) fn sees_all(viewer: &Principal) -> bool {
    viewer.has(DEVELOPER)
}

/// Somebody in whose name a viewer may decide, with the subjects under which the reviews for them are found.
pub(super) struct Name {
    pub username: Username,
    /// As one of those that a review is for.
    pub own: BTreeSet<String>,
    /// As one who was handed somebody's vote.
    pub handed: Option<String>,
}

/// Everybody in whose name somebody may decide, themselves first.
pub(super) fn names(viewer: &Principal) -> Vec<Name> {
    let absent = viewer.stands_for.iter().map(|absent| name(&absent.principal()));
    std::iter::once(name(viewer)).chain(absent).collect()
}

fn name(principal: &Principal) -> Name {
    let username = principal.username.clone();
    let mut own: BTreeSet<String> = principal.roles.iter().map(|role| role_subject(role)).collect();
    if principal.roles.contains(ADMIN) {
        own.extend([REVIEWER, DEVELOPER].map(role_subject));
    }
    let reviews = principal.has(REVIEWER);
    if !principal.token || reviews {
        own.insert(format!("user:{username}"));
    }
    Name { handed: reviews.then(|| format!("handed:{username}")), own, username }
}

/// The subjects whose reviews make somebody see the run: those that they may decide, or have decided.
pub(super) fn involved(viewer: &Principal) -> BTreeSet<String> {
    let mut subjects: BTreeSet<String> =
        names(viewer).into_iter().flat_map(|name| name.own.into_iter().chain(name.handed)).collect();
    subjects.insert(format!("decided:{}", viewer.username));
    subjects
}

/// The subjects whose reviews somebody sees.
pub(super) fn seen(viewer: &Principal) -> BTreeSet<String> {
    let mut subjects = involved(viewer);
    subjects.insert(format!("asked:{}", viewer.username));
    subjects
}
