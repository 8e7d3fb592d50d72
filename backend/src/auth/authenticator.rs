//! Determines the caller from the headers of a request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use parking_lot::Mutex;
use shared::access::Principal;
use shared::client::USER_HEADER;
use shared::error::{Code, Problem};
use shared::time::Timestamp;

use super::oidc::Provider;
use super::rate_limit::Failures;
use super::{LoginPolicy, Passwords, digest};
use crate::clock::SharedClock;
use crate::problem::of_store;
use crate::store::{Actor, Credential, CredentialKind, Store};

/// The browser's cookie.
pub const SESSION_COOKIE: &str = "countersign_session";
/// The same over https: browsers take it from this host alone, and over https.
pub const SECURE_SESSION_COOKIE: &str = "__Host-countersign_session";

/// How long an identity is believed without another look. The log empties the cache at once when something changes
/// here; this bounds what another process changes.
const CACHE_LIFETIME: Duration = Duration::from_secs(2);
const CACHED: usize = 10_000;
/// How often it is noted that a session is used.
const NOTED: Duration = Duration::from_mins(5);

/// Who is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Who, with the rights that count.
    pub principal: Principal,
    /// SHA-256 of what let them in; a commit checks that it still holds.
    pub credential: [u8; 32],
    /// What let them in.
    pub kind: CredentialKind,
    /// Until when it does.
    pub expires_at: Option<Timestamp>,
    /// Until when these are the rights, if nobody changes them: a time as somebody's deputy begins or ends then, or what
    /// let them in runs out.
    pub rights_until: Option<Timestamp>,
    /// Whether they must set up a second factor before they may do anything else.
    pub factor_missing: bool,
}

impl Identity {
    /// The same, as commits name it.
    pub fn actor(&self) -> Actor {
        Actor { principal: self.principal.clone(), credential: Some(self.credential), rights_until: self.rights_until }
    }

    /// Refuses who must set up a second factor before anything else.
    pub fn may_go_on(&self) -> Result<(), Problem> {
        if self.factor_missing {
            let detail = "set up a second factor first: in the console under You, Security, or POST /api/v1/me/totp";
            return Err(Problem::new(Code::SecondFactorMissing).detail(detail));
        }
        Ok(())
    }
}

/// Finds out who is calling, and lets people in and out. Cheap to clone.
#[derive(Clone)]
pub struct Authenticator {
    pub(super) store: Store,
    pub(super) clock: SharedClock,
    pub(super) limit: Arc<Failures>,
    pub(super) policy: LoginPolicy,
    pub(super) provider: Option<Arc<Provider>>,
    passwords: Passwords,
    cache: Arc<Mutex<Cache>>,
}

#[derive(Default)]
struct Cache {
    /// Raised whenever the cache is emptied: what was read before is not put in afterwards.
    generation: u64,
    identities: HashMap<[u8; 32], (Identity, Timestamp)>,
}

impl Authenticator {
    /// An authenticator over `store`.
    pub fn new(store: Store, clock: SharedClock) -> Self {
        let passwords = Passwords::new(clock.clone());
        let (limit, policy) = (Arc::new(Failures::new()), LoginPolicy::default());
        Self { store, clock, passwords, limit, policy, provider: None, cache: Arc::default() }
    }

    /// The same with other settings.
    pub fn with(self, policy: LoginPolicy) -> Self {
        Self { policy, ..self }
    }

    /// The same with an identity provider.
    pub fn with_provider(self, provider: Option<Arc<Provider>>) -> Self {
        Self { provider, ..self }
    }

    /// The identity provider, where there is one.
    pub fn provider(&self) -> Option<&Provider> {
        self.provider.as_deref()
    }

    /// How long what lets people in lasts.
    pub fn policy(&self) -> &LoginPolicy {
        &self.policy
    }

    /// What hashes passwords.
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// Who sent these headers: by `Authorization: Bearer` where there is one, else by the session cookie. `401` where
    /// that is nobody, or not the person whom the headers name.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        let identity = self.identify(headers).await?;
        expected(headers, &identity)?;
        Ok(identity)
    }

    async fn identify(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        let (secret, kind) = presented(headers).ok_or_else(|| {
            Problem::new(Code::Unauthenticated).detail("log in, or send `Authorization: Bearer <token>`")
        })?;
        let digest = digest(secret);
        let now = self.clock.now();
        let generation = {
            let cache = self.cache.lock();
            if let Some((identity, since)) = cache.identities.get(&digest)
                && now.since(*since) < CACHE_LIFETIME
                && identity.expires_at.is_none_or(|at| now < at)
                && identity.rights_until.is_none_or(|at| now < at)
                && identity.kind == kind
            {
                return Ok(identity.clone());
            }
            cache.generation
        };
        let (identity, credential) = self.find(digest).await?;
        if identity.kind != kind {
            return Err(ended());
        }
        self.note_use(&credential, digest, now);
        let mut cache = self.cache.lock();
        if cache.generation == generation {
            if cache.identities.len() >= CACHED {
                cache.identities.clear();
            }
            cache.identities.insert(digest, (identity.clone(), now));
        }
        Ok(identity)
    }

    /// Who is let in by the secret with this digest, by the rights of now: read from the database, not from what was
    /// remembered. `401` where it lets nobody in any more.
    pub async fn look_up(&self, digest: [u8; 32]) -> Result<Identity, Problem> {
        self.find(digest).await.map(|(identity, _)| identity)
    }

    /// Lengthens a session that is used, every few minutes, and not for its sockets alone.
    fn note_use(&self, credential: &Credential, digest: [u8; 32], now: Timestamp) {
        let since = credential.last_used_at.unwrap_or(credential.created_at);
        if credential.kind != CredentialKind::Session || now.since(since) < NOTED.min(self.policy.session_idle / 10) {
            return;
        }
        let until = self.policy.session_until(credential.created_at, now);
        let store = self.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.session_used(&digest, now, until).await {
                tracing::warn!(%error, "the last use of a session could not be stored");
            }
        });
    }

    async fn find(&self, digest: [u8; 32]) -> Result<(Identity, Credential), Problem> {
        let now = self.clock.now();
        let found = self.store.credential(&digest).await.map_err(|error| of_store(&error))?;
        let (credential, person) = found
            .filter(|(credential, person)| {
                let lets_in = matches!(credential.kind, CredentialKind::Session | CredentialKind::Token);
                person.user.active && lets_in && !credential.is_over(now)
            })
            .ok_or_else(ended)?;
        let mut principal = person.principal(Some(&credential));
        let mut rights_until = None;
        // Who has a deputy has one in their own sessions: a token has a right only through a role that it names.
        if !principal.token && !person.deputyships.is_empty() {
            (principal.stands_for, rights_until) =
                self.store.standing(&person).await.map_err(|error| of_store(&error))?;
        }
        let expires_at = credential.expires_at;
        let rights_until = rights_until.into_iter().chain(expires_at).min();
        let has_factor = person.second_factor.as_ref().is_some_and(|factor| factor.confirmed);
        let factor_missing = !principal.token && !has_factor && self.policy.second_factor.includes(&person);
        let kind = credential.kind;
        Ok((Identity { principal, credential: digest, kind, expires_at, rights_until, factor_missing }, credential))
    }

    /// Forgets whom it knows: called when the log tells of people, sessions or tokens.
    pub fn invalidate(&self) {
        let mut cache = self.cache.lock();
        cache.generation += 1;
        cache.identities.clear();
    }
}

fn ended() -> Problem {
    Problem::new(Code::Unauthenticated).detail("the session or token has ended; log in again")
}

/// Refuses requests that were meant to be of somebody else.
fn expected(headers: &HeaderMap, identity: &Identity) -> Result<(), Problem> {
    let username = &identity.principal.username;
    if headers.get_all(USER_HEADER).iter().all(|named| named.as_bytes() == username.as_str().as_bytes()) {
        return Ok(());
    }
    let detail =
        format!("this is the session or token of `{username}`, not of the user in `{USER_HEADER}`; log in again");
    Err(Problem::new(Code::Unauthenticated).detail(detail))
}

/// The secret that the headers carry, and what it must be. A bad `Authorization` is not made good by a cookie.
fn presented(headers: &HeaderMap) -> Option<(&str, CredentialKind)> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| (token.trim(), CredentialKind::Token));
    }
    let cookies = || {
        let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='))
    };
    let secure = cookies().find(|(name, _)| *name == SECURE_SESSION_COOKIE);
    let session = secure.or_else(|| cookies().find(|(name, _)| *name == SESSION_COOKIE));
    session.map(|(_, secret)| (secret, CredentialKind::Session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_a_session_and_a_bearer_is_a_token() {
        let mut headers = HeaderMap::new();
        assert_eq!(presented(&headers), None);
        headers.insert(header::COOKIE, "a=b; countersign_session=cs_session_x; c=d".parse().unwrap());
        assert_eq!(presented(&headers), Some(("cs_session_x", CredentialKind::Session)));
        headers.append(header::COOKIE, "__Host-countersign_session=cs_session_z".parse().unwrap());
        assert_eq!(presented(&headers), Some(("cs_session_z", CredentialKind::Session)));
        headers.insert(header::AUTHORIZATION, "bearer cs_token_y".parse().unwrap());
        assert_eq!(presented(&headers), Some(("cs_token_y", CredentialKind::Token)));
        headers.insert(header::AUTHORIZATION, "Basic abc".parse().unwrap());
        assert_eq!(presented(&headers), None);
    }
}
