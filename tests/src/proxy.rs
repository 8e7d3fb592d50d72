//! A TCP proxy that can forget its connections, like a load balancer that lost its table: it passes on nothing more
//! over them, but does not close them either.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    /// The address of the proxy, as `127.0.0.1:PORT`.
    pub address: String,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Connections with a number below this one are forgotten. The first connection has the number 0.
    forgotten: AtomicUsize,
    made: AtomicUsize,
}

impl Proxy {
    /// Starts a proxy in front of an address (`HOST:PORT`).
    pub async fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address").to_string();
        let state = Arc::new(State::default());
        let (shared, target) = (Arc::clone(&state), target.to_owned());
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = shared.made.fetch_add(1, Ordering::SeqCst);
                let Ok(server) = TcpStream::connect(&target).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(pass(Arc::clone(&shared), number, from_client, to_server));
                tokio::spawn(pass(Arc::clone(&shared), number, from_server, to_client));
            }
        });
        Self { address, state, accepting }
    }

    /// Passes on nothing more over existing connections. New ones work.
    pub fn forget(&self) {
        self.state.forgotten.store(self.state.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Passes on nothing more, not even over new connections.
    pub fn mute(&self) {
        self.state.forgotten.store(usize::MAX, Ordering::SeqCst);
    }

    /// Lets new connections work again after [`Self::mute`]. Existing ones stay forgotten.
    pub fn unmute(&self) {
        self.forget();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(
    state: Arc<State>,
    number: usize,
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if number < state.forgotten.load(Ordering::SeqCst) {
            // Both ends stay open.
            std::future::pending::<()>().await;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
