//! The server: accepts connections, within limits, and serves their requests.

mod body;
mod connection;
mod connection_limit;
mod descriptors;
mod timeout_stream;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::client_address::{ClientAddress, TrustedProxies};
use connection_limit::ConnectionLimit;

pub use descriptors::raise_limit;

/// How long to pause if no connection can be accepted, for example because no file descriptor is left.
const PAUSE: Duration = Duration::from_secs(1);

/// The limits of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of concurrent connections.
    pub connections: usize,
    /// The maximum number of concurrent connections per address. Loopback addresses and trusted proxies may use all.
    pub connections_per_address: usize,
    /// How long the head of a request may take, from its first byte or from the accepted connection.
    pub head: Duration,
    /// How long a connection is kept open without a request.
    pub idle: Duration,
    /// How long a client may stop reading what is sent to it.
    pub stalled: Duration,
}

impl Limits {
    /// Returns the usual limits with this many connections.
    pub fn of(connections: usize) -> Self {
        Self {
            connections,
            connections_per_address: (connections / 2).clamp(1, 1000),
            head: Duration::from_secs(10),
            // Longer than proxies keep idle connections, so that no request meets a connection that is just being
            // closed.
            idle: Duration::from_secs(90),
            stalled: Duration::from_mins(1),
        }
    }
}

impl Default for Limits {
    /// Allows as many connections as the limit of file descriptors leaves room for.
    fn default() -> Self {
        Self::of(descriptors::room_for_connections())
    }
}

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stopping: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    /// Starts serving, until `stopping`.
    pub fn start(
        listener: TcpListener,
        router: Router,
        limits: Limits,
        proxies: TrustedProxies,
        background: &Background,
        stopping: CancellationToken,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let acceptor =
            Acceptor { router, limits, proxies, room: ConnectionLimit::new(limits), stopping: stopping.clone() };
        let serving = tokio::spawn(background.watch("listener", &stopping, acceptor.run(listener)));
        Ok(Self { address, stopping, serving })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting connections, closes idle ones, and closes the others after their current request.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Waits until all connections are closed. At `until`, drops the remaining ones.
    pub async fn stopped(mut self, until: Instant) {
        if tokio::time::timeout_at(until, &mut self.serving).await.is_err() {
            tracing::warn!("dropping connections whose requests or answers took too long");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.serving.abort();
    }
}

struct Acceptor {
    router: Router,
    limits: Limits,
    proxies: TrustedProxies,
    room: ConnectionLimit,
    stopping: CancellationToken,
}

impl Acceptor {
    async fn run(self, listener: TcpListener) {
        // Dropping this future closes all connections.
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.accept(stream, peer, &mut connections).await,
                    Err(error) => self.failed(&error).await,
                },
            }
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    async fn accept(&self, stream: TcpStream, peer: SocketAddr, connections: &mut JoinSet<()>) {
        let shared = peer.ip().to_canonical().is_loopback() || self.proxies.contains(peer.ip());
        let network = (!shared).then(|| ClientAddress::from(peer.ip()).network());
        let place = tokio::select! {
            place = self.room.enter(network) => place,
            () = self.stopping.cancelled() => return,
        };
        let Some(place) = place else {
            metrics::counter!("countersign_connections_refused_total").increment(1);
            tracing::debug!(%peer, "refused: too many connections from this address");
            return;
        };
        // Frames and responses are written whole, so waiting for more data gains nothing.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let stopping = self.stopping.clone();
        connections.spawn(connection::serve(stream, peer, self.router.clone(), place, self.limits, stopping));
    }

    async fn failed(&self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return;
        }
        tracing::error!(%error, "a connection cannot be accepted; closing an idle one to make room");
        self.room.evict();
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = self.stopping.cancelled() => {}
        }
    }
}
