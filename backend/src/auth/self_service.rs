//! Changes that people make to their own account: their password and their sessions.

use std::time::Duration;

use shared::api::{NewPassword, SessionInfo};
use shared::error::{Code, Mistake, Problem};
use shared::id::SessionId;

use super::hashing_queue::Origin;
use super::rate_limit::AttemptKey;
use super::user_setup::known_of;
use super::{Authenticator, Error, Identity};
use crate::store::{Change, Operation, PasswordChange};

/// How long after a login somebody without a password counts as the owner of the account.
const RECENT: Duration = Duration::from_mins(10);

impl Authenticator {
    /// Replaces the caller's password. All their other sessions, and their links, end.
    pub async fn change_password(&self, identity: &Identity, password: NewPassword) -> Result<(), Error> {
        let person = self.person(identity).await?;
        let Some(from) = person.password_hash.clone() else {
            let detail = match person.account {
                Some(_) => "you sign in with the identity provider, and have no password here",
                None => "you have no password; an admin can set one",
            };
            return Err(Error::Problem(Box::new(Problem::new(Code::Conflict).detail(detail))));
        };
        let may = self.counted(identity)?;
        let origin = Origin::Person(person.user.username.to_string());
        let to = self.passwords().replace(origin, password, from.clone(), known_of(&person.user), may).await?;
        let change = Box::new(PasswordChange { from, to, keep: identity.credential });
        let operation = Operation::ChangePassword(change);
        self.store.commit(Change { by: Some(identity.actor()), key: None, operation }).await?;
        self.invalidate();
        Ok(())
    }

    /// Checks that the owner of the account is at work, and not just somebody with their session: by their password, or,
    /// if they have none, by a login within the last minutes.
    pub(super) async fn confirm_owner(&self, identity: &Identity, password: Option<String>) -> Result<(), Error> {
        let person = self.person(identity).await?;
        let Some(phc) = person.password_hash else {
            let session = self.store.credential(&identity.credential).await?;
            let now = self.clock.now();
            if session.is_some_and(|(session, _)| now.since(session.created_at) < RECENT) {
                return Ok(());
            }
            let detail = "log in again first: this needs a login within the last ten minutes";
            return Err(Error::Problem(Box::new(Problem::new(Code::Forbidden).detail(detail))));
        };
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
            let operation = Operation::EndSession { digest };
            self.store.commit(Change { by: Some(identity.actor()), key: None, operation }).await?;
            found = true;
        }
        self.invalidate();
        Ok(found)
    }
}
