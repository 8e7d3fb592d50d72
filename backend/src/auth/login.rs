//! Logging in and logging out.

use std::time::Duration;

use shared::api::User;
use shared::id::{TokenId, Username};

use super::credential::credential;
use super::rate_limit::AttemptKey;
use super::{Authenticator, Error, Identity, Secret, digest};
use crate::client_address::ClientAddress;
use crate::store::{
    Change, CommitError, Committed, Credential, CredentialKind, NewCredential, NewSession, Operation, SessionClient,
    SignIn, UserRecord,
};

/// The cookie by which a browser is known to have logged in before: others in its network cannot use up its attempts.
pub const BROWSER_COOKIE: &str = "countersign_browser";
/// How long it is known.
pub(crate) const BROWSER_LIFE: Duration = Duration::from_hours(180 * 24);

const WRONG: Error = Error::Unauthenticated("the username or the password is wrong");
const WRONG_LINK: Error = Error::Unauthenticated("the link has been used or has expired; ask for a new one");

/// From where somebody tries to get in.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The client's address: failures are counted by its network, and the session keeps it.
    pub address: ClientAddress,
    /// What the browser says that it is.
    pub agent: Option<String>,
    /// The secret of its session until now, which ends.
    pub session: Option<String>,
    /// The secret by which it is known to have logged in before.
    pub browser: Option<String>,
    /// The code of the second factor.
    pub code: Option<String>,
}

impl Attempt {
    /// From this address, and nothing else is known.
    pub fn from(address: ClientAddress) -> Self {
        Self { address, agent: None, session: None, browser: None, code: None }
    }
}

/// Somebody who was let in.
#[derive(Debug)]
pub struct Login {
    /// The person who is logged in now.
    pub user: User,
    /// The session's secret, for the cookie.
    pub session: Secret,
    /// By what the browser is known from now on, where it was not.
    pub browser: Option<Secret>,
}

impl Authenticator {
    /// Lets somebody in by password. Failures are limited for the account and the network together, and stand in the log.
    pub async fn login(&self, username: &str, password: String, attempt: Attempt) -> Result<Login, Error> {
        let network = attempt.address.network();
        let known = self.known_browser(username, &attempt).await?;
        let keys = match known {
            Some(browser) => vec![AttemptKey::Browser(browser)],
            None => vec![AttemptKey::Account(username.to_owned(), network), AttemptKey::Network(network)],
        };
        self.limit.check(&keys, self.clock.uptime())?;
        // Whoever is known does not wait behind the others of their network.
        let line = known.is_none().then_some(network);
        let person = self.store.user(username).await?;
        let hash = person.as_ref().filter(|person| person.user.active).and_then(|person| person.password_hash.clone());
        // Those who waited for their turn are checked again when it has come: many attempts at once are no way around.
        let (limit, clock, asked) = (self.limit.clone(), self.clock.clone(), keys.clone());
        let may = move || limit.check(&asked, clock.uptime());
        let right = self.passwords().verify(line, password, hash.clone(), may).await?;
        match (person, hash) {
            (Some(person), Some(phc)) if right => {
                self.start_session(person, SignIn::Password(phc), attempt, known.is_some()).await
            }
            (person, _) => {
                let uptime = self.clock.uptime();
                self.limit.failed(&keys, uptime);
                let recorded = [AttemptKey::Record(username.to_owned())];
                if let Some(UserRecord { user, .. }) = person
                    && self.limit.check(&recorded, uptime).is_ok()
                {
                    self.limit.failed(&recorded, uptime);
                    self.record_failure(user.username);
                }
                Err(WRONG)
            }
        }
    }

    /// Lets somebody in by the secret of a link, which is used up by that. Nobody guesses 256 random bits, so failures of
    /// others do not count.
    pub async fn redeem(&self, secret: &str, attempt: Attempt) -> Result<Login, Error> {
        let link = digest(secret);
        let (_, person) = self.linked(link).await?;
        let known = self.known_browser(person.user.username.as_str(), &attempt).await?.is_some();
        self.start_session(person, SignIn::Link(link), attempt, known).await
    }

    /// Whom a link lets in; it is not used up by asking.
    pub async fn link_owner(&self, secret: &str) -> Result<User, Error> {
        self.linked(digest(secret)).await.map(|(_, person)| User { email: None, ..person.user })
    }

    async fn linked(&self, link: [u8; 32]) -> Result<(Credential, UserRecord), Error> {
        let found = self.store.credential(&link).await?;
        found.filter(|(link, person)| link.kind == CredentialKind::Link && person.user.active).ok_or(WRONG_LINK)
    }

    /// Ends the session by which somebody is in.
    pub async fn logout(&self, identity: &Identity) -> Result<(), Error> {
        let operation = Operation::EndSession { digest: identity.credential };
        self.store.commit(Change { by: Some(identity.actor()), key: None, operation }).await?;
        self.invalidate();
        Ok(())
    }

    /// The SHA-256 of what the browser is known by, where it has logged in to this account before.
    async fn known_browser(&self, username: &str, attempt: &Attempt) -> Result<Option<[u8; 32]>, Error> {
        let Some(secret) = &attempt.browser else { return Ok(None) };
        let digest = digest(secret);
        let found = self.store.credential(&digest).await?;
        let known = found
            .filter(|(browser, _)| browser.kind == CredentialKind::Browser && browser.username.as_str() == username);
        Ok(known.map(|_| digest))
    }

    /// In the background: an answer that waited for the disk would tell that there is such a person.
    fn record_failure(&self, username: Username) {
        let store = self.store.clone();
        tokio::spawn(async move {
            let failed = Change::by_server(Operation::LoginFailed { username });
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
        let proof = self.prove(&person, attempt.code.as_deref())?;
        let now = self.clock.now();
        let username = person.user.username;
        let (secret, session) = self.new_session(username.clone(), &attempt);
        let browser = (!known).then(|| Secret::new(CredentialKind::Browser, &*self.clock));
        let new_browser = browser
            .as_ref()
            .map(|secret| credential(CredentialKind::Browser, username.clone(), secret, now, BROWSER_LIFE));
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

    /// A session that begins now, with its secret.
    pub(super) fn new_session(&self, username: Username, attempt: &Attempt) -> (Secret, NewCredential) {
        let now = self.clock.now();
        let secret = Secret::new(CredentialKind::Session, &*self.clock);
        let life = self.policy.session_until(now, now).since(now);
        let mut session = credential(CredentialKind::Session, username, &secret, now, life);
        let stored = &mut session.credential;
        stored.id = Some(TokenId(crate::clock::Moment::of(&*self.clock).ids().uuid()));
        stored.last_used_at = Some(now);
        let agent = attempt.agent.as_deref().map(in_short);
        stored.client = Some(SessionClient { address: attempt.address.to_string(), agent });
        (secret, session)
    }
}

/// What a browser says that it is, as far as a list shows it.
fn in_short(agent: &str) -> String {
    agent.chars().filter(|c| !c.is_control()).take(200).collect()
}
