//! `/api/v1/notifications`: who is told what, and what could not be told.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use shared::access::Act;
use shared::api::Page;
use shared::error::{Code, Problem};
use shared::id::DeliveryId;
use shared::notification::{Delivery, DeliveryQuery};

use super::api::{Api, Operation};
use super::body::{Id, Params, limit};
use super::problem::Result;
use super::{AppState, Caller};

pub(super) fn mount(api: &mut Api) {
    let list = Operation::new(
        "Messages to people and programs, newest first: those that were given up, or others",
        "PageOfDeliveries",
    )
    .query(&["status", "limit", "cursor"]);
    api.get("/api/v1/notifications/deliveries", list, deliveries);
    let retry = Operation::new("Send a message again that was given up", "").status(204);
    api.post("/api/v1/notifications/deliveries/{id}/retry", retry, self::retry);
}

async fn deliveries(
    State(state): State<AppState>,
    caller: Caller,
    Params(mut query): Params<DeliveryQuery>,
) -> Result<Json<Page<Delivery>>> {
    caller.may(Act::ManageDeliveries)?;
    query.limit = Some(limit(query.limit)?);
    Ok(Json(state.store.deliveries(&query).await?))
}

/// Needs no idempotency key: a message that waits already is not there to be tried again.
async fn retry(State(state): State<AppState>, caller: Caller, Id(id): Id<DeliveryId>) -> Result<StatusCode> {
    caller.may(Act::ManageDeliveries)?;
    if !state.store.retry_delivery(id).await? {
        return Err(Problem::new(Code::NotFound).detail("no message of this id was given up").into());
    }
    tracing::info!(%id, by = %caller.principal().username, "a notification is tried again");
    Ok(StatusCode::NO_CONTENT)
}
