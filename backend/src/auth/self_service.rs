//! Changes that people make to their own account: their password and their sessions.

use shared::api::{NewPassword, SessionConfirmation, SessionInfo};
use shared::error::{Code, Problem};
use shared::id::SessionId;

use super::hashing_queue::Origin;
use super::login::FailedFactor;
use super::rate_limit::AttemptKey;
use super::user_setup::known_of;
use super::{Authenticator, Error, Identity};
use crate::store::{ConfirmedSession, Operation, PasswordChange, UserRecord};

impl Authenticator {
    /// Replaces the caller's password. All their other sessions, and their links, end, and their tokens if they say so.
    pub async fn change_password(&self, identity: &Identity, password: NewPassword) -> Result<(), Error> {
        let person = self.person(identity).await?;
        let Some(from) = person.password_hash.clone() else {
            let detail = match person.account {
                Some(_) => "you log in with the identity provider, and have no password here",
                None => "you have no password; an admin can set one",
            };
            return Err(Problem::new(Code::Conflict).detail(detail).into());
        };
        let may = self.counted(identity)?;
        let origin = Origin::Person(person.user.username.to_string());
        let end_tokens = password.end_tokens;
        let to = self.passwords().replace(origin, password, from.clone(), known_of(&person.user), may).await?;
        let to = to.ok_or_else(|| self.wrong_password(&person, "/current"))?;
        let change = Box::new(PasswordChange { from, to, keep: identity.credential, end_tokens });
        self.commit(identity, Operation::ChangePassword(change)).await?;
        self.invalidate();
        Ok(())
    }

    /// Confirms a session with the password and, if its owner has a second factor, a code: for the next minutes it lets
    /// them do what needs a recent login.
    pub async fn confirm_session(&self, identity: &Identity, given: SessionConfirmation) -> Result<(), Error> {
        let person = self.person(identity).await?;
        let Some(password) = person.password_hash.clone() else {
            return Err(Problem::new(Code::Conflict).detail("you have no password here; log in again instead").into());
        };
        self.check_password(identity, &person, Some(given.password)).await?;
        let proof = self.prove_in_session(&person, given.code.as_deref())?;
        let confirmed = Box::new(ConfirmedSession { session: identity.credential, password, proof });
        self.commit(identity, Operation::ConfirmSession(confirmed)).await
    }

    /// Checks the password of somebody who has one, since a session alone must not suffice. A wrong one is recorded as a
    /// failed login is.
    pub(super) async fn check_password(
        &self,
        identity: &Identity,
        person: &UserRecord,
        password: Option<String>,
    ) -> Result<(), Error> {
        let Some(phc) = person.password_hash.clone() else { return Ok(()) };
        let password = password.ok_or_else(|| Problem::invalid("/password", "your password is required"))?;
        let origin = Origin::Person(person.user.username.to_string());
        if self.passwords().verify(origin, password, Some(phc), self.counted(identity)?).await? {
            return Ok(());
        }
        Err(self.wrong_password(person, "/password"))
    }

    /// Records that a password was wrong in a session, and returns the error for its place in the body.
    fn wrong_password(&self, person: &UserRecord, path: &str) -> Error {
        self.record_failure(&person.user.username, FailedFactor::Password, true);
        Problem::invalid(path, "this is not your password").into()
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
