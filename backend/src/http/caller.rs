//! Who calls, in a handler's arguments; and the commits that they make. A request that writes is counted here.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use shared::access::{Act, Principal};

use super::problem::{Refused, Result, allowed};
use super::{AppState, budget};
use crate::auth::Identity;
use crate::problem::of_commit;
use crate::store::{Change, Committed, IdempotencyKey, Operation, Store};

/// Somebody who is logged in; `401` where nobody is.
#[derive(Debug, Clone)]
pub struct Caller(pub Identity);

impl Caller {
    /// Them, with their rights.
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Lets through what they may do.
    pub fn may(&self, act: Act<'_>) -> Result<()> {
        allowed(self.principal(), act).map_err(Refused)
    }

    /// Commits what they want.
    pub async fn commit(&self, store: &Store, key: Option<IdempotencyKey>, operation: Operation) -> Result<Committed> {
        let change = Change { by: Some(self.0.actor()), key, operation };
        store.commit(change).await.map_err(|error| Refused(of_commit(error, Some(self.principal()))))
    }
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Refused;
    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let identity = state.authenticator.authenticate(&parts.headers).await?;
        identity.may_go_on()?;
        budget::admit(state, parts, &identity.principal)?;
        Ok(Self(identity))
    }
}
