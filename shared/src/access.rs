//! Who may do what: the one authorization function, for the API, the live socket, the commit and the console.
//!
//! The server asks it when a request comes in, and again inside the transaction that carries the request out; the
//! console asks it to show only what can be done.
//!
//! In whose name somebody decides (their own, that of who handed them the review, or that of who is away) is found in
//! `voice.rs`, and nowhere else.

#[cfg(test)]
mod tests;
mod voice;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::definition::Reviewers;
use crate::deputy::Deputyship;
use crate::id::Username;
use crate::review::Review;
use crate::run::{ArchivedRun, RunSummary};

pub use voice::{has_vote, may_be_handed, voice, votes_to_hand_over};

/// The system role of people who decide reviews.
pub const REVIEWER: &str = "reviewer";
/// The system role of people who save flows, launch and cancel runs, and see all runs.
pub const DEVELOPER: &str = "developer";
/// The system role that has both, and people, audit and settings.
pub const ADMIN: &str = "admin";

/// Who is calling, with the rights that count for this call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The name of the person; of a token, that of the person who made it.
    pub username: Username,
    /// System and own roles; for a token, the subset that it has of its maker's.
    pub roles: BTreeSet<String>,
    /// Whether a token calls, which has a right only through a role that it names.
    #[serde(default)]
    pub token: bool,
    /// The people for whom they stand in at this moment. Of a token: nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<Absent>,
}

/// Somebody who is away and has a deputy, with the roles that they have now. Whom they themselves stand in for is not
/// part of it: deputies of deputies have no rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Absent {
    /// The name of the person who is away, on whose behalf the deputy may decide.
    pub username: Username,
    /// System and own roles.
    pub roles: BTreeSet<String>,
}

impl Absent {
    /// Them, as if they were here.
    pub fn principal(&self) -> Principal {
        Principal::new(self.username.clone(), self.roles.clone())
    }
}

impl Principal {
    /// Somebody who acts for themselves, with all their roles.
    pub fn new(username: Username, roles: BTreeSet<String>) -> Self {
        Self { username, roles, token: false, stands_for: Vec::new() }
    }

    /// Whether they have this role, an admin having the system roles of reviewers and developers too.
    pub fn has(&self, role: &str) -> bool {
        self.roles.contains(role) || (matches!(role, REVIEWER | DEVELOPER) && self.roles.contains(ADMIN))
    }
}

/// What somebody wants to do, and to what.
#[derive(Debug, Clone, Copy)]
pub enum Act<'a> {
    /// Save a flow, or check one.
    SaveFlow,
    /// See which flows there are: their titles, inputs and graphs.
    SeeFlows,
    /// See the source of flows, which names addresses, prompts and secrets.
    SeeSource,
    /// Start a run.
    Launch,
    /// Ask people something without a run.
    Ask,
    /// See a run.
    SeeRun(&'a RunSummary, Involvement),
    /// Know of a run that it is archived.
    SeeArchivedRun(&'a ArchivedRun),
    /// Cancel a run.
    CancelRun(&'a RunSummary),
    /// See a review.
    SeeReview(&'a Review),
    /// Decide a review.
    Decide(&'a Review),
    /// Claim or release a review, or comment on it.
    Handle(&'a Review),
    /// Take a review back, so that what it asks counts as refused: for who started the run, and for admins. Developers
    /// may cancel the run, but not steer it past a person.
    Withdraw(&'a Review),
    /// See the names of those who review, to choose one.
    SeeReviewers,
    /// See statistics of reviews at all.
    SeeStatistics,
    /// Have a review counted in one's statistics: of a flow that oneself has saved, or that oneself has decided.
    CountReview {
        /// Who has saved a version of its flow.
        saved_by: &'a BTreeSet<Username>,
        /// Who decided it.
        decided_by: &'a [Username],
    },
    /// See feedback on agents: that of this person, or of whomever.
    SeeFeedback(Option<&'a Username>),
    /// Say that somebody stands in for this person: the person, then the deputy.
    NameDeputy(&'a Username, &'a Username),
    /// Take back that somebody stands in for this person.
    RemoveDeputy(&'a Username),
    /// See that somebody stands in for somebody else.
    SeeDeputyship(&'a Deputyship),
    /// See and change what this person is told outside the console.
    ManageNotifications(&'a Username),
    /// Take back a grant that this person gave.
    RevokeGrant(&'a Username),
    /// See and change people.
    ManagePeople,
    /// Read the audit.
    ReadAudit,
    /// See the messages that went out, and send them again.
    ManageDeliveries,
    /// Make and revoke one's own tokens.
    ManageTokens,
    /// See an entry of the log that is of no run, of which this person is the actor.
    SeeEntryBy(Option<&'a Username>),
}

/// Whether somebody may decide one of a run's reviews, or has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Involvement {
    /// They may, or have.
    Reviews,
    /// They may not.
    None,
}

/// What the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// They have the right, and may see what the act is about.
    Allowed,
    /// They may see it, but not do it (403), for this reason.
    Denied(&'static str),
    /// They may not know of it (404).
    Hidden,
}

impl Access {
    /// Whether they may.
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }

    fn from(allowed: bool, reason: &'static str) -> Self {
        if allowed { Self::Allowed } else { Self::Denied(reason) }
    }
}

/// Whether `principal` may do `act`.
pub fn access(principal: &Principal, act: Act<'_>) -> Access {
    let is_admin = principal.has(ADMIN);
    match act {
        Act::SaveFlow => Access::from(principal.has(DEVELOPER), "saving flows needs the role developer"),
        Act::SeeSource => Access::from(principal.has(DEVELOPER), "only developers may see the source of flows"),
        Act::Launch => Access::from(principal.has(DEVELOPER), "starting runs needs the role developer"),
        Act::Ask => Access::from(principal.has(DEVELOPER), "asking people needs the role developer"),
        Act::SeeFlows | Act::SeeStatistics => {
            Access::from(!principal.token || !principal.roles.is_empty(), "this token has no roles")
        }
        Act::ManageTokens => {
            Access::from(!principal.token || is_admin, "a token cannot manage tokens; log in to do so")
        }
        Act::SeeRun(run, involvement) => {
            let involved = involvement == Involvement::Reviews || launched(principal, &run.requested_by);
            if principal.has(DEVELOPER) || involved { Access::Allowed } else { Access::Hidden }
        }
        // Who reviewed it stands in the archive.
        Act::SeeArchivedRun(run) => {
            let own = launched(principal, &run.requested_by);
            if principal.has(DEVELOPER) || own { Access::Allowed } else { Access::Hidden }
        }
        Act::CancelRun(run) => {
            let own = launched(principal, &run.requested_by);
            Access::from(principal.has(DEVELOPER) || own, "cancelling runs of others needs the role developer")
        }
        Act::SeeReview(review) => {
            if sees(principal, review) {
                Access::Allowed
            } else {
                Access::Hidden
            }
        }
        Act::Decide(review) | Act::Handle(review) if review.unreadable => {
            let reason = "this review cannot be decided: its stored data is damaged";
            if sees(principal, review) { Access::Denied(reason) } else { Access::Hidden }
        }
        Act::Decide(review) | Act::Handle(review) => match voice(principal, review) {
            Ok(_) => Access::Allowed,
            Err(reason) if sees(principal, review) => Access::Denied(reason),
            Err(_) => Access::Hidden,
        },
        Act::Withdraw(review) => {
            if !sees(principal, review) {
                return Access::Hidden;
            }
            let own = launched(principal, &review.requested_by);
            Access::from(
                is_admin || own,
                "a review can be withdrawn only by the person who asked or started its run, or by an admin",
            )
        }
        Act::SeeReviewers => {
            let works = principal.has(REVIEWER) || principal.has(DEVELOPER);
            Access::from(works, "only reviewers and developers may see the names of reviewers")
        }
        Act::SeeFeedback(by) => {
            let own = by.is_some_and(|by| reviews_as(principal, by));
            if own || principal.has(DEVELOPER) { Access::Allowed } else { Access::Hidden }
        }
        Act::CountReview { saved_by, decided_by } => {
            let own_flow = principal.has(DEVELOPER) && saved_by.contains(&principal.username);
            let own_decision = decided_by.iter().any(|name| reviews_as(principal, name));
            if is_admin || own_flow || own_decision { Access::Allowed } else { Access::Hidden }
        }
        // Else an admin could decide what is for a role that nobody gave them.
        Act::NameDeputy(person, deputy) if principal.username == *deputy && principal.username != *person => {
            Access::Denied("you cannot make yourself a deputy: ask the person who is away, or another admin")
        }
        Act::NameDeputy(person, _) | Act::RemoveDeputy(person) => {
            let own = principal.username == *person && !principal.token;
            Access::from(own || is_admin, "only an admin may name deputies for others")
        }
        Act::SeeDeputyship(span) => {
            let own = reviews_as(principal, &span.person) || reviews_as(principal, &span.deputy);
            if own || is_admin { Access::Allowed } else { Access::Hidden }
        }
        Act::ManageNotifications(person) => {
            let own = principal.username == *person && !principal.token;
            Access::from(own || is_admin, "only an admin may change the notifications of others")
        }
        // To everybody else it does not exist.
        Act::RevokeGrant(giver) if reviews_as(principal, giver) || is_admin => Access::Allowed,
        Act::RevokeGrant(_) => Access::Hidden,
        Act::SeeEntryBy(actor) => {
            let own = actor == Some(&principal.username) && !principal.token;
            if own || is_admin { Access::Allowed } else { Access::Hidden }
        }
        Act::ManagePeople => Access::from(is_admin, "only admins may add or change users"),
        Act::ManageDeliveries => Access::from(is_admin, "only admins may see deliveries"),
        Act::ReadAudit => Access::from(is_admin, "only admins may read the audit log"),
    }
}

/// Whether somebody counts as the one who started a run. A token has no right by its maker's name alone: it needs the
/// role by which runs are started.
pub fn launched(principal: &Principal, requested_by: &Username) -> bool {
    principal.username == *requested_by && (!principal.token || principal.has(DEVELOPER))
}

/// Whether somebody counts as this person in reviews: a token only with the role of those who review.
pub fn reviews_as(principal: &Principal, name: &Username) -> bool {
    principal.username == *name && (!principal.token || principal.has(REVIEWER))
}

/// Those who may decide a review see it, and so do those who decided it or handed it over, who started its run, and who
/// see all runs; and whoever stands in for one whom it is for.
fn sees(principal: &Principal, review: &Review) -> bool {
    let is_me = |name: &Username| reviews_as(principal, name);
    principal.has(DEVELOPER)
        || launched(principal, &review.requested_by)
        || review.decisions.iter().any(|said| is_me(&said.by) || said.on_behalf_of.as_ref().is_some_and(is_me))
        || review.delegations.iter().any(|handed| is_me(&handed.from))
        || concerns(principal, review)
        || principal.stands_for.iter().any(|absent| concerns(&absent.principal(), review))
}

/// Whether a review is for somebody, or was handed to them.
fn concerns(principal: &Principal, review: &Review) -> bool {
    is_for(principal, review) || !voice::handed_to(principal, review).is_empty()
}

/// Why somebody may not decide a review, in nobody's name, if so.
fn barred(username: &Username, review: &Review) -> Option<&'static str> {
    if review.reviewers.not_requester && review.requested_by == *username {
        return Some("this review is not for the person who started the run");
    }
    if review.barred.contains(username) {
        return Some("this review is not for those who decided the step that it checks (four eyes)");
    }
    None
}

/// Whether a review is for somebody: as the flow says, or because it was escalated to a role of theirs.
fn is_for(principal: &Principal, review: &Review) -> bool {
    is_named(principal, &review.reviewers) || review.escalated.iter().any(|role| principal.has(role))
}

/// Whether reviewers are named so that somebody is among them: by name, by role, or, where nobody is named, as a
/// reviewer. Who is asked by role must have all of the tags.
pub fn is_named(principal: &Principal, reviewers: &Reviewers) -> bool {
    let by_name = reviewers.users.contains(&principal.username) && reviews_as(principal, &principal.username);
    let by_role = if reviewers.roles.is_empty() && reviewers.users.is_empty() {
        principal.has(REVIEWER)
    } else {
        reviewers.roles.iter().any(|role| principal.has(role))
    };
    by_name || (by_role && reviewers.tags.iter().all(|tag| principal.has(tag)))
}
