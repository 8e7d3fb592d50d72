//! The secret in the URL with which a program answers later. It names the question, and has a MAC with a key of this
//! installation. It is not stored; the engine checks whether it is still valid.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use shared::id::{ReviewId, RunId, TaskId};
use uuid::Uuid;

/// The total length of the three ids, in bytes.
const IDS: usize = 48;

/// The question that a callback answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callback {
    /// The run that asked, to which the answer is applied.
    pub run: RunId,
    /// The review that records the question, now or once it exists.
    pub review: ReviewId,
    /// The task that asked the program.
    pub task: TaskId,
}

/// The key that authenticates secrets of callbacks.
#[derive(Clone)]
pub struct CallbackKey(hmac::Key);

impl CallbackKey {
    /// Creates the key from its bytes, which are the same on all servers of a database.
    pub fn new(key: [u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// Returns the secret of a callback.
    pub fn secret(&self, callback: Callback) -> String {
        let ids = [callback.run.0, callback.review.0, callback.task.0].map(Uuid::into_bytes).concat();
        BASE64.encode([&ids[..], hmac::sign(&self.0, &ids).as_ref()].concat())
    }

    /// Verifies a secret and returns its callback. `None` if the secret was not made with this key.
    pub fn open(&self, secret: &str) -> Option<Callback> {
        let bytes = BASE64.decode(secret).ok()?;
        let (ids, tag) = bytes.split_at_checked(IDS)?;
        // In constant time.
        hmac::verify(&self.0, ids, tag).ok()?;
        let id = |at: usize| Uuid::from_slice(ids.get(at..at + 16)?).ok();
        Some(Callback { run: RunId(id(0)?), review: ReviewId(id(16)?), task: TaskId(id(32)?) })
    }
}

/// The base of the URLs with which programs answer later.
#[derive(Clone)]
pub struct CallbackUrl {
    /// The URL of this server, without a slash at the end.
    pub server: String,
    /// The key of the secrets. `None` if programs cannot answer later.
    pub key: Option<CallbackKey>,
}

impl CallbackUrl {
    /// Returns the URL of a callback. `None` without a key.
    pub fn of(&self, callback: Callback) -> Option<String> {
        let secret = self.key.as_ref()?.secret(callback);
        Some(format!("{}/api/v1/callbacks/{secret}", self.server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_secret_of_this_key_is_opened_and_only_as_it_was_made() {
        let id = |byte| Uuid::from_bytes([byte; 16]);
        let callback = Callback { run: RunId(id(1)), review: ReviewId(id(2)), task: TaskId(id(3)) };
        let key = CallbackKey::new([7; 32]);
        let secret = key.secret(callback);
        assert_eq!(key.open(&secret), Some(callback));
        assert_eq!(CallbackKey::new([8; 32]).open(&secret), None);
        for at in 0..secret.len() {
            let mut other = secret.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(key.open(std::str::from_utf8(&other).unwrap()), None, "{at}");
        }
        assert!(["", "AAAA", &secret[..64]].iter().all(|secret| key.open(secret).is_none()));
    }
}
