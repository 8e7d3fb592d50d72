//! Changes that people make to their own account: their password and their sessions.

use shared::api::{NewPassword, SessionInfo};
use shared::error::{Code, Problem};
use shared::id::SessionId;

use super::hashing_queue::Origin;
use super::rate_limit::AttemptKey;
use super::user_setup::known_of;
use super::{Authenticator, Error, Identity};
use crate::store::{Change, Operation, PasswordChange};

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
        let key = AttemptKey::Session(identity.credential);
        // Checked before the queue, so that attempts that will be refused take no place in it.
        self.limit.check(std::slice::from_ref(&key), self.clock.uptime())?;
        let (limit, clock) = (self.limit.clone(), self.clock.clone());
        let may = move || limit.take(&key, clock.uptime());
        let origin = Origin::Person(person.user.username.to_string());
        let to = self.passwords().replace(origin, password, from.clone(), known_of(&person.user), may).await?;
        let change = Box::new(PasswordChange { from, to, keep: identity.credential });
        let operation = Operation::ChangePassword(change);
        self.store.commit(Change { by: Some(identity.actor()), key: None, operation }).await?;
        self.invalidate();
        Ok(())
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
