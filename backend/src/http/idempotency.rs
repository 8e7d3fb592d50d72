//! The `Idempotency-Key` header: a request that is repeated with its key takes effect once, and gets the same response.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use shared::error::Problem;

use super::problem::{Refused, Result};
use crate::auth::Identity;
use crate::store::IdempotencyKey;

/// The longest key that is accepted, in bytes.
const MAX_KEY: usize = 255;

/// The idempotency key of a request, if it has one. An invalid key is refused with `422`.
#[derive(Debug, Clone)]
pub(super) struct RequestKey {
    key: Option<String>,
    /// The method and the path.
    target: String,
}

impl RequestKey {
    /// Returns the key for the store, which also contains the caller, the method, the path, and the SHA-256 of the
    /// body. `None` if the request has no key.
    pub fn of(&self, caller: &Identity, body: [u8; 32]) -> Option<IdempotencyKey> {
        self.key.clone().map(|key| caller.actor().key(&self.target, key, body))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RequestKey {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let target = format!("{} {}", parts.method, parts.uri.path());
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let key = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => {
                let visible = value.as_bytes().iter().all(u8::is_ascii_graphic);
                match value.to_str() {
                    Ok(key) if visible && !key.is_empty() && key.len() <= MAX_KEY => Some(key.to_owned()),
                    _ => return Err(wrong()),
                }
            }
            (Some(_), Some(_)) => return Err(wrong()),
        };
        Ok(Self { key, target })
    }
}

fn wrong() -> Refused {
    Problem::invalid("", format!("`Idempotency-Key` is one header of 1 to {MAX_KEY} visible ASCII characters")).into()
}
