//! Random secrets of sessions, tokens and links. Only their SHA-256 is stored: 256 random bits need no slow hash.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::clock::Clock;
use crate::store::CredentialKind;

/// A secret in clear text, on its way to its owner.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret: 32 random bytes in base64url, with a prefix by which leaked secrets can be found and told
    /// apart.
    pub fn new(kind: CredentialKind, clock: &dyn Clock) -> Self {
        let mut bytes = [0_u8; 32];
        bytes[..16].copy_from_slice(&clock.random());
        bytes[16..].copy_from_slice(&clock.random());
        Self(format!("{}{}", prefix(kind), URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the SHA-256, which is what the database stores.
    pub fn digest(&self) -> [u8; 32] {
        digest(&self.0)
    }

    /// Returns the secret itself.
    pub fn expose(self) -> String {
        self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Returns the SHA-256 of a presented secret, as the database stores it.
pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn prefix(kind: CredentialKind) -> &'static str {
    match kind {
        CredentialKind::Session => "cs_session_",
        CredentialKind::Token => "cs_token_",
        CredentialKind::Link => "cs_link_",
        CredentialKind::Browser => "cs_browser_",
        CredentialKind::SignIn => "cs_sign_in_",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn a_secret_is_random_and_not_shown_by_accident() {
        let secret = Secret::new(CredentialKind::Token, &SystemClock);
        assert_ne!(secret.digest(), Secret::new(CredentialKind::Token, &SystemClock).digest());
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose().len(), "cs_token_".len() + 43);
    }
}
