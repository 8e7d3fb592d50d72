//! What people do to a review beside deciding it: working on it, talking about it, handing it to somebody else.

use serde::Serialize;

use crate::id::Username;
use crate::read::read_fields;
use crate::time::Timestamp;

/// Who works on a review, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// Who.
    pub by: Username,
    /// When the lease runs out.
    pub until: Timestamp,
}

read_fields!(Claim { need by, need until, });

/// Somebody handed a review to somebody else, who decides it from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delegation {
    /// Who.
    pub from: Username,
    /// To whom.
    pub to: Username,
    /// Whose vote it is, where it had been handed to `from` before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<Username>,
    /// When.
    pub at: Timestamp,
}

read_fields!(Delegation { need from, need to, may on_behalf_of, need at, });

/// What somebody said beside a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comment {
    /// Who.
    pub by: Username,
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

read_fields!(Comment { need by, need at, need text, });
