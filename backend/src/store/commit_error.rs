//! The reasons why a change was not made.

use shared::error::ConfirmWith;
use shared::time::Span;

use crate::engine::Refusal;

/// Why a change was not made. Except for [`Self::Unknown`], nothing of it was written.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The engine refused the change.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An object that the change refers to does not exist.
    #[error("not found")]
    NotFound,
    /// The actor's session or token is no longer valid, or they may no longer log in.
    #[error("no one is logged in")]
    Unauthenticated,
    /// The actor lacks the right to make the change.
    #[error("{0}")]
    Forbidden(String),
    /// The actor's last login is too long ago for a change that gives access.
    #[error("this needs a login within the last {within}")]
    ConfirmationRequired {
        /// How recent the login must be.
        within: Span,
        /// How the actor can prove that it is they.
        confirm_with: ConfirmWith,
    },
    /// The change conflicts with the present state: a name is taken, for example, or what it relies on has changed.
    #[error("{0}")]
    Conflict(String),
    /// The actor has as many pending questions as allowed.
    #[error("{0}")]
    TooManyPending(String),
    /// The idempotency key was used with another body before.
    #[error("the idempotency key was used with another body")]
    KeyReused,
    /// Nothing can be written at present: the database is unreachable, locked, full or read-only, too many changes
    /// wait, or the server is stopping. The same change may succeed later.
    #[error("{0}")]
    Unavailable(String),
    /// The run was continued by a newer server, and this server must not change it.
    #[error("{0}")]
    NewerFormat(String),
    /// Stored data that the change relies on cannot be read by this server. A retry gives the same result.
    #[error("{0}")]
    Unreadable(String),
    /// A bug: the engine failed, or the database refuses what it was given. A retry gives the same result.
    #[error("{0}")]
    Failed(String),
    /// The outcome is unknown: the connection was lost during the commit, and the database has not come back to tell.
    #[error("{0}")]
    Unknown(String),
}
