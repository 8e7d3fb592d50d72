//! One connection: its requests, one after another, until it is idle for too long, has to make room, or the server
//! stops.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response, StatusCode};
use futures::TryStreamExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::Limits;
use super::body::Received;
use super::connection_limit::ConnectionSlot;
use super::timeout_stream::{ConnectionPhase, Stream};

/// The maximum length of a request's head, and the size of reads of a body, in bytes.
const BUFFER: usize = 64 * 1024;

/// Serves a connection until it ends or becomes a WebSocket.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    router: Router,
    place: ConnectionSlot,
    limits: Limits,
    stopping: CancellationToken,
) {
    let place = Arc::new(place);
    let phase = Arc::new(ConnectionPhase::default());
    let stream = Stream::new(stream, Arc::clone(&phase), Arc::clone(&place), limits);
    let connected = Arc::clone(&place);
    let service =
        service_fn(move |request| answer(router.clone(), peer, Arc::clone(&connected), Arc::clone(&phase), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also applies before any request. The time limit of a head that has begun is in `Stream`.
        .header_read_timeout(limits.idle)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = place.evicted() => return,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = place.evicted() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

async fn answer(
    router: Router,
    peer: SocketAddr,
    place: Arc<ConnectionSlot>,
    phase: Arc<ConnectionPhase>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    phase.next();
    let mut request = if request.body().is_end_stream() {
        place.works();
        request.map(Body::new)
    } else {
        request.map(|body| Body::new(Received::new(body, Arc::clone(&place))))
    };
    request.extensions_mut().insert(ConnectInfo(peer));
    let response = router.oneshot(request).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        // The connection is now a WebSocket, which must not be closed to make room.
        place.works();
        return Ok(response);
    }
    phase.next();
    Ok(response.map(|body| {
        if body.size_hint().exact().is_some() {
            place.waits();
            return body;
        }
        place.works();
        let generating = Generating(place);
        Body::from_stream(body.into_data_stream().inspect_ok(move |_| {
            let _ = &generating;
        }))
    }))
}

/// A response that is generated while it is sent, for which the client waits. Once this is dropped, the server waits
/// for the client again.
struct Generating(Arc<ConnectionSlot>);

impl Drop for Generating {
    fn drop(&mut self) {
        self.0.waits();
    }
}
