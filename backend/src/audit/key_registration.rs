//! Ensures that a database has one key: a server that would seal or write its log with another key is refused before it
//! does.

use super::key::{PublicKey, SealKey, Trusted};
use super::seal::Opened;
use crate::store::{self, Store};

/// The reason why this key cannot be registered with the database.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The registered key or the newest seal cannot be read, or the key cannot be registered.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Another key is registered.
    #[error(
        "the audit log of this database is sealed with the key {registered}, but this server has {mine}: every server \
         on one database needs the same seal.key and seal.pub (COUNTERSIGN_SEAL_KEY). If the old key is lost, add its \
         line to seal.pub, and start the server again"
    )]
    OtherKey {
        /// The registered public key.
        registered: String,
        /// The public key of this server.
        mine: PublicKey,
    },
    /// No key is registered, and the newest seal is not signed by a trusted key.
    #[error(
        "{0}. Every server on one database needs the same seal.key and seal.pub (COUNTERSIGN_SEAL_KEY); see docs/audit.md"
    )]
    OtherSeal(String),
}

/// Registers a key with the database if none is registered, or if it replaces the registered one.
pub async fn register(store: &Store, key: &SealKey, trusted: &Trusted) -> Result<(), RegisterError> {
    if store.seal_key().await?.is_none()
        && let Some(newest) = store.last_seal().await?
    {
        Opened::open(&newest, trusted).map_err(RegisterError::OtherSeal)?;
    }
    let mine = key.public();
    let registered = store.register_seal_key(&mine.to_string(), &trusted.lines()).await?;
    if registered == mine.to_string() { Ok(()) } else { Err(RegisterError::OtherKey { registered, mine }) }
}
