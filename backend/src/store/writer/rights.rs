//! Rights in the transaction: people and credentials are read again, whatever the request assumed.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::access::{Access, Act, Principal, access};
use shared::error::ConfirmWith;
use shared::id::{RunId, Username};
use shared::time::{Span, Timestamp};

use super::super::{Actor, CommitError, Committed, Operation, UserRecord};
use super::group::{Group, RunWork};
use crate::engine::Input;
use crate::flow::Compiled;

/// How long ago an actor proved who they are.
#[derive(Debug, Clone, Copy)]
pub(super) enum LastLogin {
    /// Recently enough for any change.
    Recent,
    /// Too long ago for changes that give access: these outlive the session, so a stolen one must not suffice.
    TooOld { within: Span, confirm_with: ConfirmWith },
}

impl LastLogin {
    /// Refuses what needs a recent login if there was none.
    pub fn require_recent(self) -> Result<(), CommitError> {
        match self {
            Self::Recent => Ok(()),
            Self::TooOld { within, confirm_with } => Err(CommitError::ConfirmationRequired { within, confirm_with }),
        }
    }
}

impl Group {
    /// Returns how long ago an actor proved who they are. The server itself need not.
    pub fn last_login(&self, actor: Option<&Actor>, now: Timestamp) -> Result<LastLogin, CommitError> {
        let Some((actor, within)) = actor.and_then(|actor| Some((actor, actor.login_within?))) else {
            return Ok(LastLogin::Recent);
        };
        let credential = actor.credential.and_then(|digest| self.credentials.get(&digest));
        if credential.is_some_and(|credential| now.since(credential.proven_at()) < within.0) {
            return Ok(LastLogin::Recent);
        }
        let person = self.active(&actor.principal.username)?;
        let confirm_with = match (&person.password_hash, &person.account) {
            (Some(_), _) if person.confirmed_factor().is_some() => ConfirmWith::PasswordAndCode,
            (Some(_), _) => ConfirmWith::Password,
            (None, Some(_)) => ConfirmWith::SingleSignOn,
            (None, None) => ConfirmWith::Link,
        };
        Ok(LastLogin::TooOld { within, confirm_with })
    }

    /// Returns the current rights of an actor.
    pub fn principal(&self, actor: &Actor, now: Timestamp) -> Result<Principal, CommitError> {
        let user = self.active(&actor.principal.username)?;
        let Some(digest) = &actor.credential else {
            return Ok(narrowed(self.whole(user, now), &actor.principal));
        };
        let credential = self
            .credentials
            .get(digest)
            .filter(|credential| credential.username == actor.principal.username && !credential.is_over(now));
        let principal = user.principal(Some(credential.ok_or(CommitError::Unauthenticated)?));
        Ok(if principal.token { principal } else { self.whole(user, now) })
    }

    /// Returns a person with all their current rights, including those of the people for whom they stand in.
    fn whole(&self, user: &UserRecord, now: Timestamp) -> Principal {
        let stands_for = user.stands_for(now, |name| self.users.get(name));
        Principal { stands_for, ..user.principal(None) }
    }

    /// Returns the current rights of a person for whom the server acts.
    pub fn principal_of(&self, claimed: &Principal, now: Timestamp) -> Result<Principal, CommitError> {
        Ok(narrowed(self.whole(self.active(&claimed.username)?, now), claimed))
    }

    /// Returns the people who exist, for the engine, as changed by this group. `None` if neither the flow nor the input
    /// nor a delegation in the run needs them.
    pub fn people(&self, flow: &Compiled, run: RunId, input: Option<&Input>) -> Option<Arc<[Principal]>> {
        if matches!(input, Some(Input::Viewed { .. })) {
            return None;
        }
        // A review that was delegated in this group had its delegator's rights checked just now.
        let is_delegated = self.runs.get(&run).is_some_and(RunWork::has_delegations) && !self.active.is_empty();
        if !flow.needs_people() && !is_delegated && !input.is_some_and(Input::needs_people) {
            return None;
        }
        Some(self.everybody().into_values().collect())
    }

    /// Returns everyone who may log in, as changed by this group. Only complete if the group has read them.
    pub fn everybody(&self) -> BTreeMap<Username, Principal> {
        let mut people = BTreeMap::clone(&self.active);
        for (name, record) in &self.users {
            if record.user.active {
                people.insert(name.clone(), record.principal(None));
            } else {
                people.remove(name);
            }
        }
        people
    }

    pub(super) fn active(&self, name: &Username) -> Result<&UserRecord, CommitError> {
        self.users.get(name).filter(|record| record.user.active).ok_or(CommitError::Unauthenticated)
    }
}

/// Limits the rights of a token to the roles that it claims, if its credential is not known.
fn narrowed(all: Principal, claimed: &Principal) -> Principal {
    if !claimed.token {
        return all;
    }
    let roles = claimed.roles.iter().filter(|role| all.has(role)).cloned().collect();
    Principal { roles, token: true, token_id: claimed.token_id, stands_for: Vec::new(), ..all }
}

/// Asks the one authorization function. The server itself may do everything.
pub(super) fn allow(by: Option<&Principal>, act: Act<'_>) -> Result<(), CommitError> {
    match by.map_or(Access::Allowed, |principal| access(principal, act)) {
        Access::Allowed => Ok(()),
        Access::Denied(reason) => Err(CommitError::Forbidden(reason.to_owned())),
        Access::Hidden => Err(CommitError::NotFound),
    }
}

/// Checks that a person may receive the earlier result of an operation again. Someone who may no longer carry it out
/// must not learn the result.
pub(super) fn allow_again(
    by: Option<&Principal>,
    operation: &Operation,
    answer: &Committed,
) -> Result<(), CommitError> {
    match (operation, answer) {
        (Operation::Launch { .. }, _) => allow(by, Act::Launch),
        (Operation::Ask { .. }, _) => allow(by, Act::Ask),
        (Operation::SaveFlow(_), _) => allow(by, Act::SaveFlow),
        (Operation::CreateUser(new), _) => allow(by, Act::GiveRoles(&new.user.roles)),
        (Operation::UpdateUser(_) | Operation::EraseUser(_), _) => allow(by, Act::ManagePeople),
        (Operation::NameDeputy(span), _) => allow(by, Act::NameDeputy(&span.person, &span.deputy)),
        (Operation::AddCredential(new), _) => allow(by, Act::CreateToken(&new.credential.username)),
        (Operation::Run { .. }, Committed::Run { run }) => allow(by, Act::CancelRun(&run.summary)),
        (Operation::Review { input, .. }, Committed::Decided { decided }) => {
            let review = &decided.review;
            match **input {
                Input::Withdraw { .. } => allow(by, Act::Withdraw(review)),
                Input::Comment { .. } => allow(by, Act::Comment(review)),
                Input::Reassign { .. } => allow(by, Act::Reassign(review)),
                // A person who has delegated a review may no longer handle it.
                Input::Delegate { .. } => allow(by, Act::SeeReview(review)),
                _ => allow(by, Act::Handle(review)),
            }
        }
        // The result is their own, or only says that it was done.
        (
            Operation::Run { .. }
            | Operation::Review { .. }
            | Operation::GiveFeedback { .. }
            | Operation::RetractFeedback(_)
            | Operation::RemoveDeputy(_)
            | Operation::RevokeToken(_)
            | Operation::RevokeGrant(_)
            | Operation::ChooseNotifications(_)
            | Operation::SaveViews { .. }
            | Operation::StartSession(_)
            | Operation::RefuseSignIn(_)
            | Operation::ChangePassword(_)
            | Operation::ConfirmSession(_)
            | Operation::ChangeSecondFactor { .. }
            | Operation::LinkAccount { .. }
            | Operation::EndSession { .. }
            | Operation::LoginFailed(_)
            | Operation::ArchiveRuns(_)
            | Operation::EraseEntries(_)
            | Operation::AcceptHead { .. },
            _,
        ) => Ok(()),
    }
}
