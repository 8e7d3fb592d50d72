//! Bodies of requests, which record when the client begins to wait for the server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
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
