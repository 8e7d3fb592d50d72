//! Clients that stall, and others who must be served nevertheless.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::{any, get, post};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::connection_limit::ConnectionLimit;
use super::{Limits, Server, connection};
use crate::background::Background;
use crate::client_address::{ClientAddress, TrustedProxies};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const HALF: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n";
const TIMEOUT: Duration = Duration::from_secs(20);

/// Notified when a request for `/slow` has arrived.
static TAKEN_UP: Notify = Notify::const_new();

fn router() -> Router {
    let slow = || async {
        TAKEN_UP.notify_one();
        sleep(Duration::from_hours(1)).await;
    };
    let socket = |socket: WebSocketUpgrade| async move {
        socket.on_upgrade(|mut socket| async move { while socket.recv().await.is_some() {} })
    };
    Router::new()
        .route("/", get(async || "ok"))
        .route("/body", post(async |body: Bytes| body))
        .route("/slow", get(slow))
        .route("/socket", any(socket))
}

async fn start(connections: usize) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (limits, background) = (Limits::of(connections), Background::default());
    Server::start(listener, router(), limits, TrustedProxies::default(), &background, CancellationToken::new()).unwrap()
}

/// Opens a connection and sends these bytes.
async fn send(server: &Server, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Reads the status of the next response. `None` if the connection was closed.
async fn status(stream: &mut (impl AsyncRead + Unpin)) -> Option<u16> {
    let mut head = [0; 12];
    timeout(TIMEOUT, stream.read_exact(&mut head)).await.expect("answered or closed").ok()?;
    std::str::from_utf8(&head[9..]).unwrap().parse().ok()
}

#[tokio::test]
async fn whoever_sends_half_of_a_request_keeps_nobody_out() {
    let server = start(8).await;
    let halves: [&[u8]; 3] = [HALF, b"", b"POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"];
    for half in halves {
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
    let mut rest = [0; 1024];
    let still_open = timeout(Duration::from_millis(50), async { while socket.read(&mut rest).await.unwrap() > 0 {} });
    assert!(still_open.await.is_err(), "the socket was closed");
}

#[tokio::test]
async fn one_address_has_its_share_of_the_connections() {
    let room = ConnectionLimit::new(Limits { connections_per_address: 2, ..Limits::of(8) });
    let network = |address: [u8; 4]| Some(ClientAddress::from(std::net::IpAddr::from(address)).network());
    let held = [room.enter(network([203, 0, 113, 7])).await, room.enter(network([203, 0, 113, 7])).await];
    assert!(held.iter().all(Option::is_some) && room.enter(network([203, 0, 113, 7])).await.is_none());
    assert!(room.enter(network([198, 51, 100, 1])).await.is_some() && room.enter(None).await.is_some());
    drop(held);
    assert!(room.enter(network([203, 0, 113, 7])).await.is_some());
}

/// Opens a connection over a pipe. The paused clock advances when nothing else happens.
fn connect() -> DuplexStream {
    let (client, server) = duplex(1024);
    tokio::spawn(async move {
        let limits = Limits::of(8);
        let place = ConnectionLimit::new(limits).enter(None).await.unwrap();
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        connection::serve(server, peer, router(), place, limits, CancellationToken::new()).await;
    });
    client
}

#[tokio::test(start_paused = true)]
async fn a_head_has_ten_seconds_however_slowly_it_comes() {
    let parts: [&[u8]; 2] = [HALF, b""];
    for part in parts {
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
        let mut rest = Vec::new();
        while !rest.ends_with(b"ok") {
            assert!(client.read_buf(&mut rest).await.unwrap() > 0, "closed");
        }
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
async fn a_stop_waits_for_answers_until_there_is_no_more_time() {
    let server = start(8).await;
    let address = server.address();
    let mut idle = send(&server, REQUEST).await;
    let mut slow = send(&server, b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(status(&mut idle).await, Some(200));
    TAKEN_UP.notified().await;
    server.stop();
    timeout(TIMEOUT, idle.read_to_end(&mut Vec::new())).await.expect("idle ones are closed").unwrap();
    let until = Instant::now() + Duration::from_millis(50);
    server.stopped(until).await;
    assert!(Instant::now() >= until, "one was still being answered");
    assert_eq!(status(&mut slow).await, None);
    assert!(TcpStream::connect(address).await.is_err());
}
