//! Letting people in and out.

use std::time::Duration;

use shared::api::User;
use shared::id::Username;
use shared::time::Timestamp;

use super::attempts::Key;
use super::{Authenticator, Error, Identity, Secret, digest};
use crate::client_address::ClientAddress;
use crate::store::{
    Actor, Answer, Change, CommitError, Credential, CredentialKind, NewCredential, Operation, UserRecord,
};

/// How long a session lasts.
pub const SESSION_LIFE: Duration = Duration::from_hours(14 * 24);

const WRONG: Error = Error::Unauthenticated("the username or the password is wrong");

/// Somebody who was let in.
#[derive(Debug)]
pub struct Login {
    /// Who.
    pub user: User,
    /// The session's secret, for the cookie.
    pub session: Secret,
}

impl Authenticator {
    /// Lets somebody in by password. Failures are limited by name and by `client`, and stand in the log.
    pub async fn login(&self, username: &str, password: String, client: ClientAddress) -> Result<Login, Error> {
        let keys = [Key::Name(username.to_owned()), Key::from(client)];
        self.attempts.check(&keys, self.clock.now())?;
        let person = self.store.user(username).await?;
        let hash = person.as_ref().filter(|person| person.user.active).and_then(|person| person.password_hash.clone());
        // Those who waited for their turn are checked again when it has come: many attempts at once are no way around.
        let (attempts, clock, asked) = (self.attempts.clone(), self.clock.clone(), keys.clone());
        let right = self.passwords().verify(password, hash, move || attempts.check(&asked, clock.now())).await?;
        match person {
            Some(person) if right => self.start_session(person).await,
            person => {
                self.attempts.failed(&keys, self.clock.now());
                if let Some(UserRecord { user, .. }) = person {
                    self.record_failure(user.username);
                }
                Err(WRONG)
            }
        }
    }

    /// Lets somebody in by the secret of a link, which is used up by that.
    pub async fn redeem(&self, secret: &str, client: ClientAddress) -> Result<Login, Error> {
        const WRONG: Error = Error::Unauthenticated("the link has been used or has run out; ask for a new one");
        let keys = [Key::from(client)];
        self.attempts.check(&keys, self.clock.now())?;
        let link = digest(secret);
        let found = self.store.credential(&link).await?.filter(|(link, _)| link.kind == CredentialKind::Link);
        let Some((_, person)) = found else {
            self.attempts.failed(&keys, self.clock.now());
            return Err(WRONG);
        };
        let session = Secret::new(CredentialKind::Session, &*self.clock);
        let credential = Box::new(self.session(person.user.username, &session));
        let redeem = Change::by_server(Operation::RedeemLink { link, session: credential });
        match self.store.commit(redeem).await {
            Ok(Answer::User { user }) => Ok(Login { user: *user, session }),
            Ok(_) | Err(CommitError::NotFound | CommitError::Unauthenticated) => Err(WRONG),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the session by which somebody is in.
    pub async fn logout(&self, identity: &Identity) -> Result<(), Error> {
        let operation = Operation::EndSession { digest: identity.credential };
        self.store.commit(Change { by: Some(identity.actor()), key: None, operation }).await?;
        self.invalidate();
        Ok(())
    }

    /// In the background: an answer that waited for the disk would tell that there is such a person.
    fn record_failure(&self, username: Username) {
        let store = self.store.clone();
        tokio::spawn(async move {
            let failed = Change::by_server(Operation::LoginFailed { username });
            if let Err(error) = store.commit(failed).await {
                tracing::warn!(%error, "a failed login could not be put on the record");
            }
        });
    }

    async fn start_session(&self, person: UserRecord) -> Result<Login, Error> {
        let session = Secret::new(CredentialKind::Session, &*self.clock);
        let operation = Operation::AddCredential(Box::new(self.session(person.user.username.clone(), &session)));
        let by = Some(Actor::of(person.principal(None)));
        self.store.commit(Change { by, key: None, operation }).await?;
        Ok(Login { user: person.user, session })
    }

    fn session(&self, username: Username, secret: &Secret) -> NewCredential {
        let now = self.clock.now();
        credential(CredentialKind::Session, username, secret, now, SESSION_LIFE)
    }
}

/// A session or link that ends `life` after `now`.
pub(super) fn credential(
    kind: CredentialKind,
    username: Username,
    secret: &Secret,
    now: Timestamp,
    life: Duration,
) -> NewCredential {
    let credential = Credential {
        kind,
        id: None,
        name: None,
        username,
        roles: None,
        created_at: now,
        expires_at: Some(now.after(life)),
    };
    NewCredential { digest: secret.digest(), credential }
}
