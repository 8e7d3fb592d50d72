//! The rules of who sees what, in SQL. They are defined in [`shared::access`], and written a second time here so that a
//! list can use an index; a test compares the two. Only the effects of votes in other names are not in the SQL: a list
//! may show a pending review that a person has already decided.

use std::collections::BTreeSet;

use shared::access::{ASKER, DEVELOPER, Principal, REVIEWER, answers_as, launched, reviews_as};
use shared::id::Username;
use shared::review::Review;

use super::db::{DatabaseKind, Sql};

/// The keys under which a review is found (column `subject` of `review_audience`): whom it is for, who requested it,
/// with or without a flow, who decided or delegated it, who holds someone else's vote, who may vote, and who may not.
/// `gave:x` excludes x: their own vote is delegated.
pub(super) fn audience_keys(review: &Review) -> BTreeSet<String> {
    let reviewers = &review.reviewers;
    let users = reviewers.users.iter().map(|user| format!("user:{user}"));
    let everyone = reviewers.roles.is_empty() && reviewers.users.is_empty();
    let roles = reviewers.roles.iter().map(String::as_str).chain(everyone.then_some(REVIEWER));
    let by_role = if reviewers.tags.is_empty() { role_key } else { tagged_key };
    let mut keys: BTreeSet<String> = roles.map(by_role).chain(users).collect();
    keys.extend(reviewers.tags.iter().map(|tag| needs_key(tag)));
    keys.extend(review.escalated.iter().map(|role| role_key(role)));
    keys.insert(format!("asked:{}", review.requested_by));
    if review.flow.is_none() {
        keys.insert(format!("question:{}", review.requested_by));
    }
    let decided = review.decisions.iter().flat_map(|decision| [Some(&decision.by), decision.on_behalf_of.as_ref()]);
    let handed = review.delegations.iter().map(|handed| Some(&handed.from));
    keys.extend(decided.chain(handed).flatten().map(|name| format!("decided:{name}")));
    for (owner, holder) in review.holders() {
        if owner != holder {
            keys.insert(gave_key(owner));
            keys.extend(review.may_vote(owner).then(|| format!("handed:{holder}")));
        }
    }
    keys.extend(review.barred.iter().map(barred_key));
    if let Some(voting) = &review.voting {
        keys.insert(VOTES.to_owned());
        keys.extend(voting.voters.iter().map(voter_key));
    }
    keys
}

/// The key of reviews that only voters may decide.
pub(super) const VOTES: &str = "votes";

/// The key of a person who may vote.
pub(super) fn voter_key(name: &Username) -> String {
    format!("voter:{name}")
}

/// The key of a person who is barred from deciding.
pub(super) fn barred_key(name: &Username) -> String {
    format!("barred:{name}")
}

pub(super) fn role_key(role: &str) -> String {
    format!("role:{role}")
}

/// The key of a role whose members also need tags.
pub(super) fn tagged_key(role: &str) -> String {
    format!("tagged:{role}")
}

/// The key of a tag that reviewers need. It makes no review visible; it only marks the reviews that need the tag.
pub(super) fn needs_key(tag: &str) -> String {
    format!("needs:{tag}")
}

/// The key of a person whose own vote is delegated.
pub(super) fn gave_key(name: &Username) -> String {
    format!("gave:{name}")
}

/// Whether the viewer may see every run and review.
pub(super) fn sees_all(viewer: &Principal) -> bool {
    viewer.has(DEVELOPER)
}

/// A person in whose name a viewer may decide, with the keys under which reviews for that person are found.
pub(super) struct Name {
    pub username: Username,
    /// Audience keys of reviews that are for the person.
    pub own: BTreeSet<String>,
    /// Audience keys of reviews for the person's roles that also need tags.
    pub tagged: Tagged,
    /// The key of reviews for which the person was given a vote. `None` if they are not a reviewer.
    pub handed: Option<String>,
}

/// The keys of reviews that also need tags, and the tags of a person.
#[derive(Clone)]
pub(super) struct Tagged {
    /// The keys of the person's roles.
    pub keys: BTreeSet<String>,
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

/// A condition on reviews: those under certain keys, and those under others if the viewer has the tags.
pub(super) struct ReviewVisibility {
    /// Reviews under any of these keys are included.
    pub keys: BTreeSet<String>,
    /// Reviews that need tags, for each person in whose name the viewer may decide.
    pub tagged: Vec<Tagged>,
}

impl ReviewVisibility {
    /// Adds the condition that row `a` of the audience includes its review `v`.
    pub fn shows(&self, sql: Sql, database: DatabaseKind) -> Sql {
        let tagged = self.tagged.iter().flat_map(|tagged| &tagged.keys);
        let all: BTreeSet<&String> = self.keys.iter().chain(tagged).collect();
        // PostgreSQL does not accept an empty list. A token without roles has no keys.
        if all.is_empty() {
            return sql.push("false");
        }
        // All keys first, since SQLite looks rows up by this condition.
        let mut sql = sql.push("a.subject IN (").list(all).push(") AND (false");
        if !self.keys.is_empty() {
            sql = sql.push(" OR a.subject IN (").list(&self.keys).push(")");
        }
        for tagged in &self.tagged {
            sql = sql.push(" OR (a.subject IN (").list(&tagged.keys).push(") AND ");
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
    let mut own: BTreeSet<String> = answers().map(role_key).collect();
    let has = roles().map(str::to_owned).collect();
    let tagged = Tagged { keys: answers().map(tagged_key).collect(), has };
    let reviews = principal.has(REVIEWER);
    if reviews_as(principal, &username) {
        own.insert(format!("user:{username}"));
    }
    Name { handed: reviews.then(|| format!("handed:{username}")), own, tagged, username }
}

/// The condition on reviews that let a viewer see the run: those that they may decide, or have decided.
pub(super) fn involved(viewer: &Principal) -> ReviewVisibility {
    let mut visibility = ReviewVisibility { keys: BTreeSet::new(), tagged: Vec::new() };
    if reviews_as(viewer, &viewer.username) {
        visibility.keys.insert(format!("decided:{}", viewer.username));
    }
    for name in names(viewer) {
        visibility.keys.extend(name.own.into_iter().chain(name.handed));
        // Someone without roles has no tags.
        visibility.tagged.extend(Some(name.tagged).filter(|tagged| !tagged.keys.is_empty()));
    }
    visibility
}

/// The condition on reviews that the viewer may see.
pub(super) fn visible(viewer: &Principal) -> ReviewVisibility {
    let mut visibility = involved(viewer);
    visibility.keys.extend(asked_keys(viewer));
    visibility
}

/// The key of the viewer's own requests and runs; for a token that may ask but start no runs, of those that no flow
/// asks. Empty for a token that may not ask.
pub(super) fn asked_keys(viewer: &Principal) -> BTreeSet<String> {
    let name = &viewer.username;
    let key = if launched(viewer, name) {
        Some(format!("asked:{name}"))
    } else {
        viewer.has(ASKER).then(|| format!("question:{name}"))
    };
    key.into_iter().collect()
}
