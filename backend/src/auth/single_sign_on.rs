//! Logs people in after the identity provider has signed them in: finds their user, and checks whether they may log in.
//!
//! A second factor that they have set up here is still required. But they do not have to set one up, because the
//! provider decides what people must prove to sign in.

use std::time::Duration;

use shared::id::Username;
use shared::single_sign_on::Trouble;

use super::credential::credential;
use super::oidc::{self, OidcError, PendingLogin, Profile, Provider, Returned};
use super::rate_limit::{AttemptKey, LoginWay};
use super::{Attempt, Authenticator, Secret, digest};
use crate::store::{
    Change, CommitError, Committed, CredentialKind, NewSession, Operation, ProviderSignIn, RefusedSignIn, SignIn,
    UserRecord,
};

/// The time limit for entering the code of a second factor.
const LINK_LIFE: Duration = Duration::from_mins(10);

/// A person whom the provider has signed in and who may log in.
#[derive(Debug)]
pub enum Entered {
    /// The person is logged in. This is the session's secret, for the cookie.
    Session(Secret),
    /// The person has a second factor here. This link logs them in, together with a code.
    Link(Secret),
}

impl Authenticator {
    /// Completes a sign-in. `begun` comes from the browser's cookie.
    pub async fn sign_in(
        &self,
        begun: &PendingLogin,
        returned: Returned,
        attempt: Attempt,
    ) -> Result<Entered, Trouble> {
        let provider = self.provider().ok_or(Trouble::Off)?;
        let keys = [AttemptKey::Returns(attempt.address.network())];
        self.limit.check(&keys, self.clock.uptime()).map_err(|_| Trouble::Busy)?;
        let profile = provider.finish(begun, returned).await.map_err(|error| {
            self.limit.count(&keys, self.clock.uptime());
            tracing::warn!(%error, "a login with the identity provider failed");
            trouble_of(&error)
        })?;
        self.enter(provider, begun, profile, attempt).await
    }

    async fn enter(
        &self,
        provider: &Provider,
        begun: &PendingLogin,
        profile: Profile,
        attempt: Attempt,
    ) -> Result<Entered, Trouble> {
        let found = self.store.person_of(&profile.account).await.map_err(|error| away(&error))?;
        let known = found.as_ref().map(|person| person.user.username.clone());
        let username = match self.admit(provider, &profile, found.as_ref()).await {
            Ok(username) => username,
            Err(Trouble::Busy) => return Err(Trouble::Busy),
            Err(trouble) => {
                self.limit.count(&[AttemptKey::Returns(attempt.address.network())], self.clock.uptime());
                let username = known.clone().or(profile.username);
                let refused = RefusedSignIn { account: profile.account, username, trouble, is_recorded: true };
                self.record_refusal(refused, known.is_some()).await;
                return Err(trouble);
            }
        };
        let logins = [AttemptKey::Login(username.to_string(), LoginWay::Provider)];
        self.limit.check(&logins, self.clock.uptime()).map_err(|_| Trouble::Busy)?;
        let now = self.clock.now();
        let asks_code = found.is_some_and(|person| person.confirmed_factor().is_some());
        let (secret, session) = if asks_code {
            let secret = Secret::new(CredentialKind::Link, &*self.clock);
            let link = credential(CredentialKind::Link, username.clone(), secret.digest(), now, LINK_LIFE);
            (secret, link)
        } else {
            let (secret, mut session) = self.new_session(username.clone(), &attempt);
            // They may have signed in there long before, and come back without a question.
            session.credential.confirmed_at = profile.authenticated_at.filter(|at| *at < now);
            (secret, session)
        };
        let by = ProviderSignIn {
            account: profile.account,
            display_name: profile.display_name,
            email: profile.email,
            roles: profile.roles,
            add: provider.creates_people(),
            attempt: credential(CredentialKind::SignIn, username, begun.digest(), now, oidc::LIFE * 2),
        };
        // If a code is still required, the browser's current session ends only once it has been given.
        let replaces = attempt.session.as_deref().filter(|_| !asks_code).map(digest);
        let new = NewSession { session, by: SignIn::Provider(Box::new(by)), proof: None, replaces, browser: None };
        match self.store.commit(Change::by_server(Operation::StartSession(Box::new(new)))).await {
            Ok(Committed::User { .. }) => {
                self.invalidate();
                self.limit.count(&logins, self.clock.uptime());
                Ok(if asks_code { Entered::Link(secret) } else { Entered::Session(secret) })
            }
            // The attempt was used already, or the person has changed since they were looked up.
            Ok(_) | Err(CommitError::Unauthenticated | CommitError::NotFound) => Err(Trouble::Attempt),
            Err(CommitError::Conflict(_)) => Err(Trouble::Taken),
            Err(error) => Err(away(&error)),
        }
    }

    /// Returns the username under which a person may log in. The transaction checks this again.
    async fn admit(
        &self,
        provider: &Provider,
        profile: &Profile,
        found: Option<&UserRecord>,
    ) -> Result<Username, Trouble> {
        if !profile.admitted {
            return Err(Trouble::Groups);
        }
        if let Some(person) = found {
            return if person.user.active { Ok(person.user.username.clone()) } else { Err(Trouble::Inactive) };
        }
        if !provider.creates_people() {
            return Err(Trouble::Unknown);
        }
        let username = profile.username.clone().ok_or(Trouble::Claims)?;
        match self.store.user(&username).await.map_err(|error| away(&error))? {
            Some(_) => Err(Trouble::Taken),
            None => Ok(username),
        }
    }

    /// Records a refused sign-in, limited like failed passwords. All accounts that belong to no person here have one
    /// more limit together.
    async fn record_refusal(&self, mut refused: RefusedSignIn, is_known: bool) {
        let mut keys = vec![AttemptKey::Record(refused.account.to_string())];
        if !is_known {
            keys.push(AttemptKey::Strangers);
        }
        let uptime = self.clock.uptime();
        refused.is_recorded = self.limit.check(&keys, uptime).is_ok();
        if refused.is_recorded {
            self.limit.count(&keys, uptime);
        } else if !is_known || refused.trouble != Trouble::Groups {
            return;
        }
        // Beyond the limit, the commit only removes the roles of a person whose groups no longer permit a login.
        let refused = Change::by_server(Operation::RefuseSignIn(Box::new(refused)));
        if let Err(error) = self.store.commit(refused).await {
            tracing::warn!(%error, "a refused login could not be written to the audit log");
        }
        self.invalidate();
    }
}

fn trouble_of(error: &OidcError) -> Trouble {
    match error {
        OidcError::Attempt => Trouble::Attempt,
        OidcError::Refused(_) => Trouble::Denied,
        OidcError::Unreachable(_) => Trouble::Provider,
        OidcError::Token(_) => Trouble::Token,
        OidcError::Claim(_) => Trouble::Claims,
    }
}

fn away(error: &dyn std::fmt::Display) -> Trouble {
    tracing::error!(%error, "a login with the identity provider could not be completed");
    Trouble::Busy
}

#[cfg(test)]
mod tests {
    use shared::log::EntryKind;

    use super::*;
    use crate::store::testing::{Database, ManualClock};
    use crate::store::{ProviderAccount, Store};

    #[tokio::test]
    async fn refusals_of_strangers_share_a_limit_that_people_do_not_meet() {
        let (database, clock) = (Database::sqlite().unwrap(), ManualClock::now());
        let store = Store::open(database.options(clock.clone())).await.unwrap();
        let authenticator = Authenticator::new(store.clone(), clock);
        let refuse = async |subject: &str, is_known| {
            let account = ProviderAccount { issuer: "https://id.example".to_owned(), subject: subject.to_owned() };
            let refused = RefusedSignIn { account, username: None, trouble: Trouble::Unknown, is_recorded: true };
            authenticator.record_refusal(refused, is_known).await;
        };
        let recorded = async || {
            let entries = store.log(&store.origin(), None, 1000).await.unwrap().unwrap().entries;
            entries.iter().filter(|entry| entry.event.kind == EntryKind::LoginFailed).count()
        };
        for n in 0..310 {
            refuse(&n.to_string(), false).await;
        }
        assert_eq!(recorded().await, 300);
        for _ in 0..40 {
            refuse("ana", true).await;
        }
        assert_eq!(recorded().await, 330);
        store.close().await;
    }
}
