//! `GET /api/v1/live`: who may open a socket, and how many.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::HeaderMap;
use axum::response::Response;
use shared::error::{Code, Problem};
use shared::protocol::SUBPROTOCOL;

use super::authenticate::Authenticate;
use super::close_reason::MAX_MESSAGE;
use super::hub::Hub;
use super::limit::{MaxSockets, SocketLimits};
use super::session::SocketSession;
use crate::client_address::ClientAddress;
use crate::problem;
use crate::rate_limit::LimitHolder;

/// The size of a socket's read buffer, in bytes. Even an idle socket occupies it.
const READ_BUFFER: usize = 1024;
/// How many bytes are collected before they are written.
const WRITE_BUFFER: usize = 2048;

/// The state of [`upgrade`]. Cheap to clone.
#[derive(Clone)]
pub struct LiveState {
    hub: Hub,
    auth: Arc<dyn Authenticate>,
    seats: SocketLimits,
}

impl LiveState {
    /// Creates a state that admits clients by `auth`, up to `limits`.
    pub fn new(hub: Hub, auth: Arc<dyn Authenticate>, limits: MaxSockets) -> Self {
        Self { hub, auth, seats: SocketLimits::new(limits) }
    }
}

/// Opens a socket.
pub async fn upgrade(
    State(state): State<LiveState>,
    client: ClientAddress,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    admit(state, client, &headers, socket).await.unwrap_or_else(problem::response)
}

async fn admit(
    state: LiveState,
    client: ClientAddress,
    headers: &HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    if !state.auth.is_origin_allowed(headers) {
        let detail = "a page of another site must not open a socket with a cookie of this one";
        return Err(Problem::new(Code::ForeignOrigin).detail(detail));
    }
    let actor = state.auth.authenticate(headers).await?;
    let socket = socket.map_err(|error| Problem::new(Code::BadRequest).detail(error.to_string()))?;
    let spoken = socket.requested_protocols().any(|protocol| protocol == SUBPROTOCOL);
    if !spoken && socket.requested_protocols().next().is_some() {
        let detail = format!("this server speaks only the subprotocol {SUBPROTOCOL}");
        return Err(Problem::new(Code::BadRequest).detail(detail));
    }
    let seat = state.seats.take(LimitHolder::of(&actor.principal), client)?;
    let socket = socket
        .protocols([SUBPROTOCOL])
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER);
    Ok(socket.on_upgrade(async move |socket| {
        SocketSession::new(socket, state.hub, state.auth, actor).run().await;
        drop(seat);
    }))
}
