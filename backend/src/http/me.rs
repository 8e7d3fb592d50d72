//! `/api/v1/me`: the caller.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use shared::api::User;
use shared::error::{Code, Problem};

use super::AppState;
use super::api::Api;
use super::caller::Known;
use super::problem::Result;
use crate::auth::Identity;

pub(super) fn mount(api: &mut Api) {
    api.get("/api/v1/me", "Get the caller, with their roles", get);
}

async fn get(State(state): State<AppState>, Known(identity): Known) -> Result<Json<User>> {
    Ok(Json(user_of(&state, &identity).await?))
}

/// Returns a caller with the roles of their session or token, of which a token may have fewer than its creator, and
/// with the people whom they stand in for.
pub(super) async fn user_of(state: &AppState, identity: &Identity) -> Result<User> {
    let principal = &identity.principal;
    let person = state.store.user(&principal.username).await?.ok_or_else(|| Problem::new(Code::Unauthenticated))?;
    let mut user = person.user;
    user.stands_for.clone_from(&principal.stands_for);
    let own: BTreeSet<&String> = user.roles.iter().collect();
    if !principal.roles.iter().eq(own.iter().copied()) {
        user.roles = principal.roles.iter().cloned().collect();
    }
    Ok(user)
}
