//! The data of entries about tokens and sessions that ended.

use serde::{Deserialize, Serialize};

use crate::id::{TokenId, Username};

/// The data of a created token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCreated {
    /// The id by which the token is revoked; its secret is in no entry.
    pub id: TokenId,
    /// The token's purpose.
    pub name: String,
    /// The roles that it has.
    pub roles: Vec<String>,
}

/// A token was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRevoked {
    /// The token's id, as in `token.created`.
    pub id: TokenId,
    /// The person whose token it was, who may not be the entry's actor; `None` in entries of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Username>,
}

/// The data of a logout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// The person whose session it was, who is also the entry's actor.
    pub username: Username,
}
