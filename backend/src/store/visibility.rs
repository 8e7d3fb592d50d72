//! The rules of who sees what, in SQL. They are defined in [`shared::access`], and written a second time here so that a
//! list can use an index; a test compares the two. Only the effects of votes in other names are not in the SQL: a list
//! may show a pending review that a person has already decided.

use std::collections::BTreeSet;

use shared::access::{ASKER, DEVELOPER, Principal, REVIEWER, answers_as, launched, reviews_as};
use shared::id::Username;
use shared::review::Review;

use super::db::{DatabaseKind, Sql};

/// The subjects under which a review is found: whom it is for, who requested it, with or without a flow, who decided or delegated it, who holds
/// someone else's vote, who may vote, and who may not. `gave:x` excludes x: their own vote is delegated.
pub(super) fn subjects_of(review: &Review) -> BTreeSet<String> {
    let reviewers = &review.reviewers;
    let users = reviewers.users.iter().map(|user| format!("user:{user}"));
    let everyone = reviewers.roles.is_empty() && reviewers.users.is_empty();
    let roles = reviewers.roles.iter().map(String::as_str).chain(everyone.then_some(REVIEWER));
    let by_role = if reviewers.tags.is_empty() { role_subject } else { tagged_subject };
    let mut subjects: BTreeSet<String> = roles.map(by_role).chain(users).collect();
    subjects.extend(reviewers.tags.iter().map(|tag| needs_subject(tag)));
    subjects.extend(review.escalated.iter().map(|role| role_subject(role)));
    subjects.insert(format!("asked:{}", review.requested_by));
    if review.flow.is_none() {
        subjects.insert(format!("question:{}", review.requested_by));
    }
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
    subjects
}

/// The subject of reviews that only voters may decide.
pub(super) const VOTES: &str = "votes";

/// The subject of a person who may vote.
pub(super) fn voter_subject(name: &Username) -> String {
    format!("voter:{name}")
}

/// The subject of a person who is barred from deciding.
pub(super) fn barred_subject(name: &Username) -> String {
    format!("barred:{name}")
}

pub(super) fn role_subject(role: &str) -> String {
    format!("role:{role}")
}

/// The subject of a role whose members also need tags.
pub(super) fn tagged_subject(role: &str) -> String {
    format!("tagged:{role}")
}

/// The subject of a tag that reviewers need. It makes no review visible; it only marks the reviews that need the tag.
pub(super) fn needs_subject(tag: &str) -> String {
    format!("needs:{tag}")
}

/// The subject of a person whose own vote is delegated.
pub(super) fn gave_subject(name: &Username) -> String {
    format!("gave:{name}")
}

/// Whether the viewer may see every run and review.
pub(super) fn sees_all(viewer: &Principal) -> bool {
    viewer.has(DEVELOPER)
}

/// A person in whose name a viewer may decide, with the subjects under which reviews for that person are found.
pub(super) struct Name {
    pub username: Username,
    /// Subjects of reviews that are for the person.
    pub own: BTreeSet<String>,
    /// Subjects of reviews for the person's roles that also need tags.
    pub tagged: Tagged,
    /// The subject of reviews for which the person was given a vote. `None` if they are not a reviewer.
    pub handed: Option<String>,
}

/// The subjects of reviews that also need tags, and the tags of a person.
#[derive(Clone)]
pub(super) struct Tagged {
    /// The subjects of the person's roles.
    pub subjects: BTreeSet<String>,
    has: BTreeSet<String>,
}

impl Tagged {
    /// Adds the condition that the person has all tags that review `v` needs.
    pub fn suffices(&self, sql: Sql, database: DatabaseKind) -> Sql {
        let needed =
            database.either("json_each(v.tags) AS n", "jsonb_array_elements_text(CAST(v.tags AS jsonb)) AS n(value)");
        let sql = sql.push("NOT EXISTS (SELECT 1 FROM ").push(needed);
        sql.push(" WHERE n.value NOT IN (").list(&self.has).push("))")
    }
}

/// A condition on reviews: those under certain subjects, and those under others if the viewer has the tags.
pub(super) struct ReviewVisibility {
    /// Reviews under any of these subjects are included.
    pub subjects: BTreeSet<String>,
    /// Reviews that need tags, for each person in whose name the viewer may decide.
    pub tagged: Vec<Tagged>,
}

impl ReviewVisibility {
    /// Adds the condition that row `a` of the audience includes its review `v`.
    pub fn shows(&self, sql: Sql, database: DatabaseKind) -> Sql {
        let tagged = self.tagged.iter().flat_map(|tagged| &tagged.subjects);
        let all: BTreeSet<&String> = self.subjects.iter().chain(tagged).collect();
        // PostgreSQL does not accept an empty list. A token without roles has no subjects.
        if all.is_empty() {
            return sql.push("false");
        }
        // All subjects first, since SQLite looks rows up by this condition.
        let mut sql = sql.push("a.subject IN (").list(all).push(") AND (false");
        if !self.subjects.is_empty() {
            sql = sql.push(" OR a.subject IN (").list(&self.subjects).push(")");
        }
        for tagged in &self.tagged {
            sql = sql.push(" OR (a.subject IN (").list(&tagged.subjects).push(") AND ");
            sql = tagged.suffices(sql, database).push(")");
        }
        sql.push(")")
    }
}

/// Returns the people in whose name the viewer may decide, the viewer first.
pub(super) fn names(viewer: &Principal) -> Vec<Name> {
    let absent = viewer.stands_for.iter().map(|absent| name(&absent.principal()));
    std::iter::once(name(viewer)).chain(absent).collect()
}

fn name(principal: &Principal) -> Name {
    let username = principal.username.clone();
    let roles = || principal.roles.iter().map(String::as_str).chain(principal.included_roles().iter().copied());
    let answers = || roles().filter(|role| answers_as(principal, role));
    let mut own: BTreeSet<String> = answers().map(role_subject).collect();
    let has = roles().map(str::to_owned).collect();
    let tagged = Tagged { subjects: answers().map(tagged_subject).collect(), has };
    let reviews = principal.has(REVIEWER);
    if reviews_as(principal, &username) {
        own.insert(format!("user:{username}"));
    }
    Name { handed: reviews.then(|| format!("handed:{username}")), own, tagged, username }
}

/// The condition on reviews that let a viewer see the run: those that they may decide, or have decided.
pub(super) fn involved(viewer: &Principal) -> ReviewVisibility {
    let mut visibility = ReviewVisibility { subjects: BTreeSet::new(), tagged: Vec::new() };
    if reviews_as(viewer, &viewer.username) {
        visibility.subjects.insert(format!("decided:{}", viewer.username));
    }
    for name in names(viewer) {
        visibility.subjects.extend(name.own.into_iter().chain(name.handed));
        // Someone without roles has no tags.
        visibility.tagged.extend(Some(name.tagged).filter(|tagged| !tagged.subjects.is_empty()));
    }
    visibility
}

/// The condition on reviews that the viewer may see.
pub(super) fn visible(viewer: &Principal) -> ReviewVisibility {
    let mut visibility = involved(viewer);
    visibility.subjects.extend(asked_subjects(viewer));
    visibility
}

/// The subject of the viewer's own requests and runs; for a token that may ask but start no runs, of those that no flow
/// asks. Empty for a token that may not ask.
pub(super) fn asked_subjects(viewer: &Principal) -> BTreeSet<String> {
    let name = &viewer.username;
    let subject = if launched(viewer, name) {
        Some(format!("asked:{name}"))
    } else {
        viewer.has(ASKER).then(|| format!("question:{name}"))
    };
    subject.into_iter().collect()
}
