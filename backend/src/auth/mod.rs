//! Who is calling: passwords, sessions, tokens and one-time links. What somebody may then do is `shared::access`'s to
//! say.
//!
//! Imports `shared`, `crate::clock`, `crate::client_address`, `crate::store` and `crate::problem` only. No secret is ever stored or logged: the database holds
//! SHA-256 of random secrets and argon2 hashes of passwords.

mod attempts;
mod authenticator;
mod login;
mod password;
mod people;
mod secret;

use shared::error::Mistake;

pub use authenticator::{Authenticator, Identity, SESSION_COOKIE};
pub use login::{Login, SESSION_LIFE};
pub use password::Passwords;
pub use people::{add_user, bootstrap, check_roles, demo_users, login_link};
pub(crate) use people::{check_password, check_text};
pub use secret::{Secret, digest};

use crate::store;

/// Why somebody was not let in, or a person could not be added.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name, the password, or the link is wrong; never says which.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// Too many failed attempts for this name or from this address.
    #[error("too many failed attempts; try again in {retry_after} s")]
    TooManyAttempts {
        /// Seconds until the next attempt is heard.
        retry_after: u64,
    },
    /// What was said of a person does not fit.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Mistake>),
    /// The change was not made.
    #[error(transparent)]
    Commit(#[from] store::CommitError),
    /// The database could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A password could not be hashed.
    #[error("hashing a password failed: {0}")]
    Hash(String),
}
