//! Logging in, and what people manage of their own account: password, sessions, second factor.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::time::Timestamp;

/// The body of `POST /api/v1/session`: a username with a password, or the one-time secret of a link.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected {username, password} or {token}")]
pub enum LoginRequest {
    /// With a password.
    Password {
        /// The username, as it was typed.
        username: String,
        /// The password in clear text. After ten wrong ones for a username from one network, further attempts are
        /// answered with `429` for some seconds.
        password: String,
        /// The code of their second factor, or a recovery code, where they have one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// With the one-time secret of a link.
    Link {
        /// The secret of the link, `cs_link_` with 43 characters after it. A login uses it up, and it expires after a
        /// day at the latest.
        token: String,
        /// The code of their second factor, or a recovery code, where they have one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
}

/// The body of `POST /api/v1/session/link`, which answers with the person whom the link logs in.
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
    /// The password until now.
    pub current: String,
    /// 12 to 128 characters, and not one that is known or guessed soon.
    pub new: String,
}

/// A session, as the person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// Names the session in `DELETE /api/v1/me/sessions/{id}`; it is not the secret in the cookie.
    pub id: SessionId,
    /// Whether it is the one that asks.
    #[serde(default)]
    pub current: bool,
    /// When the person logged in.
    pub created_at: Timestamp,
    /// When it was used last, to some minutes.
    pub last_used_at: Timestamp,
    /// When it ends if it is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// From which address it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// In which browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// The answer of `GET /api/v1/me/totp`: the second factor of the person who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecondFactorState {
    /// Whether a code is asked for when they log in.
    pub enabled: bool,
    /// Whether the server's settings require it of them.
    pub required: bool,
    /// How many recovery codes are left.
    pub recovery_codes_left: u32,
}

/// A second factor that is to be confirmed; its secret is shown this once.
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

/// Codes that each log in once in the place of one that an app shows; they are shown this once.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecoveryCodes {
    /// Ten codes such as `abcd-efgh-jkmn-pqrs`. Case, spaces and hyphens do not matter when one is entered.
    pub recovery_codes: Vec<String>,
}
