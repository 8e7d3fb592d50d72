//! A credential that is valid for some time.

use std::time::Duration;

use shared::id::Username;
use shared::time::Timestamp;

use crate::store::{Credential, CredentialKind, NewCredential};

/// Creates a credential from the SHA-256 of its secret. It expires `life` after `now`.
pub(super) fn credential(
    kind: CredentialKind,
    username: Username,
    digest: [u8; 32],
    now: Timestamp,
    life: Duration,
) -> NewCredential {
    let credential = Credential {
        kind,
        id: None,
        name: None,
        username,
        roles: None,
        created_at: now,
        expires_at: Some(now.after(life)),
        last_used_at: None,
        client: None,
        confirmed_at: None,
    };
    NewCredential { digest, credential }
}
