//! `POST /api/v1/reviews/{id}/withdraw`: whoever asked takes the question back.

use axum::Json;
use axum::extract::State;
use shared::access::Act;
use shared::api::{Decided, Reason};
use shared::id::ReviewId;

use super::{commit, found};
use crate::engine::Input;
use crate::http::api::{Api, Operation};
use crate::http::body::{self, Id, OptionalJson};
use crate::http::idempotency::Key;
use crate::http::problem::Result;
use crate::http::{AppState, Caller};

pub(super) fn mount(api: &mut Api) {
    let withdraw = Operation::new("Take it back: what was asked counts as refused", "Decided").body("Reason");
    api.post("/api/v1/reviews/{id}/withdraw", withdraw, self::withdraw);
}

async fn withdraw(
    State(state): State<AppState>,
    caller: Caller,
    Id(id): Id<ReviewId>,
    key: Key,
    OptionalJson(body::Json { value, digest }): OptionalJson<Reason>,
) -> Result<Json<Decided>> {
    caller.may(Act::Withdraw(&found(&state, id).await?))?;
    let input = Input::Withdraw { review: id, by: caller.principal().clone(), reason: value.reason };
    commit(&state, &caller, key.of(&caller, digest), id, input).await
}
