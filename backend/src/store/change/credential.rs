//! Stored credentials.

use serde::{Deserialize, Serialize};
use shared::id::{TokenId, Username};
use shared::time::Timestamp;
use strum::IntoStaticStr;

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CredentialKind {
    /// The cookie of a session in a browser.
    Session,
    /// The bearer token of a program.
    Token,
    /// A link that logs in once.
    Link,
    /// A cookie that shows that someone has logged in with this browser before. It does not authenticate.
    Browser,
    /// A marker for a sign-in by the identity provider that has started a session. It does not authenticate.
    SignIn,
}

/// The client that started a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionClient {
    /// The client's IP address, as text.
    pub address: String,
    /// A short form of the browser's user agent, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A stored session, token or link. Its secret is never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The kind.
    pub kind: CredentialKind,
    /// The id of a token; otherwise `None`.
    pub id: Option<TokenId>,
    /// The name of a token; otherwise `None`.
    pub name: Option<String>,
    /// The person to whom it belongs.
    pub username: Username,
    /// The roles of a token, a subset of its owner's; otherwise `None`.
    pub roles: Option<Vec<String>>,
    /// When it was created, and became valid.
    pub created_at: Timestamp,
    /// When it expires. `None`: never.
    pub expires_at: Option<Timestamp>,
    /// When a session or token was last used, accurate to a few minutes.
    pub last_used_at: Option<Timestamp>,
    /// The client that started a session; otherwise `None`.
    pub client: Option<SessionClient>,
    /// When the owner of a session last proved who they are, if that was not the login: they confirmed it later, or had
    /// signed in at the identity provider before.
    pub confirmed_at: Option<Timestamp>,
}

impl Credential {
    /// When its owner last proved who they are: by logging in, or by confirming the session.
    pub fn proven_at(&self) -> Timestamp {
        self.confirmed_at.unwrap_or(self.created_at)
    }
}

/// A use of a session or token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialUse {
    /// The time of the use.
    pub at: Timestamp,
    /// The new end of a session, which every use extends. `None` for a token.
    pub until: Option<Timestamp>,
}

/// A session, token or link to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCredential {
    /// The SHA-256 of the secret.
    pub digest: [u8; 32],
    /// The data stored for the secret: its kind, person and times.
    pub credential: Credential,
}
