//! Extractors for the caller: anyone who is logged in, or only a person in a session. They also count reads and
//! writes against the caller's limits, and commit on the caller's behalf.

use std::sync::Arc;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use axum::response::NoContent;
use shared::access::{Act, Principal};
use shared::error::{Code, Problem};

use super::idempotency::RequestKey;
use super::problem::{Refused, Result, allowed};
use super::{AppState, budget};
use crate::auth::{Identity, digest};
use crate::problem::of_commit;
use crate::rate_limit::LimitHolder;
use crate::store::{Change, Committed, CredentialKind, IdempotencyKey, Operation};

/// A caller with a session or a token. Without one, the request is refused with `401`; if a required second factor is
/// not set up yet, with `403`.
#[derive(Clone)]
pub struct Caller {
    /// The person with their rights, and their session or token.
    pub identity: Arc<Identity>,
    /// The state of the handlers.
    pub state: AppState,
}

impl Caller {
    /// Returns the caller with their rights.
    pub fn principal(&self) -> &Principal {
        &self.identity.principal
    }

    /// Returns `403` or `404` unless the caller may do this.
    pub fn may(&self, act: Act<'_>) -> Result<()> {
        allowed(self.principal(), act).map_err(Refused)
    }

    /// Returns `403` if the caller uses a token and not a session.
    pub fn in_session(&self) -> Result<()> {
        in_session(&self.identity)
    }

    /// Commits an operation in the name of the caller.
    pub async fn commit(&self, key: Option<IdempotencyKey>, operation: Operation) -> Result<Committed> {
        let change = Change { by: Some(self.identity.actor()), key, operation };
        self.state.store.commit(change).await.map_err(|error| Refused(of_commit(error, Some(self.principal()))))
    }
}

/// A caller together with the request's idempotency key, for handlers that change something.
#[derive(FromRequestParts)]
#[from_request(state(AppState))]
pub(super) struct Write {
    pub caller: Caller,
    key: RequestKey,
}

impl Write {
    /// Commits an operation under the request's idempotency key. `body` is the SHA-256 of the request's body.
    pub async fn commit(&self, body: [u8; 32], operation: Operation) -> Result<Committed> {
        self.caller.commit(self.key.of(&self.caller.identity, body), operation).await
    }

    /// Commits an operation of a request without a body, which has no result.
    pub async fn commit_without_body(&self, operation: Operation) -> Result<NoContent> {
        self.commit(digest(""), operation).await.map(|_| NoContent)
    }
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let identity = state.authenticator.authenticate(&parts.headers).await?;
        identity.may_go_on()?;
        budget::admit(state, parts, &identity)?;
        state.reads.admit(parts, LimitHolder::of(&identity.principal)).await?;
        Ok(Self { identity, state: state.clone() })
    }
}

/// A caller with a session or a token, including one who must first set up a second factor.
pub(super) struct Known(pub Arc<Identity>);

impl FromRequestParts<AppState> for Known {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        Ok(Self(state.authenticator.authenticate(&parts.headers).await?))
    }
}

fn in_session(identity: &Identity) -> Result<()> {
    if identity.kind == CredentialKind::Session {
        Ok(())
    } else {
        Err(Problem::new(Code::Forbidden).detail("a token may not do this; log in to do so").into())
    }
}

/// A caller with a session, including one who must first set up a second factor.
pub(super) struct InSession {
    pub identity: Arc<Identity>,
    pub state: AppState,
}

impl InSession {
    async fn find(parts: &Parts, state: &AppState) -> Result<Self> {
        let identity = state.authenticator.authenticate(&parts.headers).await?;
        in_session(&identity)?;
        Ok(Self { identity, state: state.clone() })
    }
}

impl FromRequestParts<AppState> for InSession {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let session = Self::find(parts, state).await?;
        budget::admit(state, parts, &session.identity)?;
        state.reads.admit(parts, LimitHolder::of(&session.identity.principal)).await?;
        Ok(session)
    }
}

impl OptionalFromRequestParts<AppState> for InSession {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Option<Self>> {
        match Self::find(parts, state).await {
            Ok(session) => Ok(Some(session)),
            Err(Refused(Problem { code: Code::Unauthenticated | Code::Forbidden, .. })) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}
