//! Who may do what: the one authorization function, for the API, the live socket, the commit and the console.
//!
//! The server asks it when a request comes in, and again inside the transaction that carries the request out; the
//! console asks it to show only what can be done.
//!
//! In whose name a person decides (their own, that of a delegator, or that of an absent colleague) is determined in
//! `voice.rs`, and nowhere else.

mod identity;
#[cfg(test)]
mod tests;
mod voice;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::deputy::Deputyship;
use crate::id::{TokenId, Username};
use crate::review::Review;
use crate::run::{ArchivedRun, RunSummary};

pub use identity::{answers_as, asked, is_named, launched, reviews_as};
pub use voice::{has_vote, may_be_handed, voice, votes_to_hand_over};

/// The system role of people who decide reviews.
pub const REVIEWER: &str = "reviewer";
/// The system role of people and programs that ask people questions without a flow, and see no run.
pub const ASKER: &str = "asker";
/// The system role of people who save flows, launch and cancel runs, and see all runs; it includes asking.
pub const DEVELOPER: &str = "developer";
/// The system role that includes all of these, plus people, audit log and settings.
pub const ADMIN: &str = "admin";

/// The caller, with their rights for this call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The name of the person; for a token, of its creator.
    pub username: Username,
    /// System roles and the organisation's own; for a token, its subset of the creator's roles.
    pub roles: BTreeSet<String>,
    /// Whether the caller is a token, which has rights only through its roles.
    #[serde(default)]
    pub token: bool,
    /// The id of that token, for the record. It gives no rights; `None` in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<TokenId>,
    /// The people for whom they currently stand in; empty for a token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_for: Vec<Absent>,
}

/// A person who is away and has a deputy, with their current roles. It does not include whom they themselves stand in
/// for: deputies of deputies have no rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Absent {
    /// The name of the person who is away, on whose behalf the deputy may decide.
    pub username: Username,
    /// System roles and the organisation's own.
    pub roles: BTreeSet<String>,
}

impl Absent {
    /// Returns a principal with the name and roles of the absent person.
    pub fn principal(&self) -> Principal {
        Principal::new(self.username.clone(), self.roles.clone())
    }
}

impl Principal {
    /// Creates a principal who acts for themselves, with all their roles.
    pub fn new(username: Username, roles: BTreeSet<String>) -> Self {
        Self { username, roles, token: false, token_id: None, stands_for: Vec::new() }
    }

    /// Whether they have this role, or one that includes it.
    pub fn has(&self, role: &str) -> bool {
        self.roles.contains(role) || self.included_roles().contains(&role)
    }

    /// Returns the system roles that the role `admin` or `developer` includes, if they have one of these.
    pub fn included_roles(&self) -> &'static [&'static str] {
        if self.roles.contains(ADMIN) {
            &[REVIEWER, ASKER, DEVELOPER]
        } else if self.roles.contains(DEVELOPER) {
            &[ASKER]
        } else {
            &[]
        }
    }
}

/// An act, with its object.
#[derive(Debug, Clone, Copy)]
pub enum Act<'a> {
    /// Save a flow, or check one.
    SaveFlow,
    /// See the flows: their titles, inputs and graphs.
    SeeFlows,
    /// See the source of flows, which names addresses, prompts and secrets.
    SeeSource,
    /// Launch a run.
    Launch,
    /// Ask people a question without a run.
    Ask,
    /// See a run that this person started.
    SeeRun(&'a Username, Involvement),
    /// Learn that a run is archived.
    SeeArchivedRun(&'a ArchivedRun),
    /// Cancel a run.
    CancelRun(&'a RunSummary),
    /// See a review.
    SeeReview(&'a Review),
    /// Decide a review.
    Decide(&'a Review),
    /// Claim or release a review.
    Handle(&'a Review),
    /// Comment on a review, for whoever sees it: the person who launched the run answers what a reviewer asks.
    Comment(&'a Review),
    /// Withdraw a review, which then counts as rejected: for the person who launched the run, and for admins.
    /// Developers may cancel the run, but not steer it past a person.
    Withdraw(&'a Review),
    /// Give a review to other people than may decide it now. Whoever does so does not decide it.
    Reassign(&'a Review),
    /// List the reviews that this person decided.
    SeeDecisionsBy(&'a Username),
    /// See the names of reviewers, to choose one.
    SeeReviewers,
    /// See any statistics of reviews.
    SeeStatistics,
    /// Count a review in one's statistics: a review of a flow that the caller saved, or one that the caller decided.
    CountReview {
        /// The people who have saved a version of its flow.
        saved_by: &'a BTreeSet<Username>,
        /// The people who decided it.
        decided_by: &'a [Username],
    },
    /// See feedback on agents, of this person or of everyone.
    SeeFeedback(Option<&'a Username>),
    /// Give feedback on the agents of a run.
    GiveFeedback(&'a RunSummary, Involvement),
    /// Retract feedback of this person.
    RetractFeedback(&'a Username),
    /// Name a deputy: the person, then the deputy.
    NameDeputy(&'a Username, &'a Username),
    /// End a deputyship of this person.
    RemoveDeputy(&'a Username),
    /// See a deputyship.
    SeeDeputyship(&'a Deputyship),
    /// See and change the notification settings of this person.
    ManageNotifications(&'a Username),
    /// Revoke a grant of this person.
    RevokeGrant(&'a Username),
    /// See and change users.
    ManagePeople,
    /// Give somebody these roles, in place of those that they have.
    GiveRoles(&'a [String]),
    /// Let this person in differently, as an admin: set their password, or remove their second factor.
    ResetAccess(&'a Username),
    /// Read the audit log.
    ReadAudit,
    /// See deliveries, and retry them.
    ManageDeliveries,
    /// See and revoke tokens of this person.
    ManageTokens(&'a Username),
    /// Create a token of this person.
    CreateToken(&'a Username),
    /// See a log entry that belongs to no run and no review, and whose actor is this person; see `log::Audience`.
    SeeEntryBy(Option<&'a Username>),
}

/// Whether the caller may decide one of a run's reviews, or has done so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Involvement {
    /// The caller may decide one of the run's reviews, or has done so.
    Reviews,
    /// The caller may not, and has not done so.
    None,
}

/// The answer to whether an act is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The act is allowed.
    Allowed,
    /// Visible, but not allowed (403), for this reason.
    Denied(&'static str),
    /// The object is not visible (404).
    Hidden,
}

impl Access {
    /// Whether the act is allowed.
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
        Act::Launch => Access::from(principal.has(DEVELOPER), "launching runs needs the role developer"),
        Act::Ask => Access::from(principal.has(ASKER), "asking people needs the role asker or developer"),
        Act::SeeFlows | Act::SeeStatistics => {
            let only_asks = principal.roles.iter().all(|role| role == ASKER);
            Access::from(!principal.token || !only_asks, "this token has no role that may see this")
        }
        Act::ManageTokens(_) if principal.token && !is_admin => {
            Access::Denied("a token cannot manage tokens; log in to do so")
        }
        Act::ManageTokens(owner) => {
            let own = principal.username == *owner;
            Access::from(own || is_admin, "only an admin may see or revoke the tokens of others")
        }
        // Otherwise a token that is about to expire could create its own successor.
        Act::CreateToken(_) if principal.token => Access::Denied("a token cannot create tokens; log in to create one"),
        Act::CreateToken(owner) => {
            Access::from(principal.username == *owner, "a token acts as its creator: you cannot create one for others")
        }
        Act::SeeRun(requested_by, involvement) => {
            let involved = involvement == Involvement::Reviews || launched(principal, requested_by);
            if principal.has(DEVELOPER) || involved { Access::Allowed } else { Access::Hidden }
        }
        // Only the archive file says who reviewed the run.
        Act::SeeArchivedRun(run) => {
            let own = launched(principal, &run.requested_by);
            if principal.has(DEVELOPER) || own { Access::Allowed } else { Access::Hidden }
        }
        Act::CancelRun(run) => {
            let own = launched(principal, &run.requested_by);
            Access::from(principal.has(DEVELOPER) || own, "cancelling runs of others needs the role developer")
        }
        Act::Comment(review) if review.unreadable => {
            let reason = "this review cannot be commented on: its stored data is damaged";
            if sees(principal, review) { Access::Denied(reason) } else { Access::Hidden }
        }
        Act::SeeReview(review) | Act::Comment(review) => {
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
            Access::from(
                is_admin || asked(principal, review),
                "a review can be withdrawn only by the person who asked or started its run, or by an admin",
            )
        }
        Act::Reassign(review) => {
            if !sees(principal, review) {
                return Access::Hidden;
            }
            if review.unreadable {
                return Access::Denied("this review cannot be reassigned: its stored data is damaged");
            }
            // Otherwise the person who launched the run would choose who approves it.
            Access::from(is_admin, "only admins may reassign a review")
        }
        Act::SeeDecisionsBy(by) => {
            let own = reviews_as(principal, by);
            Access::from(own || is_admin, "only an admin may list what other people decided")
        }
        Act::SeeReviewers => {
            let works = principal.has(REVIEWER) || principal.has(DEVELOPER);
            Access::from(works, "only reviewers and developers may see the names of reviewers")
        }
        Act::SeeFeedback(by) => {
            let own = by.is_some_and(|by| reviews_as(principal, by));
            if own || principal.has(DEVELOPER) { Access::Allowed } else { Access::Hidden }
        }
        // Agents read it in later runs: what a token said would still have an effect after the token was revoked.
        Act::GiveFeedback(run, involvement) => match access(principal, Act::SeeRun(&run.requested_by, involvement)) {
            Access::Allowed => Access::from(!principal.token, "a token cannot give feedback: log in to do so"),
            other => other,
        },
        Act::RetractFeedback(by) => match access(principal, Act::SeeFeedback(Some(by))) {
            Access::Allowed => Access::from(!principal.token, "a token cannot retract feedback: log in to do so"),
            other => other,
        },
        Act::CountReview { saved_by, decided_by } => {
            let own_flow = principal.has(DEVELOPER) && saved_by.contains(&principal.username);
            let own_decision = decided_by.iter().any(|name| reviews_as(principal, name));
            if is_admin || own_flow || own_decision { Access::Allowed } else { Access::Hidden }
        }
        // Otherwise an admin could decide reviews for a role that no one gave them.
        Act::NameDeputy(person, deputy) if principal.username == *deputy && principal.username != *person => {
            Access::Denied("you cannot make yourself a deputy: ask the person who is away, or another admin")
        }
        // Otherwise a token would suffice to let somebody decide in the name of another person.
        Act::NameDeputy(..) | Act::RemoveDeputy(_) if principal.token => {
            Access::Denied("a token cannot name or remove deputies: log in to do so")
        }
        Act::NameDeputy(person, _) | Act::RemoveDeputy(person) => {
            let own = principal.username == *person;
            Access::from(own || is_admin, "only an admin may name deputies for others")
        }
        Act::SeeDeputyship(span) => {
            let own = reviews_as(principal, &span.person) || reviews_as(principal, &span.deputy);
            if own || is_admin { Access::Allowed } else { Access::Hidden }
        }
        // Otherwise what a token has changed would send a person's notifications elsewhere after it was revoked.
        Act::ManageNotifications(_) if principal.token => {
            Access::Denied("a token cannot read or change notification settings: log in to do so")
        }
        Act::ManageNotifications(person) => {
            let own = principal.username == *person;
            Access::from(own || is_admin, "only an admin may change the notifications of others")
        }
        // For everyone else, the grant does not exist.
        Act::RevokeGrant(giver) if reviews_as(principal, giver) || is_admin => Access::Allowed,
        Act::RevokeGrant(_) => Access::Hidden,
        Act::SeeEntryBy(actor) => {
            let own = actor == Some(&principal.username) && !principal.token;
            if own || is_admin { Access::Allowed } else { Access::Hidden }
        }
        // Otherwise a token could make an admin who remains after it was revoked.
        Act::GiveRoles(roles) if is_admin && principal.token && roles.iter().any(|role| role == ADMIN) => {
            Access::Denied("a token cannot make anyone an admin; log in to do so")
        }
        // A stolen token or session must not suffice to take over an account.
        Act::ResetAccess(_) if is_admin && principal.token => {
            Access::Denied("a token cannot change passwords and second factors; log in to do so")
        }
        Act::ResetAccess(person) if is_admin && principal.username == *person => {
            Access::Denied("this is your own account: change its password and second factor under /api/v1/me")
        }
        Act::ManagePeople | Act::GiveRoles(_) | Act::ResetAccess(_) => {
            Access::from(is_admin, "only admins may add or change users")
        }
        Act::ManageDeliveries => Access::from(is_admin, "only admins may see deliveries"),
        Act::ReadAudit => Access::from(is_admin, "only admins may read the audit log"),
    }
}

/// A review is visible to those who may decide it, who decided or delegated it, who started its run, or who see all
/// runs; and to deputies of the people it is for.
fn sees(principal: &Principal, review: &Review) -> bool {
    let is_me = |name: &Username| reviews_as(principal, name);
    principal.has(DEVELOPER)
        || asked(principal, review)
        || review.decisions.iter().any(|said| is_me(&said.by) || said.on_behalf_of.as_ref().is_some_and(is_me))
        || review.delegations.iter().any(|handed| is_me(&handed.from))
        || concerns(principal, review)
        || principal.stands_for.iter().any(|absent| concerns(&absent.principal(), review))
}

/// Whether a review is for this person, or was delegated to them.
fn concerns(principal: &Principal, review: &Review) -> bool {
    is_for(principal, review) || !voice::handed_to(principal, review).is_empty()
}

/// Returns why a person may not decide the review on anyone's behalf; `None` if they are not barred.
fn barred(username: &Username, review: &Review) -> Option<&'static str> {
    if review.reviewers.not_requester && review.requested_by == *username {
        return Some("this review is not for the person who launched the run");
    }
    if review.barred.contains(username) {
        let chose = review.reassignments.iter().any(|change| change.by == *username);
        return Some(if chose {
            "this review is not for those who reassigned it (four eyes)"
        } else {
            "this review is not for those who decided the step that it checks (four eyes)"
        });
    }
    None
}

/// Whether a review is for this person: as the flow says, or because it was escalated to one of their roles.
fn is_for(principal: &Principal, review: &Review) -> bool {
    is_named(principal, &review.reviewers) || review.escalated.iter().any(|role| answers_as(principal, role))
}
