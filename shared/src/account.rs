//! Logging in, and managing one's own account: password, sessions, second factor.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::time::Timestamp;

/// The minimum length of a password, in characters.
pub const MIN_PASSWORD: usize = 12;

/// The body of `POST /api/v1/session`: a username with a password, or the one-time secret of a link.
#[serde_with::skip_serializing_none]
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected {username, password} or {token}")]
pub enum LoginRequest {
    /// A login with a password.
    Password {
        /// The username as it was typed.
        username: String,
        /// The password in clear text. After ten wrong ones for a username from one network, further attempts return
        /// `429` for some seconds.
        password: String,
        /// The code of their second factor, or a recovery code, if they have a second factor.
        code: Option<String>,
    },
    /// A login with the one-time secret of a link.
    Link {
        /// The secret of the link, `cs_link_` with 43 characters after it. A login uses it up, and it expires after a
        /// day at the latest.
        token: String,
        /// The code of their second factor, or a recovery code, if they have a second factor.
        code: Option<String>,
    },
}

/// The body of `POST /api/v1/session/link`, which returns the user of a login link.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct LinkSecret {
    /// The secret of the link.
    pub token: String,
}

/// The body of `PUT /api/v1/me/password`, which ends all other sessions of the person.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewPassword {
    /// The current password.
    pub current: String,
    /// 12 to 128 characters; common or easily guessed passwords are refused.
    pub new: String,
    /// Whether the caller's tokens end too; default: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end_tokens: bool,
}

/// The body of `POST /api/v1/me/confirm`, which confirms the session for some minutes.
#[serde_with::skip_serializing_none]
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct SessionConfirmation {
    /// The caller's password.
    pub password: String,
    /// A code of the caller's second factor, or a recovery code. Required if they have one.
    pub code: Option<String>,
}

/// A session, as the person sees it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// The id for `DELETE /api/v1/me/sessions/{id}`; it is not the secret in the cookie.
    pub id: SessionId,
    /// Whether it is the current session.
    #[serde(default)]
    pub current: bool,
    /// The time of the login.
    pub created_at: Timestamp,
    /// The time of its last use, accurate to some minutes.
    pub last_used_at: Timestamp,
    /// The time at which it ends if it is not used.
    pub expires_at: Option<Timestamp>,
    /// The address of the login.
    pub address: Option<String>,
    /// The browser of the login.
    pub agent: Option<String>,
}

/// The answer of `GET /api/v1/me/totp`: the second factor of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecondFactorState {
    /// Whether a code is required to log in.
    pub enabled: bool,
    /// Whether the server's settings require it for this person.
    pub required: bool,
    /// The number of recovery codes left.
    pub recovery_codes_left: u32,
}

/// The body of `POST /api/v1/me/totp`.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct BeginSecondFactor {
    /// The caller's password; people who have none must have logged in within the last ten minutes instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// A second factor that has to be confirmed; its secret is shown only once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewSecondFactor {
    /// The secret in base 32, to type into an app.
    pub secret: String,
    /// The same as an `otpauth:` address.
    pub uri: String,
    /// The same as a QR code, an SVG picture.
    pub qr_svg: String,
}

/// `POST /api/v1/me/totp/confirm` and `POST /api/v1/me/totp/remove`.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct SecondFactorCode {
    /// A code that the app shows now; to remove it, a recovery code does too.
    pub code: String,
}

/// Recovery codes, each of which replaces a code of the app once; they are shown only once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveryCodes {
    /// Ten codes such as `abcd-efgh-jkmn-pqrs`. Case, spaces and hyphens do not matter when one is entered.
    pub recovery_codes: Vec<String>,
}
