//! Rights in the transaction: people and credentials are read again, whatever the request assumed.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::access::{Access, Act, Principal, access};
use shared::id::Username;
use shared::time::Timestamp;

use super::super::{Actor, CommitError, Committed, Operation, UserRecord};
use super::group::Group;
use crate::engine::Input;
use crate::flow::Compiled;

impl Group {
    /// The rights that an actor has now.
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

    /// Somebody with all their rights of now, also those of whom they stand in for.
    fn whole(&self, user: &UserRecord, now: Timestamp) -> Principal {
        let stands_for = user.stands_for(now, |name| self.users.get(name));
        Principal { stands_for, ..user.principal(None) }
    }

    /// The rights that somebody has now for whom the server acts.
    pub fn principal_of(&self, claimed: &Principal, now: Timestamp) -> Result<Principal, CommitError> {
        Ok(narrowed(self.whole(self.active(&claimed.username)?, now), claimed))
    }

    /// The people who exist as the engine is to know them, for flows that need them and for who asks to look again: with
    /// what this group has changed.
    pub fn people(&self, flow: &Compiled, input: Option<&Input>) -> Option<Arc<[Principal]>> {
        if !flow.needs_people() && !matches!(input, Some(Input::Recount)) {
            return None;
        }
        Some(self.everybody().into_values().collect())
    }

    /// All who may log in, with what this group has changed; only where the group has read them.
    pub fn everybody(&self) -> BTreeMap<Username, Principal> {
        let mut people = self.active.clone();
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

/// A token whose credential is not named keeps only what it said that it has.
fn narrowed(all: Principal, claimed: &Principal) -> Principal {
    if !claimed.token {
        return all;
    }
    let roles = claimed.roles.iter().filter(|role| all.has(role)).cloned().collect();
    Principal { roles, token: true, stands_for: Vec::new(), ..all }
}

/// Asks the one authorization function. The server itself may do everything.
pub(super) fn allow(by: Option<&Principal>, act: Act<'_>) -> Result<(), CommitError> {
    match by.map_or(Access::Allowed, |principal| access(principal, act)) {
        Access::Allowed => Ok(()),
        Access::Denied(reason) => Err(CommitError::Forbidden(reason.to_owned())),
        Access::Hidden => Err(CommitError::NotFound),
    }
}

/// Whether somebody may be given the answer of an operation that they have had carried out before. Who may no longer do
/// it is not told what it did.
pub(super) fn allow_again(
    by: Option<&Principal>,
    operation: &Operation,
    answer: &Committed,
) -> Result<(), CommitError> {
    match (operation, answer) {
        (Operation::Launch { .. }, _) => allow(by, Act::Launch),
        (Operation::Ask { .. }, _) => allow(by, Act::Ask),
        (Operation::SaveFlow(_), _) => allow(by, Act::SaveFlow),
        (Operation::CreateUser(_) | Operation::UpdateUser(_) | Operation::EraseUser(_), _) => {
            allow(by, Act::ManagePeople)
        }
        (Operation::NameDeputy(span), _) => allow(by, Act::NameDeputy(&span.person, &span.deputy)),
        (Operation::AddCredential(_) | Operation::RevokeToken { .. }, _) => allow(by, Act::ManageTokens),
        (Operation::Run { .. }, Committed::Run { run }) => allow(by, Act::CancelRun(&run.summary)),
        (Operation::Review { input, .. }, Committed::Decided { decided }) => {
            let review = &decided.review;
            match **input {
                Input::Withdraw { .. } => allow(by, Act::Withdraw(review)),
                // Who has handed a review over may no longer handle it.
                Input::Delegate { .. } => allow(by, Act::SeeReview(review)),
                _ => allow(by, Act::Handle(review)),
            }
        }
        // What is answered is one's own, or only that it was done.
        (
            Operation::Run { .. }
            | Operation::Review { .. }
            | Operation::GiveFeedback { .. }
            | Operation::RemoveDeputy(_)
            | Operation::RevokeGrant(_)
            | Operation::ChooseNotifications(_)
            | Operation::StartSession(_)
            | Operation::RefuseSignIn(_)
            | Operation::ChangePassword(_)
            | Operation::ChangeSecondFactor { .. }
            | Operation::LinkAccount { .. }
            | Operation::EndSession { .. }
            | Operation::LoginFailed { .. }
            | Operation::ArchiveRuns(_)
            | Operation::EraseEntries(_)
            | Operation::AcceptHead { .. },
            _,
        ) => Ok(()),
    }
}
