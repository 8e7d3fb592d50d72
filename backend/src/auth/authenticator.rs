//! Determines the caller from the headers of a request.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use parking_lot::Mutex;
use shared::access::Principal;
use shared::client::USER_HEADER;
use shared::error::{Code, Problem};
use shared::id::Username;
use shared::time::{Span, Timestamp};

use super::oidc::Provider;
use super::rate_limit::LoginLimits;
use super::uses::Uses;
use super::{Error, LoginPolicy, Passwords, digest};
use crate::clock::SharedClock;
use crate::problem::of_store;
use crate::store::{Actor, Change, Credential, CredentialKind, CredentialUse, Operation, Store};

/// The session cookie over http.
pub const SESSION_COOKIE: &str = "countersign_session";
/// The session cookie over https. Because of the prefix `__Host-`, browsers accept it only from this host and over
/// https.
pub const SECURE_SESSION_COOKIE: &str = "__Host-countersign_session";

/// How long an identity is cached. The log empties the cache at once when this server commits a change; this bounds the
/// delay of changes by other processes.
const CACHE_LIFETIME: Duration = Duration::from_secs(2);
const CACHED: usize = 10_000;
/// The minimum interval between updates of the last use of a session or token.
const NOTED: Duration = Duration::from_mins(5);

/// The authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The caller, with the rights that apply.
    pub principal: Principal,
    /// The SHA-256 of the caller's secret. A commit checks that the credential is still valid.
    pub credential: [u8; 32],
    /// The kind of credential that was presented.
    pub kind: CredentialKind,
    /// The end of the credential; `None`: it does not expire.
    pub expires_at: Option<Timestamp>,
    /// How recent the login must be for changes that give access. `None` for a token: it was created soon after one.
    pub login_within: Option<Span>,
    /// The time up to which these rights apply if nobody changes them: the credential expires, or a period as someone's
    /// deputy begins or ends. `None` if there is no such time.
    pub rights_until: Option<Timestamp>,
    /// The people whose deputy the caller is now, also those who may not log in at the moment.
    pub deputy_of: BTreeSet<Username>,
    /// Whether the caller must set up a second factor before anything else.
    pub factor_missing: bool,
}

impl Identity {
    /// Returns the caller as the actor of commits.
    pub fn actor(&self) -> Actor {
        Actor {
            principal: self.principal.clone(),
            credential: Some(self.credential),
            rights_until: self.rights_until,
            deputy_of: self.deputy_of.clone(),
            login_within: self.login_within,
        }
    }

    /// Refuses callers who must set up a second factor first.
    pub fn may_go_on(&self) -> Result<(), Problem> {
        if self.factor_missing {
            let detail = "set up a second factor first: in the console under You (for admins: People), Security, or POST /api/v1/me/totp";
            return Err(Problem::new(Code::SecondFactorMissing).detail(detail));
        }
        Ok(())
    }
}

/// Identifies callers, and logs people in and out. Cheap to clone.
#[derive(Clone)]
pub struct Authenticator {
    pub(super) store: Store,
    pub(super) clock: SharedClock,
    pub(super) limit: Arc<LoginLimits>,
    pub(super) policy: LoginPolicy,
    pub(super) provider: Option<Arc<Provider>>,
    passwords: Passwords,
    cache: Arc<Mutex<Cache>>,
    uses: Uses,
}

#[derive(Default)]
struct Cache {
    /// Incremented whenever the cache is emptied, so that identities read before are not inserted afterwards.
    generation: u64,
    identities: HashMap<[u8; 32], (Arc<Identity>, Timestamp)>,
}

impl Authenticator {
    /// Creates an authenticator over `store`, with the default policy and without an identity provider.
    pub fn new(store: Store, clock: SharedClock) -> Self {
        let passwords = Passwords::new(clock.clone());
        let (limit, policy) = (Arc::new(LoginLimits::new()), LoginPolicy::default());
        Self { store, clock, passwords, limit, policy, provider: None, cache: Arc::default(), uses: Uses::default() }
    }

    /// Replaces the policy.
    pub fn with(self, policy: LoginPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Replaces the identity provider.
    pub fn with_provider(self, provider: Option<Arc<Provider>>) -> Self {
        Self { provider, ..self }
    }

    /// Returns the identity provider, if there is one.
    pub fn provider(&self) -> Option<&Provider> {
        self.provider.as_deref()
    }

    /// Returns the policy for sessions, tokens and second factors.
    pub fn policy(&self) -> &LoginPolicy {
        &self.policy
    }

    /// Returns the hasher of passwords.
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// Identifies the sender of these headers, by `Authorization: Bearer` if present, otherwise by the session cookie.
    /// Fails with `401` if the credential is not valid, or belongs to another user than the one that the headers name.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Identity>, Problem> {
        let identity = self.identify(headers).await?;
        expected(headers, &identity)?;
        Ok(identity)
    }

    async fn identify(&self, headers: &HeaderMap) -> Result<Arc<Identity>, Problem> {
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
                return Ok(Arc::clone(identity));
            }
            cache.generation
        };
        let (identity, credential) = self.find(digest).await?;
        if identity.kind != kind {
            return Err(ended());
        }
        self.note_use(&credential, digest, now);
        let identity = Arc::new(identity);
        let mut cache = self.cache.lock();
        if cache.generation == generation {
            if cache.identities.len() >= CACHED {
                cache.identities.clear();
            }
            cache.identities.insert(digest, (Arc::clone(&identity), now));
        }
        Ok(identity)
    }

    /// Identifies the owner of the secret with this digest. Reads the current rights from the database, not the cache.
    /// Fails with `401` if the credential is no longer valid.
    pub async fn look_up(&self, digest: [u8; 32]) -> Result<Identity, Problem> {
        self.find(digest).await.map(|(identity, _)| identity)
    }

    /// Notes the use of a session or token every few minutes, which extends a session. Sockets alone do not count.
    fn note_use(&self, credential: &Credential, digest: [u8; 32], now: Timestamp) {
        let is_session = credential.kind == CredentialKind::Session;
        let interval = if is_session { NOTED.min(self.policy.session_idle.0 / 10) } else { NOTED };
        if credential.last_used_at.is_some_and(|since| now.since(since) < interval) {
            return;
        }
        let until = is_session.then(|| self.policy.session_until(credential.created_at, now));
        self.uses.note(&self.store, digest, CredentialUse { at: now, until });
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
        let lapses_at = if credential.kind == CredentialKind::Token { self.policy.tokens_until(&person) } else { None };
        if lapses_at.is_some_and(|at| at <= now) {
            return Err(Problem::new(Code::Unauthenticated).detail(
                "the owner of this token has not logged in with the identity provider for too long; once they do, \
                 it works again",
            ));
        }
        let mut principal = person.principal(Some(&credential));
        let (mut rights_until, mut deputy_of) = (None, BTreeSet::new());
        // Only sessions have rights of deputies: a token has a right only through a role that it names.
        if !principal.token && !person.deputyships.is_empty() {
            let standing = self.store.standing(&person).await.map_err(|error| of_store(&error))?;
            (principal.stands_for, rights_until, deputy_of) = (standing.stands_for, standing.until, standing.deputy_of);
        }
        let expires_at = credential.expires_at.into_iter().chain(lapses_at).min();
        let rights_until = rights_until.into_iter().chain(expires_at).min();
        let factor_missing = !principal.token && self.policy.lacks_factor(&person);
        let kind = credential.kind;
        let login_within = (!principal.token).then_some(self.policy.confirm_after);
        let identity = Identity {
            principal,
            credential: digest,
            kind,
            expires_at,
            login_within,
            rights_until,
            deputy_of,
            factor_missing,
        };
        Ok((identity, credential))
    }

    pub(super) async fn commit(&self, identity: &Identity, operation: Operation) -> Result<(), Error> {
        self.store.commit(Change { by: Some(identity.actor()), key: None, operation }).await?;
        Ok(())
    }

    /// Empties the cache. Called when the log reports changes of people, sessions or tokens.
    pub fn invalidate(&self) {
        let mut cache = self.cache.lock();
        cache.generation += 1;
        cache.identities.clear();
    }
}

fn ended() -> Problem {
    Problem::new(Code::Unauthenticated).detail("the session or token has ended; log in again")
}

/// Refuses requests whose headers name another user.
fn expected(headers: &HeaderMap, identity: &Identity) -> Result<(), Problem> {
    let username = &identity.principal.username;
    if headers.get_all(USER_HEADER).iter().all(|named| named.as_bytes() == username.as_str().as_bytes()) {
        return Ok(());
    }
    let detail =
        format!("this is the session or token of `{username}`, not of the user in `{USER_HEADER}`; log in again");
    Err(Problem::new(Code::Unauthenticated).detail(detail))
}

/// Returns the secret in the headers, and the kind of credential that it must be. A session cookie does not make up for
/// an invalid `Authorization`.
fn presented(headers: &HeaderMap) -> Option<(&str, CredentialKind)> {
    if headers.contains_key(header::AUTHORIZATION) {
        return bearer(headers).map(|token| (token, CredentialKind::Token));
    }
    session_cookie(headers).map(|secret| (secret, CredentialKind::Session))
}

/// Returns the token in `Authorization: Bearer`.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the secret in the session cookie, preferably in the one for https.
pub(crate) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, SECURE_SESSION_COOKIE).or_else(|| cookie(headers, SESSION_COOKIE))
}

/// Returns the value of the first cookie with this name.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
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
