//! Users, and their credentials.

use shared::access::{Act, Principal};
use shared::id::TokenId;
use shared::log::{EventData, LoggedIn, LoginFailed, TokenCreated, TokenRevoked, UserChanged};

use super::super::users::token;
use super::super::{
    CommitError, Committed, CredentialKind, FailedLogin, NewCredential, NewUserRecord, UserChange, UserRecord,
};
use super::group::{ChangeResult, EndedAccess, Group};
use super::rights::{LastLogin, allow};
use crate::clock::Moment;

impl Group {
    pub fn create_user(
        &mut self,
        by: Option<&Principal>,
        last_login: LastLogin,
        new: NewUserRecord,
        moment: Moment,
    ) -> ChangeResult {
        allow(by, Act::GiveRoles(&new.user.roles))?;
        last_login.require_recent()?;
        let user = new.user;
        self.check_not_erased(&user.username)?;
        if self.users.contains_key(&user.username) {
            return Err(CommitError::Conflict(format!("there is already a user named {}", user.username)));
        }
        let created = UserChanged { roles: Some(user.roles.clone()), ..UserChanged::of(user.username.clone()) };
        self.emit(by, &EventData::UserCreated(created), moment);
        self.out.users.insert(user.username.clone());
        let record = UserRecord { password_hash: new.password_hash, ..UserRecord::new(user.clone()) };
        self.users.insert(user.username.clone(), record);
        Ok(Committed::User { user: Box::new(user) })
    }

    pub fn update_user(
        &mut self,
        by: Option<&Principal>,
        last_login: LastLogin,
        change: UserChange,
        moment: Moment,
    ) -> ChangeResult {
        self.check_change(by, &change)?;
        if self.gives_access(&change)? {
            last_login.require_recent()?;
        }
        let record = self.users.get_mut(&change.username).ok_or(CommitError::NotFound)?;
        let user = &mut record.user;
        let before = user.clone();
        let mut changed = UserChanged::of(user.username.clone());
        let slack_user_id = change.slack_user_id().map(|id| id.map(str::to_owned));
        let patch = change.patch;
        if let Some(name) = patch.display_name {
            changed.display_name = Some(name.clone());
            user.display_name = Some(name).filter(|name| !name.is_empty());
        }
        if let Some(email) = patch.email {
            changed.email = Some(email.clone());
            user.email = Some(email).filter(|email| !email.is_empty());
        }
        if let Some(roles) = patch.roles {
            changed.roles = Some(roles.clone());
            user.roles = roles;
        }
        if let Some(active) = patch.active {
            changed.active = Some(active);
            user.active = active;
        }
        let new_password = change.password_hash.is_some();
        if let Some(hash) = change.password_hash {
            // The entry says that the password changed, never what it is.
            changed.password = true;
            record.password_hash = Some(hash);
        }
        let mut user = user.clone();
        if new_password || !user.active {
            self.end_access(&user.username, EndedAccess::All);
        }
        self.out.users.insert(user.username.clone());
        if let Some(id) = slack_user_id {
            changed.notifications = self.set_slack_user(by, &user.username, id);
        }
        user.slack_user_id =
            self.notifications.get(&user.username).and_then(|stored| stored.chosen.slack_user_id.clone());
        self.emit(by, &EventData::UserUpdated(changed), moment);
        // Approvals for later calls must not survive the loss of rights.
        if !user.active || before.roles.iter().any(|role| !user.roles.contains(role)) {
            self.revoke_grants_of(by, &user.username, moment);
        }
        Ok(Committed::User { user: Box::new(user) })
    }

    /// Refuses changes of a person that may not be made.
    fn check_change(&self, by: Option<&Principal>, change: &UserChange) -> Result<(), CommitError> {
        allow(by, Act::ManagePeople)?;
        let name = &change.username;
        let record = self.users.get(name).ok_or(CommitError::NotFound)?;
        // Who is let in again has their roles again.
        let returns = change.patch.active == Some(true) && !record.user.active;
        if let Some(roles) = change.patch.roles.as_ref().or(returns.then_some(&record.user.roles)) {
            allow(by, Act::GiveRoles(roles))?;
        }
        if change.password_hash.is_some() {
            allow(by, Act::ResetAccess(name))?;
        }
        if change.takes_admin() && self.is_last_admin(name) {
            return Err(CommitError::Conflict(format!("{name} is the only admin; make someone else an admin first")));
        }
        self.check_not_erased(name)?;
        if change.password_hash.is_some() && record.account.is_some() {
            let why = format!("{name} logs in with the identity provider, and has no password here");
            return Err(CommitError::Conflict(why));
        }
        let by_token = by.is_some_and(|by| by.token);
        // Otherwise the person's notifications would go to an address that a token has set, also after it was revoked.
        let email = change.patch.email.as_deref();
        if by_token && email.is_some_and(|email| email != record.user.email.as_deref().unwrap_or_default()) {
            let why = "a token cannot change an e-mail address; log in to do so";
            return Err(CommitError::Forbidden(why.to_owned()));
        }
        if change.patch.slack_user_id.is_some() {
            if by_token {
                let why = "a token cannot change a Slack member ID; log in to do so";
                return Err(CommitError::Forbidden(why.to_owned()));
            }
            self.check_slack_user(by, name, change.slack_user_id().flatten())?;
        }
        Ok(())
    }

    /// Whether a change gives a person access that they do not have, or others access to the account. Taking access away
    /// does not.
    fn gives_access(&self, change: &UserChange) -> Result<bool, CommitError> {
        let record = self.users.get(&change.username).ok_or(CommitError::NotFound)?;
        let (patch, before) = (&change.patch, record.principal(None));
        let gives_role = patch.roles.iter().flatten().any(|role| !before.has(role));
        let reactivates = patch.active == Some(true) && !record.user.active;
        let is_new = |now: Option<&str>, before: Option<&str>| now.is_some_and(|now| !now.is_empty()) && now != before;
        let known_member =
            self.notifications.get(&change.username).and_then(|known| known.chosen.slack_user_id.as_deref());
        Ok(change.password_hash.is_some()
            || gives_role
            || reactivates
            || is_new(patch.email.as_deref(), record.user.email.as_deref())
            || is_new(change.slack_user_id().flatten(), known_member))
    }

    pub fn add_credential(
        &mut self,
        by: Option<&Principal>,
        last_login: LastLogin,
        new: NewCredential,
        moment: Moment,
    ) -> ChangeResult {
        let NewCredential { digest, credential } = new;
        let owner = self.users.get(&credential.username).filter(|owner| owner.user.active);
        let all = owner.ok_or(CommitError::Unauthenticated)?.principal(None);
        let answer = match credential.kind {
            CredentialKind::Token => {
                allow(by, Act::CreateToken(&credential.username))?;
                last_login.require_recent()?;
                let maker = by.unwrap_or(&all);
                let roles = credential.roles.as_deref().unwrap_or_default();
                if let Some(role) = roles.iter().find(|role| !maker.has(role)) {
                    return Err(CommitError::Forbidden(format!(
                        "a token cannot have the role {role}, which its creator does not have"
                    )));
                }
                let made =
                    token(credential.clone()).ok_or_else(|| CommitError::Failed("a token without an id".to_owned()))?;
                self.count_token(&credential.username)?;
                let created = TokenCreated { id: made.id, name: made.name.clone(), roles: made.roles.clone() };
                self.emit_by(Some(&credential.username), &EventData::TokenCreated(created), moment);
                Committed::Token { token: Box::new(made) }
            }
            CredentialKind::Session => {
                if by.is_some_and(|by| by.username != credential.username) {
                    return Err(CommitError::Forbidden("you cannot log in as someone else".to_owned()));
                }
                let started = EventData::SessionStarted(LoggedIn::of(credential.username.clone()));
                self.emit_by(Some(&credential.username), &started, moment);
                Committed::Done
            }
            CredentialKind::Browser | CredentialKind::SignIn => {
                return Err(CommitError::Forbidden("this is remembered by logging in".to_owned()));
            }
            CredentialKind::Link => {
                if by.is_some() {
                    allow(by, Act::ManagePeople)?;
                    last_login.require_recent()?;
                }
                self.emit(by, &EventData::LinkCreated(LoggedIn::of(credential.username.clone())), moment);
                Committed::Done
            }
        };
        self.credentials.insert(digest, credential.clone());
        self.out.new_credentials.insert(digest, credential);
        Ok(answer)
    }

    pub fn revoke_token(&mut self, by: Option<&Principal>, id: TokenId, moment: Moment) -> ChangeResult {
        let (digest, credential) = self.token(id).ok_or(CommitError::NotFound)?;
        // For everyone else, the token does not exist.
        allow(by, Act::ManageTokens(&credential.username)).map_err(|_| CommitError::NotFound)?;
        let revoked = TokenRevoked { id, owner: Some(credential.username.clone()) };
        self.credentials.remove(&digest);
        self.out.new_credentials.remove(&digest);
        self.out.ended_credentials.insert(digest);
        self.emit(by, &EventData::TokenRevoked(revoked), moment);
        Ok(Committed::Done)
    }

    pub fn login_failed(&mut self, failed: &FailedLogin, moment: Moment) -> Committed {
        let &FailedLogin { ref username, unrecorded, in_session, wrong_code } = failed;
        if self.users.contains_key(username) {
            let failed = LoginFailed {
                username: Some(username.clone()),
                single_sign_on: None,
                reason: None,
                unrecorded: Some(unrecorded).filter(|count| *count > 0),
                in_session,
                wrong_code,
            };
            self.emit(None, &EventData::LoginFailed(failed), moment);
        }
        Committed::Done
    }
}
