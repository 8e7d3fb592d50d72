//! `/healthz`, `/readyz` and `/metrics`, for monitoring.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use shared::access::ADMIN;
use shared::error::{Code, Problem};

use super::AppState;
use super::api::{Api, OperationDoc};
use super::problem::Result;
use crate::auth::{bearer, digest};
use crate::client_address::ClientAddress;
use crate::problem::unavailable;
use crate::store::ErrorKind;

/// How long the test write to the database may take until the server counts as not ready.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn mount(api: &mut Api) {
    api.get("/healthz", OperationDoc::new("Check liveness").open(), healthz);
    api.get("/readyz", OperationDoc::new("Check readiness: whether the database can be written").open(), readyz);
    api.get("/metrics", OperationDoc::new("Get metrics in the Prometheus format").file("text/plain").open(), metrics);
}

/// The status of a healthy server.
#[derive(Serialize, schemars::JsonSchema)]
struct Status {
    /// Always `ok`: a server that is not ready returns a problem instead.
    status: &'static str,
    /// The lag of each reader of the log, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_lag_seconds: Option<BTreeMap<&'static str, f64>>,
}

async fn healthz() -> Json<Status> {
    Json(Status { status: "ok", log_lag_seconds: None })
}

async fn readyz(State(state): State<AppState>) -> Result<Json<Status>> {
    if let Some(task) = state.store.background().first_failed() {
        return Err(unavailable(format!("the server is shutting down: its {task} failed")).into());
    }
    match tokio::time::timeout(TIMEOUT, state.store.ready()).await {
        Ok(Ok(())) => {
            let lag = state.store.lag().await.unwrap_or_default();
            let log_lag_seconds = lag.into_iter().map(|(reader, lag)| (reader, lag.as_secs_f64())).collect();
            Ok(Json(Status { status: "ok", log_lag_seconds: Some(log_lag_seconds) }))
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            let why = match error.kind() {
                ErrorKind::Unavailable(why) => why,
                _ => "the database cannot be written",
            };
            Err(unavailable(why).into())
        }
        Err(_) => Err(unavailable("writing to the database takes too long").into()),
    }
}

/// Returns the metrics to admins, to holders of the token of the settings, and to clients on this machine. Through a
/// proxy, everyone would seem to be on this machine. Not every proxy adds a header, so once a public address is set, no
/// request counts as local.
async fn metrics(State(state): State<AppState>, client: ClientAddress, headers: HeaderMap) -> Result<Response> {
    let proxied = headers.contains_key(header::FORWARDED) || headers.contains_key("x-forwarded-for");
    let local = client.is_loopback() && !proxied && state.options.public_origins.is_empty();
    if !local && !has_token(&state, &headers) && !is_admin(&state, &headers).await {
        let detail = "log in as an admin, or send `Authorization: Bearer` with the value of COUNTERSIGN_METRICS_TOKEN";
        return Err(Problem::new(Code::Unauthenticated).detail(detail).into());
    }
    for (reader, lag) in state.store.lag().await? {
        metrics::gauge!("countersign_log_lag_seconds", "reader" => reader).set(lag.as_secs_f64());
        if reader == "seals" {
            metrics::gauge!("countersign_seal_lag_seconds").set(lag.as_secs_f64());
        }
    }
    let text = state.metrics.as_ref().map(metrics_exporter_prometheus::PrometheusHandle::render).unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

async fn is_admin(state: &AppState, headers: &HeaderMap) -> bool {
    let identity = state.authenticator.authenticate(headers).await;
    identity.is_ok_and(|identity| identity.may_go_on().is_ok() && identity.principal.has(ADMIN))
}

/// Whether the request carries the metrics token. Compares digests, so that the timing reveals nothing about the token.
fn has_token(state: &AppState, headers: &HeaderMap) -> bool {
    bearer(headers).is_some_and(|token| state.options.metrics_token == Some(digest(token)))
}
