//! Why a change was not made. Imports the engine's refusal, and nothing of the store.

use crate::engine::Refusal;

/// Why a change was not made. Nothing of it is on disk.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The engine refused it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What it speaks of does not exist.
    #[error("not found")]
    NotFound,
    /// The actor's session or token no longer holds, or they may no longer log in.
    #[error("no one is logged in")]
    Unauthenticated,
    /// The actor may not do it.
    #[error("{0}")]
    Forbidden(String),
    /// The name is taken.
    #[error("{0}")]
    Conflict(String),
    /// So many questions of the actor wait already that there may be no more.
    #[error("{0}")]
    TooManyPending(String),
    /// The idempotency key was used with another body.
    #[error("the idempotency key was used with another body")]
    KeyReused,
    /// Nothing can be written now: the database is away, locked, full or read-only, too much waits, or the server is
    /// stopping. Nothing was written; the same change may be made later.
    #[error("{0}")]
    Unavailable(String),
    /// The run was continued by a newer server: this one must leave it alone. Nothing was written.
    #[error("{0}")]
    NewerFormat(String),
    /// What is stored, and what the change rests on, cannot be read by this server. Nothing was written, and trying again
    /// gives the same.
    #[error("{0}")]
    Unreadable(String),
    /// A mistake of this program: the engine failed, or the database refuses what it was given. Nothing was written, and
    /// trying again gives the same.
    #[error("{0}")]
    Failed(String),
    /// The database went away while it was told to keep the change, and has not come back to say what became of it.
    #[error("{0}")]
    Unknown(String),
}
