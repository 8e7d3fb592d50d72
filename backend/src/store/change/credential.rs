//! Credentials, as they are stored.

use serde::{Deserialize, Serialize};
use shared::id::{TokenId, Username};
use shared::time::Timestamp;

/// What lets somebody in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// A browser's cookie.
    Session,
    /// A program's bearer token.
    Token,
    /// A link that logs in once.
    Link,
    /// A browser's cookie by which it is known to have logged in before. It lets nobody in.
    Browser,
    /// An attempt to sign in by the provider that has started a session. It lets nobody in.
    SignIn,
}

/// From where a session was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionClient {
    /// The client's IP address, as text.
    pub address: String,
    /// What the browser says that it is, in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A session, token or link as it is stored: never its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// What it is.
    pub kind: CredentialKind,
    /// A token's id.
    pub id: Option<TokenId>,
    /// A token's name.
    pub name: Option<String>,
    /// Whose it is.
    pub username: Username,
    /// A token's subset of roles.
    pub roles: Option<Vec<String>>,
    /// When it was made: it counts from then on.
    pub created_at: Timestamp,
    /// When it stops letting anybody in; none: never.
    pub expires_at: Option<Timestamp>,
    /// When a session was used last, to some minutes.
    pub last_used_at: Option<Timestamp>,
    /// From where a session was started.
    pub client: Option<SessionClient>,
}

/// A session, token or link to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCredential {
    /// SHA-256 of its secret.
    pub digest: [u8; 32],
    /// What the secret stands for: its kind, its person and its times.
    pub credential: Credential,
}
