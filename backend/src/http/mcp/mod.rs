//! `/mcp`: a server of the Model Context Protocol, with which agents of other programs ask people and start runs. It
//! speaks Streamable HTTP without sessions, so that any server on the database answers any request. So nothing ties a
//! `notifications/cancelled` to the request that it names, whose id is the client's own: to cancel, it disconnects.
//!
//! Each tool is a few calls of the REST API in the name of the caller: rights, limits, idempotency and errors are
//! those of the API. No tool decides a review, since an agent must not approve what it asks for.

mod api_client;
mod permission;
mod results;
mod server;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use shared::JsonMap;

use super::api::OperationDoc;
use super::problem::Result;
use super::{AppState, Caller, body};
use crate::json;
use api_client::ApiClient;
use server::McpEndpoint;

pub(super) const PATH: &str = "/mcp";

pub(super) fn documentation() -> OperationDoc {
    OperationDoc::new("Send a message of the Model Context Protocol (Streamable HTTP, without sessions)")
        .body::<JsonMap>("application/json")
        .answer::<JsonMap>()
}

/// Returns a router with the endpoint, whose tools call `api`.
pub(super) fn router(api: Router, state: AppState) -> Router {
    Router::new().route(PATH, post(move |caller, request| serve(api, caller, request))).with_state(state)
}

async fn serve(api: Router, caller: Caller, request: Request) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&parts.headers, body).await?;
    json::check(&bytes)?;
    let wait = permission::wait_of(&parts.headers)?;
    let api = ApiClient::new(api, &parts, &caller.state.options.public_origins);
    let server = McpEndpoint::new(api, caller.principal().clone(), wait);
    // The layers around the router check `Host` and `Origin`, and the body has been read within its limit.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(body::MAX_BODY);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let response = service.handle(Request::from_parts(parts, Body::from(bytes))).await;
    if response.status() == StatusCode::ACCEPTED {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    Ok(response.map(Body::new))
}
