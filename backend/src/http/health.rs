//! `/healthz`, `/readyz` and `/metrics`, for whoever watches the server.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde_json::{Value, json};

use super::AppState;
use super::api::{Api, Operation};
use super::problem::Result;
use crate::problem::unavailable;
use crate::store::Kind;

/// How long the database may take to write.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn mount(api: &mut Api) {
    api.get("/healthz", Operation::new("Whether the server lives", "Status").open(), healthz);
    api.get("/readyz", Operation::new("Whether it can work: the database can be written", "Status").open(), readyz);
    api.get("/metrics", Operation::new("Numbers for Prometheus", "Text").open(), metrics);
}

async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

async fn readyz(State(state): State<AppState>) -> Result<Json<Value>> {
    if let Some(task) = state.store.background().first_failed() {
        return Err(unavailable(format!("the server is ending: its {task} failed")).into());
    }
    match tokio::time::timeout(PATIENCE, state.store.ready()).await {
        Ok(Ok(())) => Ok(Json(json!({ "status": "ok" }))),
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            let why = match error.kind() {
                Kind::Unavailable(why) => why,
                _ => "the database cannot be written",
            };
            Err(unavailable(why).into())
        }
        Err(_) => Err(unavailable("the database takes too long to write").into()),
    }
}

async fn metrics(State(state): State<AppState>) -> Result<Response> {
    for (table, rows) in state.store.counts().await? {
        let rows = f64::from(u32::try_from(rows).unwrap_or(u32::MAX));
        metrics::gauge!("countersign_rows", "table" => table).set(rows);
    }
    let text = state.metrics.as_ref().map(metrics_exporter_prometheus::PrometheusHandle::render).unwrap_or_default();
    Ok((AppendHeaders([(header::CONTENT_TYPE, "text/plain; version=0.0.4")]), text).into_response())
}
