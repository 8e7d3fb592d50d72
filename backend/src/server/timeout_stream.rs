//! The bytes of a connection, with time limits for clients that stall: with half a head, or without reading.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::Limits;
use super::connection_limit::ConnectionSlot;

/// The phase of a connection: odd while a request is being answered. It is incremented when the handling of a request
/// begins and when its response does.
#[derive(Debug, Default)]
pub(super) struct ConnectionPhase(AtomicU32);

impl ConnectionPhase {
    /// Moves on: handling a request begins, or its response does.
    pub fn next(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The byte stream of a connection. It keeps the connection's slot while it exists, also as a WebSocket.
pub(super) struct Stream<S> {
    inner: S,
    phase: Arc<ConnectionPhase>,
    _place: Arc<ConnectionSlot>,
    limits: Limits,
    /// The last observed phase.
    seen: u32,
    /// The time of the first byte of an incomplete head, or of the accepted connection.
    head_began: Option<Instant>,
    read_limit: Limit,
    write_limit: Limit,
}

impl<S> Stream<S> {
    pub fn new(inner: S, phase: Arc<ConnectionPhase>, place: Arc<ConnectionSlot>, limits: Limits) -> Self {
        let (read_limit, write_limit) = (Limit::default(), Limit::default());
        let head_began = Some(Instant::now());
        Self { inner, phase, _place: place, limits, seen: 0, head_began, read_limit, write_limit }
    }

    /// Resets the time of the head after each request. Returns whether a request is being answered.
    fn observe(&mut self) -> bool {
        let phase = self.phase.0.load(Ordering::Relaxed);
        if phase != self.seen {
            self.seen = phase;
            self.head_began = None;
            self.read_limit.clear();
        }
        phase % 2 == 1
    }

    fn check_write<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_limit.clear();
            return written;
        }
        ready!(self.write_limit.poll(cx, || sleep(self.limits.stalled)));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

/// A timer that is created only when it is needed.
#[derive(Default)]
struct Limit(Option<Pin<Box<Sleep>>>);

impl Limit {
    fn clear(&mut self) {
        self.0 = None;
    }

    fn poll(&mut self, cx: &mut Context<'_>, sleep: impl FnOnce() -> Sleep) -> Poll<()> {
        self.0.get_or_insert_with(|| Box::pin(sleep())).as_mut().poll(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let answering = self.observe();
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if answering {
            return read;
        }
        if read.is_pending() {
            let Some(began) = self.head_began else { return Poll::Pending };
            let until = began + self.limits.head;
            ready!(self.read_limit.poll(cx, || sleep_until(until)));
            return Poll::Ready(Err(ErrorKind::TimedOut.into()));
        }
        if buffer.filled().len() > before && self.head_began.is_none() {
            self.head_began = Some(Instant::now());
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.check_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        self.check_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
