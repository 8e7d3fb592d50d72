//! A TCP proxy that can forget its connections, as a balancer does that lost its table: nothing is passed on over them
//! any more, and nobody is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    /// Its address, as `127.0.0.1:PORT`.
    pub address: String,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Connections with a number below this one are forgotten.
    forgotten: AtomicUsize,
    made: AtomicUsize,
}

impl Proxy {
    /// Starts one in front of an address.
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

    /// Passes nothing on any more over the connections that there are; new ones work.
    pub fn forget(&self) {
        self.state.forgotten.store(self.state.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Passes nothing on any more, also over new connections.
    pub fn mute(&self) {
        self.state.forgotten.store(usize::MAX, Ordering::SeqCst);
    }

    /// Lets new connections work again after [`Self::mute`].
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
