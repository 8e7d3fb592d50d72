//! Clients that do not go on, and callers who must get in all the same.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::{any, get, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::room::Room;
use super::{Limits, Server, connection};
use crate::client_address::{ClientAddress, TrustedProxies};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const HALF: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n";
const PATIENCE: Duration = Duration::from_secs(20);

fn router() -> Router {
    Router::new()
        .route("/", get(async || "ok"))
        .route("/body", post(async |body: Bytes| body))
        .route("/slow", get(async || sleep(Duration::from_secs(3600)).await))
        .route(
            "/socket",
            any(async |socket: WebSocketUpgrade| {
                socket.on_upgrade(async |mut socket| while socket.recv().await.is_some() {})
            }),
        )
}

async fn start(connections: usize) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Server::start(listener, router(), Limits::of(connections), TrustedProxies::default()).unwrap()
}

/// A new connection on which these bytes were sent.
async fn send(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// The status of the next answer; none: the connection was closed.
async fn status(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<u16> {
    let mut head = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("answered or closed").ok()?;
    std::str::from_utf8(&head[9..]).unwrap().parse().ok()
}

#[tokio::test]
async fn whoever_sends_half_of_a_request_keeps_nobody_out() {
    let server = start(8).await;
    for half in [HALF, b"", b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"] {
        let mut held = Vec::new();
        for _ in 0..20 {
            held.push(send(&server, half).await);
        }
        assert_eq!(status(&mut send(&server, REQUEST).await).await, Some(200));
    }
}

#[tokio::test]
async fn who_is_being_answered_is_not_closed_to_make_room() {
    let server = start(2).await;
    let mut socket = send(
        &server,
        b"GET /socket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
          sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    )
    .await;
    assert_eq!(status(&mut socket).await, Some(101));
    for _ in 0..10 {
        assert_eq!(status(&mut send(&server, REQUEST).await).await, Some(200));
    }
    let mut rest = vec![0; 1024];
    let still_open = timeout(Duration::from_millis(50), async { while socket.read(&mut rest).await.unwrap() > 0 {} });
    assert!(still_open.await.is_err(), "the socket was closed");
}

#[tokio::test]
async fn one_address_has_its_share_of_the_connections() {
    let room = Room::new(Limits { connections_per_address: 2, ..Limits::of(8) });
    let network = |address: [u8; 4]| Some(ClientAddress::from(std::net::IpAddr::from(address)).network());
    let held = [room.enter(network([203, 0, 113, 7])).await, room.enter(network([203, 0, 113, 7])).await];
    assert!(held.iter().all(Option::is_some) && room.enter(network([203, 0, 113, 7])).await.is_none());
    assert!(room.enter(network([198, 51, 100, 1])).await.is_some() && room.enter(None).await.is_some());
    drop(held);
    assert!(room.enter(network([203, 0, 113, 7])).await.is_some());
}

/// A connection over a pipe, in a time that passes when nothing else happens.
fn connect() -> DuplexStream {
    let (client, server) = duplex(1024);
    tokio::spawn(async move {
        let limits = Limits::of(8);
        let place = Room::new(limits).enter(None).await.unwrap();
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        connection::serve(server, peer, router(), place, limits, CancellationToken::new()).await;
    });
    client
}

#[tokio::test(start_paused = true)]
async fn a_head_has_ten_seconds_however_slowly_it_comes() {
    for part in [HALF, b""] {
        let (mut client, begun) = (connect(), Instant::now());
        client.write_all(part).await.unwrap();
        let dripping = async {
            loop {
                sleep(Duration::from_secs(1)).await;
                if client.write_all(b"x").await.is_err() {
                    break;
                }
            }
        };
        timeout(Duration::from_secs(12), dripping).await.expect("closed in time");
        assert!(begun.elapsed() >= Duration::from_secs(10));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_be_idle_for_longer_than_a_head_may_take() {
    let mut client = connect();
    for _ in 0..3 {
        client.write_all(REQUEST).await.unwrap();
        assert_eq!(status(&mut client).await, Some(200));
        let mut rest = [0; 1024];
        assert!(client.read(&mut rest).await.unwrap() > 0);
        sleep(Duration::from_secs(80)).await;
    }
    client.write_all(HALF).await.unwrap();
    let begun = Instant::now();
    assert_eq!(client.read(&mut [0; 8]).await.unwrap_or(0), 0);
    assert!((10..12).contains(&begun.elapsed().as_secs()));
    let (mut idle, begun) = (connect(), Instant::now());
    idle.write_all(REQUEST).await.unwrap();
    idle.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 90);
}

#[tokio::test]
async fn a_stop_waits_for_answers_and_an_abort_for_nothing() {
    let mut server = start(8).await;
    let (mut idle, mut slow) =
        (send(&server, REQUEST).await, send(&server, b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await);
    assert_eq!(status(&mut idle).await, Some(200));
    assert_eq!(status(&mut send(&server, REQUEST).await).await, Some(200), "the slow one has been taken up");
    server.stop();
    timeout(PATIENCE, idle.read_to_end(&mut Vec::new())).await.expect("idle ones are closed").unwrap();
    assert!(TcpStream::connect(server.address()).await.is_err());
    assert!(timeout(Duration::from_millis(50), server.stopped()).await.is_err(), "one is still being answered");
    server.abort();
    assert_eq!(status(&mut slow).await, None);
}
