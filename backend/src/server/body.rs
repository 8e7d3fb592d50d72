//! Bodies that record whether the server waits for the client or the reverse.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::connection_limit::ConnectionSlot;

/// The body of a request. Until it has arrived, the server waits for the client.
pub(super) struct Received {
    inner: Incoming,
    place: Arc<ConnectionSlot>,
}

impl Received {
    pub fn new(inner: Incoming, place: Arc<ConnectionSlot>) -> Self {
        Self { inner, place }
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || (frame.is_ready() && self.inner.is_end_stream()) {
            self.place.works();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response. While it is being generated, the client waits for the server.
pub(super) struct Sent {
    inner: Body,
    making: Option<Arc<ConnectionSlot>>,
}

impl Sent {
    /// Wraps a body that is complete.
    pub fn whole(inner: Body) -> Self {
        Self { inner, making: None }
    }

    /// Wraps a body that is generated while it is sent.
    pub fn stream(inner: Body, place: Arc<ConnectionSlot>) -> Self {
        Self { inner, making: Some(place) }
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(place) = self.making.take() {
            place.waits();
        }
    }
}
