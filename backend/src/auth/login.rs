//! Logging in and logging out.

use std::time::Duration;

use shared::api::User;
use shared::id::{TokenId, Username};

use super::credential::credential;
use super::hashing_queue::Origin;
use super::rate_limit::{AttemptKey, LoginWay};
use super::{Authenticator, Error, Identity, Secret, digest};
use crate::client_address::ClientAddress;
use crate::store::{
    Change, CommitError, Committed, Credential, CredentialKind, FailedLogin, NewCredential, NewSession, Operation,
    SessionClient, SignIn, UserRecord,
};

/// The cookie that identifies a browser that has logged in before, so that others in its network cannot use up its
/// attempts.
pub const BROWSER_COOKIE: &str = "countersign_browser";
/// The lifetime of that cookie.
pub(crate) const BROWSER_LIFE: Duration = Duration::from_hours(180 * 24);

const WRONG: Error = Error::Unauthenticated("the username or the password is wrong");
const WRONG_LINK: Error = Error::Unauthenticated("the link has been used or has expired; ask for a new one");

/// An attempt to log in.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The address of the client: failures are counted by its network, and the session records it.
    pub address: ClientAddress,
    /// The `User-Agent` of the browser.
    pub agent: Option<String>,
    /// The secret of the browser's current session, which ends with a new login.
    pub session: Option<String>,
    /// The secret of the cookie [`BROWSER_COOKIE`], if the browser sent it.
    pub browser: Option<String>,
    /// The code of the second factor, if it was sent.
    pub code: Option<String>,
}

impl Attempt {
    /// Creates an attempt of which only the address is known.
    pub fn from(address: ClientAddress) -> Self {
        Self { address, agent: None, session: None, browser: None, code: None }
    }
}

/// What was wrong in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedFactor {
    Password,
    /// The code of the second factor, after the right password or link.
    Code,
}

/// A successful login.
#[derive(Debug)]
pub struct Login {
    /// The person who is logged in now.
    pub user: User,
    /// The session's secret, for the cookie.
    pub session: Secret,
    /// The secret for the cookie [`BROWSER_COOKIE`]. `None` if the browser was known before.
    pub browser: Option<Secret>,
}

impl Authenticator {
    /// Logs a person in by password. Failures are counted for the pair of account and network and for the network, or
    /// for a known browser, and are recorded in the log. Successful logins are counted for the account.
    pub async fn login(&self, username: &str, password: String, attempt: Attempt) -> Result<Login, Error> {
        let network = attempt.address.network();
        let known = self.known_browser(username, &attempt).await?;
        let keys = match known {
            Some(browser) => vec![AttemptKey::Browser(browser)],
            None => vec![
                AttemptKey::Account(username.to_owned(), network),
                AttemptKey::Network(network),
                AttemptKey::Site(network.site()),
            ],
        };
        let way = if known.is_some() { LoginWay::KnownBrowser } else { LoginWay::Other };
        let login = [AttemptKey::Login(username.to_owned(), way)];
        let asked = [&keys[..], &login[..]].concat();
        self.limit.check(&asked, self.clock.uptime())?;
        // Known browsers do not queue behind others in their network.
        let origin = if known.is_some() { Origin::Person(username.to_owned()) } else { Origin::Network(network) };
        let person = self.store.user(username).await?;
        let hash = person.as_ref().filter(|person| person.user.active).and_then(|person| person.password_hash.clone());
        // Checked again after waiting in the queue, so that many concurrent attempts cannot evade the limit.
        let (limit, clock) = (self.limit.clone(), self.clock.clone());
        let may = move || limit.check(&asked, clock.uptime());
        let right = self.passwords().verify(origin, password, hash.clone(), may).await?;
        match (person, hash) {
            (Some(person), Some(phc)) if right => {
                let started = self.start_session(person, SignIn::Password(phc), attempt, known.is_some()).await?;
                self.limit.count(&login, self.clock.uptime());
                Ok(started)
            }
            (person, _) => {
                let uptime = self.clock.uptime();
                self.limit.count(&keys, uptime);
                if let Some(UserRecord { user, .. }) = person {
                    self.record_failure(&user.username, FailedFactor::Password, false);
                }
                Err(WRONG)
            }
        }
    }

    /// Logs a person in by the secret of a link, which can be used once. This is not limited: nobody guesses 256 random
    /// bits, and somebody has made each link.
    pub async fn redeem(&self, secret: &str, attempt: Attempt) -> Result<Login, Error> {
        let link = digest(secret);
        let (_, person) = self.linked(link).await?;
        let known = self.known_browser(person.user.username.as_str(), &attempt).await?.is_some();
        self.start_session(person, SignIn::Link(link), attempt, known).await
    }

    /// Returns the person whom a link logs in, without using it up.
    pub async fn link_owner(&self, secret: &str) -> Result<User, Error> {
        self.linked(digest(secret)).await.map(|(_, person)| User { email: None, ..person.user })
    }

    async fn linked(&self, link: [u8; 32]) -> Result<(Credential, UserRecord), Error> {
        let found = self.store.credential(&link).await?;
        found.filter(|(link, person)| link.kind == CredentialKind::Link && person.user.active).ok_or(WRONG_LINK)
    }

    /// Ends the session of the caller.
    pub async fn logout(&self, identity: &Identity) -> Result<(), Error> {
        self.commit(identity, Operation::EndSession { digest: identity.credential }).await?;
        self.invalidate();
        Ok(())
    }

    /// Returns the SHA-256 of the browser's secret, if the browser has logged in to this account before.
    async fn known_browser(&self, username: &str, attempt: &Attempt) -> Result<Option<[u8; 32]>, Error> {
        let Some(secret) = &attempt.browser else { return Ok(None) };
        let digest = digest(secret);
        let found = self.store.credential(&digest).await?;
        let known = found
            .filter(|(browser, _)| browser.kind == CredentialKind::Browser && browser.username.as_str() == username);
        Ok(known.map(|_| digest))
    }

    /// Records a failure in the background, unless there were too many: an answer that waited for the disk would reveal
    /// that the user exists.
    pub(super) fn record_failure(&self, username: &Username, failed: FailedFactor, in_session: bool) {
        let Some(unrecorded) = self.limit.record(username, self.clock.uptime()) else { return };
        let (store, username) = (self.store.clone(), username.clone());
        tokio::spawn(async move {
            let wrong_code = failed == FailedFactor::Code;
            let failed = FailedLogin { username, unrecorded, in_session, wrong_code };
            let failed = Change::by_server(Operation::LoginFailed(Box::new(failed)));
            if let Err(error) = store.commit(failed).await {
                tracing::warn!(%error, "a failed login could not be written to the audit log");
            }
        });
    }

    async fn start_session(
        &self,
        person: UserRecord,
        by: SignIn,
        attempt: Attempt,
        known: bool,
    ) -> Result<Login, Error> {
        let proof = self.prove(&person, attempt.code.as_deref(), false)?;
        let now = self.clock.now();
        let username = person.user.username;
        let (secret, session) = self.new_session(username.clone(), &attempt);
        let browser = (!known).then(|| Secret::new(CredentialKind::Browser, &*self.clock));
        let new_browser = browser
            .as_ref()
            .map(|secret| credential(CredentialKind::Browser, username.clone(), secret.digest(), now, BROWSER_LIFE));
        let replaces = attempt.session.as_deref().map(digest);
        let wrong = if matches!(by, SignIn::Link(_)) { WRONG_LINK } else { WRONG };
        let new = NewSession { session, by, proof, replaces, browser: new_browser };
        match self.store.commit(Change::by_server(Operation::StartSession(Box::new(new)))).await {
            Ok(Committed::User { user }) => {
                if replaces.is_some() {
                    self.invalidate();
                }
                Ok(Login { user: *user, session: secret, browser })
            }
            Ok(_) | Err(CommitError::NotFound | CommitError::Unauthenticated) => Err(wrong),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a session that begins now, and its secret.
    pub(super) fn new_session(&self, username: Username, attempt: &Attempt) -> (Secret, NewCredential) {
        let now = self.clock.now();
        let secret = Secret::new(CredentialKind::Session, &*self.clock);
        let life = self.policy.session_until(now, now).since(now);
        let mut session = credential(CredentialKind::Session, username, secret.digest(), now, life);
        let stored = &mut session.credential;
        stored.id = Some(TokenId(crate::clock::Moment::of(&*self.clock).ids().uuid()));
        stored.last_used_at = Some(now);
        let agent = attempt.agent.as_deref().map(in_short);
        stored.client = Some(SessionClient { address: attempt.address.to_string(), agent });
        (secret, session)
    }
}

/// Shortens a `User-Agent` for lists.
fn in_short(agent: &str) -> String {
    agent.chars().filter(|c| !c.is_control()).take(200).collect()
}
