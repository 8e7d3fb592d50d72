//! A client of the live socket.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use shared::log::{Cursor, Entry};
use shared::protocol::{ClientMessage, SUBPROTOCOL, ServerMessage, Topic};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::transport::Api;
use crate::wait::DEADLINE;

/// The time limit for opening a socket at a server that may be down.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// An open socket. Dropping it cuts the connection without a close frame.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Messages that [`Self::wait_for`] has read and skipped.
    early: VecDeque<ServerMessage>,
}

impl Socket {
    /// Opens a socket with the credential of `api`. If the server refuses, the error is the HTTP status.
    pub async fn open(base: &str, api: &Api, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        match tokio_tungstenite::connect_async(request(base, api, headers)).await {
            Ok((stream, _)) => Ok(Self { stream, early: VecDeque::new() }),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("the socket cannot be opened: {error}"),
        }
    }

    /// Opens a socket, reads the welcome, and subscribes after its cursor.
    pub async fn follow(base: &str, api: &Api, topics: &[Topic]) -> Self {
        let mut socket = Self::open(base, api, &[]).await.expect("let in");
        let cursor = socket.welcome().await;
        socket.subscribe(Some(cursor), topics).await;
        socket
    }

    /// Opens a socket, and reads the welcome. `None` if the server is down, frozen or stopping.
    pub async fn attempt(base: &str, api: &Api) -> Option<Self> {
        let opening = timeout(OPEN_TIMEOUT, tokio_tungstenite::connect_async(request(base, api, &[])));
        let (stream, _) = opening.await.ok()?.ok()?;
        let mut socket = Self { stream, early: VecDeque::new() };
        matches!(socket.next_message(OPEN_TIMEOUT).await?, ServerMessage::Welcome { .. }).then_some(socket)
    }

    /// Subscribes after a cursor, and returns whether the message could be sent.
    pub async fn follow_after(&mut self, after: Cursor, topics: &[Topic]) -> bool {
        let message = ClientMessage::Subscribe { after: Some(after), topics: Some(topics.to_vec()) };
        self.stream.send(Message::text(serde_json::to_string(&message).expect("JSON"))).await.is_ok()
    }

    /// The next message. `None` if the connection ends, or no message arrives within `patience`.
    pub async fn next_message(&mut self, patience: Duration) -> Option<ServerMessage> {
        let reading = async {
            loop {
                match self.stream.next().await? {
                    Ok(Message::Text(text)) => {
                        return Some(serde_json::from_str(&text).expect("a message of the server"));
                    }
                    Ok(Message::Ping(_) | Message::Pong(_)) => {}
                    _ => return None,
                }
            }
        };
        timeout(patience, reading).await.ok().flatten()
    }

    /// Reads the welcome, and returns its cursor.
    pub async fn welcome(&mut self) -> Cursor {
        match self.next().await {
            ServerMessage::Welcome { cursor, .. } => cursor,
            other => panic!("not a welcome: {other:?}"),
        }
    }

    /// Subscribes to topics after a cursor, or with a snapshot first if `after` is `None`.
    pub async fn subscribe(&mut self, after: Option<Cursor>, topics: &[Topic]) {
        self.send(&ClientMessage::Subscribe { after, topics: Some(topics.to_vec()) }).await;
    }

    /// Sends a message as JSON. Panics if the connection is closed.
    pub async fn send(&mut self, message: &ClientMessage) {
        let text = serde_json::to_string(message).expect("JSON");
        self.send_raw(Message::text(text)).await;
    }

    /// Sends a WebSocket frame as it is.
    pub async fn send_raw(&mut self, message: Message) {
        self.stream.send(message).await.expect("the socket is open");
    }

    /// The next message. Panics if none arrives within [`DEADLINE`].
    pub async fn next(&mut self) -> ServerMessage {
        match self.early.pop_front() {
            Some(message) => message,
            None => self.read().await,
        }
    }

    /// Reads until `choose` returns `Some` for a message. The skipped messages are kept for [`Socket::next`].
    pub async fn wait_for<T>(&mut self, mut choose: impl FnMut(&ServerMessage) -> Option<T>) -> T {
        loop {
            let message = self.read().await;
            if let Some(chosen) = choose(&message) {
                return chosen;
            }
            self.early.push_back(message);
        }
    }

    /// The next message, which must be an entry.
    pub async fn entry(&mut self) -> Entry {
        match self.next().await {
            ServerMessage::Entry(entry) => entry,
            other => panic!("not an entry: {other:?}"),
        }
    }

    /// Reads to the end, and returns the close code. `None` if the connection ends without one.
    pub async fn closed(&mut self) -> Option<u16> {
        loop {
            let frame = timeout(DEADLINE, self.stream.next()).await.expect("the server closes in time");
            match frame {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    async fn read(&mut self) -> ServerMessage {
        loop {
            let frame = timeout(DEADLINE, self.stream.next()).await.expect("a message comes in time");
            match frame {
                Some(Ok(Message::Text(text))) => {
                    return serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("not a message: {other:?}"),
            }
        }
    }
}

fn request(base: &str, api: &Api, headers: &[(&'static str, &str)]) -> Request {
    let url = format!("{}/api/v1/live", base.replacen("http", "ws", 1));
    let mut request = url.into_client_request().expect("a URL");
    let credential = api.transport.credential();
    let credential = credential.iter().map(|(name, value)| (*name, value.as_str()));
    let subprotocol = ("sec-websocket-protocol", SUBPROTOCOL);
    for (name, value) in credential.chain([subprotocol]).chain(headers.iter().copied()) {
        request.headers_mut().insert(name, HeaderValue::from_str(value).expect("a header"));
    }
    request
}
