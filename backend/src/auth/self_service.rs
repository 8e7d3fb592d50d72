//! Changes that people make to their own account: their password and their sessions.

use shared::api::{NewPassword, SessionInfo};
use shared::error::{Code, Mistake, Problem};
use shared::id::SessionId;

use super::hashing_queue::Origin;
use super::rate_limit::AttemptKey;
use super::user_setup::known_of;
use super::{Authenticator, Error, Identity};
use crate::store::{Operation, PasswordChange, UserRecord};

impl Authenticator {
    /// Replaces the caller's password. All their other sessions, and their links, end, and their tokens if they say so.
    pub async fn change_password(&self, identity: &Identity, password: NewPassword) -> Result<(), Error> {
        let person = self.person(identity).await?;
        let Some(from) = person.password_hash.clone() else {
            let detail = match person.account {
                Some(_) => "you sign in with the identity provider, and have no password here",
                None => "you have no password; an admin can set one",
            };
            return Err(Problem::new(Code::Conflict).detail(detail).into());
        };
        let may = self.counted(identity)?;
        let origin = Origin::Person(person.user.username.to_string());
        let end_tokens = password.end_tokens;
        let to = self.passwords().replace(origin, password, from.clone(), known_of(&person.user), may).await?;
        let change = Box::new(PasswordChange { from, to, keep: identity.credential, end_tokens });
        self.commit(identity, Operation::ChangePassword(change)).await?;
        self.invalidate();
        Ok(())
    }

    /// Confirms a session: for the next minutes it lets its owner do what needs a recent login.
    pub async fn confirm_session(&self, identity: &Identity, password: String) -> Result<(), Error> {
        let person = self.person(identity).await?;
        if person.password_hash.is_none() {
            return Err(self.unconfirmed(&person));
        }
        self.confirm_owner(identity, Some(password)).await?;
        self.store.session_confirmed(&identity.credential, self.clock.now()).await?;
        self.invalidate();
        Ok(())
    }

    /// Checks that the owner of the account has logged in or confirmed the session within the last minutes. What lets
    /// others in outlives the session, so a stolen session must not suffice for it.
    pub async fn check_recent(&self, identity: &Identity) -> Result<(), Error> {
        if self.is_recent(identity) {
            return Ok(());
        }
        // It may have been confirmed on another server a moment ago.
        let now = self.look_up(identity.credential).await?;
        if self.is_recent(&now) { Ok(()) } else { Err(self.unconfirmed(&self.person(identity).await?)) }
    }

    fn is_recent(&self, identity: &Identity) -> bool {
        self.clock.now().since(identity.proven_at) < self.policy.confirm_after.0
    }

    fn unconfirmed(&self, person: &UserRecord) -> Error {
        let remedy = match (&person.password_hash, &person.account) {
            (Some(_), _) => "confirm with your password (POST /api/v1/me/confirm), or log in again",
            (None, Some(_)) => "log in again with the identity provider",
            (None, None) => "log in again, with a new link (`countersign user link`) or after setting a password",
        };
        let within = self.policy.confirm_after;
        let detail = format!("this needs a login within the last {within}: {remedy}");
        Problem::new(Code::ConfirmationRequired).detail(detail).into()
    }

    /// Checks that the owner of the account is at work, and not just somebody with their session: by their password, or,
    /// if they have none, by a login within the last minutes.
    pub(super) async fn confirm_owner(&self, identity: &Identity, password: Option<String>) -> Result<(), Error> {
        let person = self.person(identity).await?;
        let Some(phc) = person.password_hash else { return self.check_recent(identity).await };
        let wrong = |why| Error::Invalid(vec![Mistake::new("/password", "invalid", why)]);
        let password = password.ok_or_else(|| wrong("your password is required"))?;
        let origin = Origin::Person(person.user.username.to_string());
        let right = self.passwords().verify(origin, password, Some(phc), self.counted(identity)?).await?;
        if right { Ok(()) } else { Err(wrong("this is not your password")) }
    }

    /// Returns a function that counts an attempt at the caller's own password, and refuses it beyond the limit. Fails at
    /// once if the limit is reached, so that attempts that would be refused take no place in the queue.
    fn counted(&self, identity: &Identity) -> Result<impl FnOnce() -> Result<(), Error> + Send + 'static, Error> {
        let key = AttemptKey::Session(identity.credential);
        self.limit.check(std::slice::from_ref(&key), self.clock.uptime())?;
        let (limit, clock) = (self.limit.clone(), self.clock.clone());
        Ok(move || limit.take(&key, clock.uptime()))
    }

    /// Returns the caller's sessions, newest first.
    pub async fn sessions(&self, identity: &Identity) -> Result<Vec<SessionInfo>, Error> {
        let sessions = self.store.sessions(identity.principal.username.as_str()).await?;
        let shown = sessions.into_iter().filter_map(|(digest, session)| {
            let (address, agent) = session.client.map_or((None, None), |client| (Some(client.address), client.agent));
            Some(SessionInfo {
                id: SessionId(session.id?.0),
                current: digest == identity.credential,
                created_at: session.created_at,
                last_used_at: session.last_used_at.unwrap_or(session.created_at),
                expires_at: session.expires_at,
                address,
                agent,
            })
        });
        Ok(shown.collect())
    }

    /// Ends one of the caller's sessions; with `None`, all except the current one. Returns whether any was ended.
    pub async fn end_sessions(&self, identity: &Identity, id: Option<SessionId>) -> Result<bool, Error> {
        let sessions = self.store.sessions(identity.principal.username.as_str()).await?;
        let meant = sessions.into_iter().filter(|(digest, session)| match id {
            Some(id) => session.id.is_some_and(|known| known.0 == id.0),
            None => *digest != identity.credential,
        });
        let mut found = false;
        for (digest, _) in meant {
            self.commit(identity, Operation::EndSession { digest }).await?;
            found = true;
        }
        self.invalidate();
        Ok(found)
    }
}
