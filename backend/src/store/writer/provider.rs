//! Data of the identity provider about people: their identity, whether they are added, and their roles.

use shared::access::{ADMIN, Act, Principal};
use shared::api::User;
use shared::id::Username;
use shared::log::{EventData, LoginFailed, SingleSignOn, UserChanged};
use shared::single_sign_on::Trouble;

use super::super::{CommitError, Committed, NewCredential, ProviderAccount, ProviderSignIn, RefusedSignIn, UserRecord};
use super::group::{ChangeResult, EndedAccess, Group};
use super::rights::allow;
use crate::clock::Moment;

impl Group {
    /// Checks that this person may sign in under this name.
    pub(super) fn check_provider(&self, name: &Username, by: &ProviderSignIn) -> Result<(), CommitError> {
        if self.credentials.contains_key(&by.attempt.digest) {
            return Err(CommitError::Unauthenticated);
        }
        match (self.known(&by.account), self.users.get(name)) {
            (Some(known), _) if known.user.username != *name => {
                Err(CommitError::Conflict(format!("this account already belongs to {}", known.user.username)))
            }
            (Some(known), _) if known.user.active => Ok(()),
            (Some(_), _) => Err(CommitError::Unauthenticated),
            (None, Some(_)) => Err(CommitError::Conflict(format!("the name {name} already belongs to someone else"))),
            (None, None) if by.add => self.check_not_erased(name),
            (None, None) => Err(CommitError::NotFound),
        }
    }

    /// Updates or adds a person who has passed [`Self::check_provider`] with the data of the provider.
    pub(super) fn follow_provider(&mut self, name: &Username, by: ProviderSignIn, moment: Moment) {
        let ProviderSignIn { account: told, display_name, email, roles, attempt, add: _ } = by;
        let Some(record) = self.users.get_mut(name) else {
            let roles = roles.unwrap_or_default();
            let created = UserChanged {
                roles: Some(roles.clone()),
                single_sign_on: Some(account(&told)),
                ..UserChanged::of(name.clone())
            };
            let user = User::new(name.clone(), roles, moment.now);
            let user = User { display_name, email, single_sign_on: true, ..user };
            let record = UserRecord { account: Some(told), signed_in_at: Some(moment.now), ..UserRecord::new(user) };
            self.users.insert(name.clone(), record);
            self.out.users.insert(name.clone());
            self.remember_attempt(attempt);
            return self.emit(None, &EventData::UserCreated(created), moment);
        };
        record.signed_in_at = Some(moment.now);
        let mut user = record.user.clone();
        self.out.users.insert(name.clone());
        user.display_name = display_name.or(user.display_name);
        user.email = email.or(user.email);
        if let Some(roles) = roles {
            user.roles = self.keep_an_admin(name, roles);
        }
        self.remember_attempt(attempt);
        self.replace(user, moment);
    }

    /// Records that a person was not admitted, unless too many refusals were recorded already. If none of their groups
    /// gives access, they also lose their roles.
    pub fn refuse_sign_in(&mut self, refused: &RefusedSignIn, moment: Moment) -> Committed {
        let known = self.known(&refused.account).map(|known| known.user.clone());
        let failed = LoginFailed {
            username: known.as_ref().map(|known| &known.username).or(refused.username.as_ref()).cloned(),
            single_sign_on: Some(account(&refused.account)),
            reason: Some(refused.trouble.as_str().to_owned()),
            unrecorded: None,
            in_session: false,
            wrong_code: false,
        };
        if refused.is_recorded {
            self.emit(None, &EventData::LoginFailed(failed), moment);
        }
        if let (Some(user), Trouble::Groups) = (known, refused.trouble) {
            let roles = self.keep_an_admin(&user.username, Vec::new());
            self.replace(User { roles, ..user }, moment);
        }
        Committed::Done
    }

    /// Links a person to an account at the provider, or removes the link. Either ends their password and credentials.
    pub fn link_account(
        &mut self,
        by: Option<&Principal>,
        name: &Username,
        linked: Option<&ProviderAccount>,
        moment: Moment,
    ) -> ChangeResult {
        allow(by, Act::ManagePeople)?;
        if let Some(known) = linked.and_then(|linked| self.known(linked)).filter(|known| known.user.username != *name) {
            return Err(CommitError::Conflict(format!("this account already belongs to {}", known.user.username)));
        }
        if self.users.contains_key(name) {
            self.check_not_erased(name)?;
        }
        let record = self.users.get_mut(name).ok_or(CommitError::NotFound)?;
        if record.account.as_ref() == linked {
            return Ok(Committed::Done);
        }
        record.user.single_sign_on = linked.is_some();
        record.password_hash = None;
        record.account = linked.cloned();
        // So that the tokens that they create with a login link do not lapse before they can sign in.
        record.signed_in_at = linked.map(|_| moment.now);
        self.out.users.insert(name.clone());
        self.end_access(name, EndedAccess::All);
        let now = linked.map_or(SingleSignOn::Linked(false), account);
        let changed = UserChanged { single_sign_on: Some(now), ..UserChanged::of(name.clone()) };
        self.emit(by, &EventData::UserUpdated(changed), moment);
        Ok(Committed::Done)
    }

    fn remember_attempt(&mut self, attempt: NewCredential) {
        self.credentials.insert(attempt.digest, attempt.credential.clone());
        self.out.new_credentials.insert(attempt.digest, attempt.credential);
    }

    /// Adds the role `admin` if nobody else could administer the server without this person.
    fn keep_an_admin(&self, name: &Username, mut roles: Vec<String>) -> Vec<String> {
        if !roles.iter().any(|role| role == ADMIN) && self.is_last_admin(name) {
            tracing::warn!(username = %name, "the provider makes no one an admin, so the only admin keeps the role");
            roles.push(ADMIN.to_owned());
        }
        roles
    }

    /// Writes the changes of a person, if there are any. If they lose a role, their grants are revoked.
    fn replace(&mut self, user: User, moment: Moment) {
        let Some(record) = self.users.get_mut(&user.username) else { return };
        if record.user == user {
            return;
        }
        let known = &record.user;
        let loses_a_role = known.roles.iter().any(|role| !user.roles.contains(role));
        let changed = UserChanged {
            roles: (known.roles != user.roles).then(|| user.roles.clone()),
            display_name: (known.display_name != user.display_name)
                .then(|| user.display_name.clone().unwrap_or_default()),
            email: (known.email != user.email).then(|| user.email.clone().unwrap_or_default()),
            single_sign_on: Some(SingleSignOn::Linked(true)),
            ..UserChanged::of(user.username.clone())
        };
        let name = user.username.clone();
        record.user = user;
        self.out.users.insert(name.clone());
        self.emit(None, &EventData::UserUpdated(changed), moment);
        if loses_a_role {
            self.revoke_grants_of(None, &name, moment);
        }
    }

    /// Returns the person with this account at the provider.
    pub(super) fn known(&self, account: &ProviderAccount) -> Option<&UserRecord> {
        self.users.values().find(|record| record.account.as_ref() == Some(account))
    }
}

/// The account in the form for entries.
pub(super) fn account(account: &ProviderAccount) -> SingleSignOn {
    SingleSignOn::Account { issuer: account.issuer.clone(), subject: account.subject.clone() }
}
