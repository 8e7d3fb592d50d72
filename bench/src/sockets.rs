//! The live socket: how soon a decision is seen, and what an idle socket costs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::report::Row;
use crate::server::{Data, Server};
use crate::{Options, below, cycles, disk, median, percentile};

/// The client's end of a WebSocket.
pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a WebSocket with a small read buffer.
pub async fn connect(request: impl IntoClientRequest + Unpin) -> Result<Socket> {
    /// The read buffer, in bytes: the default of 128 KiB is cleared before every read, which takes longer than reading.
    const READ: usize = 8 * 1024;
    let config = WebSocketConfig::default().read_buffer_size(READ);
    let (socket, _) = connect_async_with_config(request, Some(config), false).await?;
    Ok(socket)
}

/// Connects, subscribes to reviews, and waits for the snapshot.
pub async fn subscribed(server: &Server, credential: &str) -> Result<Socket> {
    let mut request = format!("ws://{}/api/v1/live", server.address).into_client_request()?;
    let (name, value) = credential.split_once(": ").context("no credential")?;
    request.headers_mut().insert(name.parse::<tokio_tungstenite::tungstenite::http::HeaderName>()?, value.parse()?);
    request.headers_mut().insert("sec-websocket-protocol", "countersign.v1".parse()?);
    let mut socket = connect(request).await?;
    socket.send(Message::text(r#"{"type":"subscribe","topics":["reviews"]}"#)).await?;
    while let Some(message) = socket.next().await {
        if message?.to_text()?.contains(r#""type":"snapshot""#) {
            return Ok(socket);
        }
    }
    anyhow::bail!("the socket closed before the snapshot")
}

/// Measures the milliseconds from sending a decision to receiving it on a socket: the 99th percentile over 100 sockets,
/// at 200 decisions per second. The limit is what the disk alone takes for as many commits.
pub async fn decision_seen(options: &Options) -> Result<[Row; 1]> {
    const SOCKETS: usize = 100;
    const PER_SECOND: u32 = 200;
    let mut data = Data::new(None).await?;
    let server = Server::start(&options.binary, &mut data).await?;
    let (seen, mut arrivals) = mpsc::unbounded_channel();
    let mut readers: Vec<JoinHandle<()>> = Vec::new();
    for credential in server.seats(SOCKETS).await? {
        let socket = subscribed(&server, &credential).await?;
        readers.push(tokio::spawn(report_resolutions(socket, seen.clone())));
    }
    let (mut p99s, mut disks) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let count = usize::try_from(options.seconds)? * PER_SECOND as usize;
        let mut launcher = server.connect().await?;
        let mut reviews = Vec::new();
        for _ in 0..count {
            reviews.push(cycles::ask(&mut launcher).await?);
        }
        while arrivals.try_recv().is_ok() {}
        let mut sent = std::collections::HashMap::new();
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(Some(server.connect().await?));
        }
        let (back, mut free) = mpsc::unbounded_channel();
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
        for review in reviews {
            ticks.tick().await;
            let mut client = match clients.iter_mut().find_map(Option::take) {
                Some(client) => client,
                None => free.recv().await.context("no client")?,
            };
            sent.insert(review.id.clone(), Instant::now());
            let back = back.clone();
            tokio::spawn(async move {
                if cycles::decide(&mut client, &review).await.is_ok() {
                    let _ = back.send(client);
                }
            });
        }
        let mut latencies = Vec::with_capacity(count * SOCKETS);
        while latencies.len() < count * SOCKETS {
            let (id, at) =
                tokio::time::timeout(Duration::from_secs(10), arrivals.recv()).await?.context("no reader")?;
            if let Some(sent) = sent.get(&id) {
                latencies.push(Instant::duration_since(&at, *sent).as_secs_f64() * 1000.0);
            }
        }
        p99s.push(percentile(latencies, 99));
        disks.push(disk::durable(data.path(), count, Duration::from_secs(1) / PER_SECOND)?);
    }
    readers.iter().for_each(JoinHandle::abort);
    Ok([below("decision_seen_p99", median(p99s), "ms", 10.0).beside(median(disks))])
}

async fn report_resolutions(mut socket: Socket, seen: mpsc::UnboundedSender<(String, Instant)>) {
    while let Some(Ok(message)) = socket.next().await {
        let at = Instant::now();
        let Ok(text) = message.to_text() else { continue };
        if !text.contains(r#""kind":"review.resolved""#) {
            continue;
        }
        // The id is near the front. Parsing a hundred whole copies would measure this program instead.
        if let Some(id) = text.split(r#""review_id":""#).nth(1).and_then(|rest| rest.get(..36)) {
            let _ = seen.send((id.to_owned(), at));
        }
    }
}

/// Measures the bytes of the server's memory that an idle, subscribed socket takes.
#[expect(clippy::cast_precision_loss, reason = "sizes are far below the precision of a double")]
pub async fn idle_memory(options: &Options) -> Result<[Row; 1]> {
    const SOCKETS: usize = 1_000;
    const WARM: usize = 500;
    const PART: usize = 200;
    const LIMIT_OF_ONE_ROUND: usize = 5;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds.min(LIMIT_OF_ONE_ROUND) {
        let mut data = Data::new(None).await?;
        let server = Server::start(&options.binary, &mut data).await?;
        // The first sockets fill the memory that the logins have left free; the thousand after them show the cost of
        // one.
        let seats = server.seats(SOCKETS + WARM).await?;
        let (first, rest) = seats.split_at(WARM);
        let mut idle = Vec::new();
        for credential in first {
            idle.push(subscribed(&server, credential).await?);
        }
        // If memory is freed meanwhile, that distorts one of the parts only, and the median ignores it.
        let mut parts = Vec::new();
        let mut before = server.memory()? as f64;
        for part in rest.chunks(PART) {
            for credential in part {
                idle.push(subscribed(&server, credential).await?);
            }
            let now = server.memory()? as f64;
            parts.push((now - before) / part.len() as f64);
            before = now;
        }
        rounds.push(median(parts));
    }
    Ok([below("idle_socket", median(rounds), "bytes", 10_240.0)])
}
