//! Ports for servers that get theirs as an argument, and may be restarted.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port on loopback, which belongs to its test as long as this exists, whether a server listens on it or not: the
/// system chooses no port to which a socket is bound, neither for a listener nor for the own end of a connection.
#[derive(Debug)]
pub struct Port(TcpSocket);

impl Port {
    /// Reserves a free port. Panics if there is none.
    pub fn reserve() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        // Servers can listen on the port since they set this option, too, and since this socket never listens.
        socket.set_reuseaddr(true).expect("the option is set");
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port is free");
        Self(socket)
    }

    /// The address with this port.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("it has an address")
    }
}
