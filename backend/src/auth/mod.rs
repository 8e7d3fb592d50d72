//! Authentication: passwords, sessions, tokens, one-time links, and the identity provider. `shared::access` determines
//! the rights of a caller.
//!
//! No secret is ever stored or logged: the database has SHA-256 hashes of random secrets and argon2 hashes of
//! passwords.

mod authenticator;
mod credential;
mod hashing_queue;
mod login;
pub mod oidc;
mod password;
mod policy;
mod rate_limit;
mod second_factor;
mod secret;
mod self_service;
mod single_sign_on;
mod user_setup;
mod uses;

use shared::error::{Mistake, Problem};

pub use authenticator::{Authenticator, Identity, SECURE_SESSION_COOKIE, SESSION_COOKIE};
pub(crate) use authenticator::{bearer, cookie, session_cookie};
pub(crate) use login::BROWSER_LIFE;
pub use login::{Attempt, BROWSER_COOKIE, Login};
pub use password::Passwords;
pub use policy::{LoginPolicy, RequiredFor};
#[cfg(test)]
pub(crate) use second_factor::code_at;
pub use secret::{Secret, digest};
pub use single_sign_on::Entered;
pub use user_setup::{add_user, bootstrap, check_roles, demo_users, erase_user, login_link, set_password};
pub(crate) use user_setup::{check_text, known_of};

use crate::store;

/// The reason why a login failed, or a user could not be added or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The username, the password or the link is wrong; does not say which.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The password or the link is correct, but a code of the second factor is required.
    #[error("the code of the second factor or a recovery code is required: send it as `code`")]
    SecondFactorRequired,
    /// The request was refused for another reason.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// Too many failed attempts, by account, network, browser, session or second factor, or too many waiting ones. The
    /// next attempt is accepted after this many seconds.
    #[error("too many attempts; try again in {0} s")]
    TooManyAttempts(u64),
    /// The data of a user are not valid.
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

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}
