//! Changes of logins: sessions, passwords, second factors, the identity provider.

use serde::{Deserialize, Serialize};
use shared::access::ADMIN;
use shared::id::Username;
use shared::single_sign_on::Trouble;

use super::credential::NewCredential;

/// A session to start.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The session. If the identity provider has signed in a person who has a second factor here, this is a link
    /// instead, with which the code is then sent.
    pub session: NewCredential,
    /// The first factor.
    pub by: SignIn,
    /// The proof of the second factor, if the person has one.
    pub proof: Option<Proof>,
    /// The SHA-256 of the secret of the browser's previous session, which ends.
    pub replaces: Option<[u8; 32]>,
    /// The credential by which the browser is recognised later.
    pub browser: Option<NewCredential>,
}

/// The first factor of a login.
#[derive(Clone)]
pub enum SignIn {
    /// A password. This is the PHC string that it was checked against.
    Password(String),
    /// The link whose secret has this SHA-256. It is used up.
    Link([u8; 32]),
    /// A sign-in by the identity provider.
    Provider(Box<ProviderSignIn>),
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Password(_) => "Password",
            Self::Link(_) => "Link",
            Self::Provider(_) => "Provider",
        })
    }
}

/// The permanent identity of a person at an identity provider; names change, and may be given to someone else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderAccount {
    /// The URL of the provider.
    pub issuer: String,
    /// The id of the person there.
    pub subject: String,
}

/// The stored form, separated by a space; a URL has none.
impl std::fmt::Display for ProviderAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.issuer, self.subject)
    }
}

impl std::str::FromStr for ProviderAccount {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (issuer, subject) = text.split_once(' ').ok_or("an account at a provider has an issuer and a subject")?;
        Ok(Self { issuer: issuer.to_owned(), subject: subject.to_owned() })
    }
}

/// A person whom the identity provider has signed in, with what it says about them.
#[derive(Debug, Clone)]
pub struct ProviderSignIn {
    /// The account at the identity provider.
    pub account: ProviderAccount,
    /// Their full name. `None` keeps the known one.
    pub display_name: Option<String>,
    /// Their email address. `None` keeps the known one.
    pub email: Option<String>,
    /// The roles from their groups, which replace their roles. `None` if roles are given here.
    pub roles: Option<Vec<String>>,
    /// Whether to add the person if they are unknown.
    pub add: bool,
    /// A marker that this attempt was used, so that it starts only one session, on any number of servers.
    pub attempt: NewCredential,
}

impl ProviderSignIn {
    /// Whether an admin would no longer be one.
    pub fn takes_admin(&self) -> bool {
        self.roles.as_ref().is_some_and(|roles| !roles.iter().any(|role| role == ADMIN))
    }
}

/// A person whom the identity provider has signed in but who was not admitted here.
#[derive(Debug, Clone)]
pub struct RefusedSignIn {
    /// The account at the identity provider.
    pub account: ProviderAccount,
    /// The name that they have or would have here, if known.
    pub username: Option<Username>,
    /// The reason. If it is their groups, they lose their roles.
    pub trouble: Trouble,
    /// Whether the log gets an entry about the refusal itself.
    pub is_recorded: bool,
}

/// A failed login, or a failed proof in a session.
#[derive(Debug, Clone)]
pub struct FailedLogin {
    /// The name that was tried. Nothing is recorded if no such person exists.
    pub username: Username,
    /// The number of failures before this one that were not recorded.
    pub unrecorded: u64,
    /// Whether somebody in a session of the person failed to prove that it is theirs.
    pub in_session: bool,
    /// Whether the code of the second factor was wrong, after the right password or link.
    pub wrong_code: bool,
}

/// The proof of a second factor. Each is valid once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// A code of this time step.
    Step(u64),
    /// The recovery code with this SHA-256.
    Recovery([u8; 32]),
}

/// A proof that a session is its owner's.
#[derive(Clone)]
pub struct ConfirmedSession {
    /// The SHA-256 of the session's secret.
    pub session: [u8; 32],
    /// The PHC string that the password was checked against.
    pub password: String,
    /// The proof of the second factor, if the person has one.
    pub proof: Option<Proof>,
}

impl std::fmt::Debug for ConfirmedSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConfirmedSession(…)")
    }
}

/// A new password.
#[derive(Clone)]
pub struct PasswordChange {
    /// The PHC string that the old password was checked against.
    pub from: String,
    /// The PHC string of the new password.
    pub to: String,
    /// The SHA-256 of the secret of the session that remains; all others end.
    pub keep: [u8; 32],
    /// Whether the person's tokens end too.
    pub end_tokens: bool,
}

impl std::fmt::Debug for PasswordChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordChange(…)")
    }
}

/// The second factor of a person, as it is stored. Anyone who can read the database can compute its codes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactor {
    /// The secret that is shared with the person's device, in hexadecimal.
    pub secret: String,
    /// Whether the person has proved that the device has the secret. Until then, it is not used.
    pub confirmed: bool,
    /// The time step of the last accepted code. Codes of this step or earlier ones are no longer accepted.
    pub used_step: u64,
    /// The SHA-256 of each recovery code that is left, in hexadecimal.
    pub recovery: Vec<String>,
}

impl std::fmt::Debug for SecondFactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecondFactor").field("confirmed", &self.confirmed).finish_non_exhaustive()
    }
}

/// A change of a second factor.
#[derive(Clone)]
pub enum FactorChange {
    /// A new secret is set, in hexadecimal. The person has yet to confirm it.
    Begin(String),
    /// The person has proved with a code that their device has the secret.
    Confirm {
        /// The secret that is confirmed.
        secret: String,
        /// The time step of the code.
        step: u64,
        /// The SHA-256 of each recovery code, in hexadecimal.
        recovery: Vec<String>,
    },
    /// The second factor is removed: by the person with a proof, or by an admin without one.
    Remove(Option<Proof>),
}

impl std::fmt::Debug for FactorChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Begin(_) => "Begin",
            Self::Confirm { .. } => "Confirm",
            Self::Remove(_) => "Remove",
        })
    }
}
