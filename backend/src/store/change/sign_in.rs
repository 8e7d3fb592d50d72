//! The changes of logins: sessions, passwords, second factors, the identity provider.

use serde::{Deserialize, Serialize};
use shared::access::ADMIN;
use shared::id::Username;
use shared::single_sign_on::Trouble;

use super::credential::NewCredential;

/// A session to start.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The session. For somebody whom the provider has signed in and who has a second factor here: a link, with which
    /// the code is then sent.
    pub session: NewCredential,
    /// What lets them in.
    pub by: SignIn,
    /// What proves their second factor, where they have one.
    pub proof: Option<Proof>,
    /// The SHA-256 of the secret of the session that ends: that of the same browser.
    pub replaces: Option<[u8; 32]>,
    /// By what the browser is known later.
    pub browser: Option<NewCredential>,
}

/// What lets somebody in.
#[derive(Clone)]
pub enum SignIn {
    /// The password of this PHC string.
    Password(String),
    /// The link with this SHA-256, which is used up.
    Link([u8; 32]),
    /// The identity provider.
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

/// By what an identity provider knows somebody, for ever: names change, and are given to somebody else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderAccount {
    /// The provider, a URL.
    pub issuer: String,
    /// The person there.
    pub subject: String,
}

/// As it is stored: a URL has no spaces.
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

/// Somebody whom the identity provider has signed in, and what it says of them.
#[derive(Debug, Clone)]
pub struct ProviderSignIn {
    /// The account at the identity provider.
    pub account: ProviderAccount,
    /// Their full name; none: what is known stays.
    pub display_name: Option<String>,
    /// Their address; none: what is known stays.
    pub email: Option<String>,
    /// The roles that their groups give, in the place of those that they have; none: roles are given here.
    pub roles: Option<Vec<String>>,
    /// Whether somebody who is not known yet is added.
    pub add: bool,
    /// Remembers that the attempt was used: it starts one session, at however many servers.
    pub attempt: NewCredential,
}

impl ProviderSignIn {
    /// Whether somebody who is an admin would not be one any more.
    pub fn takes_admin(&self) -> bool {
        self.roles.as_ref().is_some_and(|roles| !roles.iter().any(|role| role == ADMIN))
    }
}

/// Somebody whom the identity provider has signed in, and who is not let in here.
#[derive(Debug, Clone)]
pub struct RefusedSignIn {
    /// The account at the identity provider.
    pub account: ProviderAccount,
    /// The name that they have or would have here.
    pub username: Option<Username>,
    /// Why. Where it is their groups, the roles go that these have given before.
    pub trouble: Trouble,
}

/// What proves a second factor. Each counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// A code of this time step.
    Step(u64),
    /// The recovery code with this SHA-256.
    Recovery([u8; 32]),
}

/// A new password.
#[derive(Clone)]
pub struct PasswordChange {
    /// PHC string of the password that was given as the old one.
    pub from: String,
    /// PHC string of the new one.
    pub to: String,
    /// The SHA-256 of the secret of the session that stays; all others end.
    pub keep: [u8; 32],
}

impl std::fmt::Debug for PasswordChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordChange(…)")
    }
}

/// The second factor of a person, as it is stored. Who can read the database can compute its codes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactor {
    /// The secret that the person's device has too, in hexadecimal.
    pub secret: String,
    /// Whether the person has shown that the device has it; it counts only then.
    pub confirmed: bool,
    /// The time step of the last code that was taken: neither it nor an older one is taken again.
    pub used_step: u64,
    /// SHA-256 of the recovery codes that are left, in hexadecimal.
    pub recovery: Vec<String>,
}

impl std::fmt::Debug for SecondFactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecondFactor").field("confirmed", &self.confirmed).finish_non_exhaustive()
    }
}

/// What happens to a second factor.
#[derive(Clone)]
pub enum FactorChange {
    /// A secret is set, in hexadecimal, which the person then confirms.
    Begin(String),
    /// The person has shown a code of this step for the secret; recovery codes are set by their SHA-256.
    Confirm {
        /// The secret that they confirm.
        secret: String,
        /// The time step.
        step: u64,
        /// SHA-256 of the recovery codes, in hexadecimal.
        recovery: Vec<String>,
    },
    /// It is removed: by the person with a proof, or by an admin without.
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
