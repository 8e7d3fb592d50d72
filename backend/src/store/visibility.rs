//! Who sees what, in SQL. The rule is [`shared::access`]'s; here it is only written a second time so that a list can
//! use an index. A test compares both.

use std::collections::BTreeSet;

use shared::access::{ADMIN, DEVELOPER, Principal, REVIEWER};
use shared::review::Review;

/// The subjects under which a review is found: those that it is for, who asked, and who has decided.
pub(super) fn subjects_of(review: &Review) -> BTreeSet<String> {
    let reviewers = &review.reviewers;
    let mut subjects: BTreeSet<String> = reviewers.roles.iter().map(|role| role_subject(role)).collect();
    subjects.extend(reviewers.users.iter().map(|user| format!("user:{user}")));
    if subjects.is_empty() {
        subjects.insert(role_subject(REVIEWER));
    }
    subjects.insert(format!("asked:{}", review.requested_by));
    subjects.extend(review.decisions.iter().map(|decision| format!("decided:{}", decision.by)));
    subjects
}

/// The subject of a role.
pub(super) fn role_subject(role: &str) -> String {
    format!("role:{role}")
}

/// Whether somebody sees every run and review.
pub(super) fn sees_all(viewer: &Principal) -> bool {
    viewer.has(DEVELOPER)
}

/// The subjects whose reviews somebody may decide.
pub(super) fn named(viewer: &Principal) -> BTreeSet<String> {
    let mut subjects: BTreeSet<String> = viewer.roles.iter().map(|role| role_subject(role)).collect();
    if viewer.roles.contains(ADMIN) {
        subjects.extend([REVIEWER, DEVELOPER].map(role_subject));
    }
    if !viewer.token || viewer.has(REVIEWER) {
        subjects.insert(format!("user:{}", viewer.username));
    }
    subjects
}

/// The subjects whose reviews make somebody see the run: those that they may decide, or have decided.
pub(super) fn involved(viewer: &Principal) -> BTreeSet<String> {
    let mut subjects = named(viewer);
    subjects.insert(format!("decided:{}", viewer.username));
    subjects
}

/// The subjects whose reviews somebody sees.
pub(super) fn seen(viewer: &Principal) -> BTreeSet<String> {
    let mut subjects = involved(viewer);
    subjects.insert(format!("asked:{}", viewer.username));
    subjects
}
