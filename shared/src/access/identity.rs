//! When a caller counts as a person: the person themselves always, a token of theirs only through a role that it names.

use super::{ASKER, DEVELOPER, Principal, REVIEWER};
use crate::definition::Reviewers;
use crate::id::Username;
use crate::review::Review;

/// Whether the caller counts as the person who started a run. A token has no rights through its creator's name alone:
/// it needs the role that starts runs.
pub fn launched(principal: &Principal, requested_by: &Username) -> bool {
    principal.username == *requested_by && (!principal.token || principal.has(DEVELOPER))
}

/// Whether the caller counts as the person who asked for a review, or started its run. A token that may ask but start no
/// runs has asked only what no flow asks.
pub fn asked(principal: &Principal, review: &Review) -> bool {
    launched(principal, &review.requested_by)
        || (principal.username == review.requested_by && review.flow.is_none() && principal.has(ASKER))
}

/// Whether the caller counts as this person in reviews: a token only with the role reviewer.
pub fn reviews_as(principal: &Principal, name: &Username) -> bool {
    principal.username == *name && (!principal.token || principal.has(REVIEWER))
}

/// Whether the caller is asked where people with this role are. A token is not asked for the role by which it asks:
/// otherwise it could ask itself.
pub fn answers_as(principal: &Principal, role: &str) -> bool {
    principal.has(role) && !(principal.token && role == ASKER)
}

/// Whether this person is among the reviewers: by name, by role, or, if no one is named, as a reviewer. Those who are
/// asked by role need all of the tags.
pub fn is_named(principal: &Principal, reviewers: &Reviewers) -> bool {
    let by_name = reviewers.users.contains(&principal.username) && reviews_as(principal, &principal.username);
    let by_role = if reviewers.roles.is_empty() && reviewers.users.is_empty() {
        principal.has(REVIEWER)
    } else {
        reviewers.roles.iter().any(|role| answers_as(principal, role))
    };
    by_name || (by_role && reviewers.tags.iter().all(|tag| principal.has(tag)))
}
