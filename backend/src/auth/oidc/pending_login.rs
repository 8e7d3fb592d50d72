//! A sign-in in progress: its data are kept by the browser that started it, in a cookie that is encrypted and
//! authenticated with a key of all servers. So any server can complete it, and none stores anything.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use shared::time::Timestamp;

use crate::clock::Clock;

/// How long a person may take to sign in at the provider.
pub const LIFE: Duration = Duration::from_mins(10);

/// A sign-in in progress, with its secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingLogin {
    pub(super) state: String,
    pub(super) nonce: String,
    pub(super) verifier: String,
    /// The time of the start, in microseconds since 1970.
    pub(super) at: i64,
    /// The page to show after signing in.
    pub next: Option<String>,
}

impl std::fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingLogin").field("at", &self.at).field("next", &self.next).finish_non_exhaustive()
    }
}

impl PendingLogin {
    /// Returns the SHA-256 of the state, which identifies the sign-in.
    pub fn digest(&self) -> [u8; 32] {
        crate::auth::digest(&self.state)
    }
}

/// The key that encrypts and authenticates the cookie.
pub(super) struct CookieKey(LessSafeKey);

impl CookieKey {
    pub fn new(secret: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&CHACHA20_POLY1305, secret).expect("the key has as many bytes as the cipher takes");
        Self(LessSafeKey::new(key))
    }

    /// Encrypts a sign-in as the value of its cookie.
    pub fn seal(&self, begun: &PendingLogin, clock: &dyn Clock) -> String {
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&clock.random()[..NONCE_LEN]);
        let mut sealed = serde_json::json!(begun).to_string().into_bytes();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)
            .expect("a cookie is shorter than what the cipher takes");
        BASE64.encode([&nonce[..], &sealed].concat())
    }

    /// Decrypts the value of a cookie. `None` if it is not valid or older than [`LIFE`].
    pub fn open(&self, cookie: &str, now: Timestamp) -> Option<PendingLogin> {
        let mut bytes = BASE64.decode(cookie).ok()?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.0.open_in_place(nonce, Aad::empty(), sealed).ok()?;
        let begun: PendingLogin = serde_json::from_slice(opened).ok()?;
        let at = Timestamp(begun.at);
        (at <= now && now.since(at) <= LIFE).then_some(begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn only_what_was_sealed_here_a_moment_ago_is_opened() {
        let key = CookieKey::new(&[7; 32]);
        let text = |text: &str| text.to_owned();
        let (state, nonce, verifier) = (text("state"), text("nonce"), text("verifier"));
        let begun = PendingLogin { state, nonce, verifier, at: 1_000_000_000, next: Some(text("/runs")) };
        let cookie = key.seal(&begun, &SystemClock);
        let now = Timestamp(begun.at);
        assert_eq!(key.open(&cookie, now), Some(begun.clone()));
        assert_eq!(key.open(&cookie, now.after(LIFE)), Some(begun));
        assert_eq!(key.open(&cookie, now.after(LIFE + Duration::from_secs(1))), None);
        assert_eq!(key.open(&cookie, Timestamp(now.0 - 1)), None);
        assert_eq!(CookieKey::new(&[8; 32]).open(&cookie, now), None);
        for at in 0..cookie.len() {
            let mut changed = cookie.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(key.open(&String::from_utf8(changed).unwrap(), now), None, "byte {at}");
        }
        for short in ["", "AAAA", "not base64!"] {
            assert_eq!(key.open(short, now), None);
        }
    }
}
