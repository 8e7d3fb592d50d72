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

/// How long a server that may be away is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// An open socket. Dropped, it vanishes without a farewell.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Messages that were read while another was waited for.
    early: VecDeque<ServerMessage>,
}

impl Socket {
    /// Opens one as whoever `api` is; the server's refusal is an HTTP status.
    pub async fn open(base: &str, api: &Api, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        match tokio_tungstenite::connect_async(request(base, api, headers)).await {
            Ok((stream, _)) => Ok(Self { stream, early: VecDeque::new() }),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("the socket cannot be opened: {error}"),
        }
    }

    /// Opens one, reads the welcome, and subscribes after its cursor.
    pub async fn follow(base: &str, api: &Api, topics: &[Topic]) -> Self {
        let mut socket = Self::open(base, api, &[]).await.expect("let in");
        let cursor = socket.welcome().await;
        socket.subscribe(Some(cursor), topics).await;
        socket
    }

    /// Opens one at a server that may be away, frozen or about to end; none where that is so.
    pub async fn attempt(base: &str, api: &Api) -> Option<Self> {
        let opening = timeout(PATIENCE, tokio_tungstenite::connect_async(request(base, api, &[])));
        let (stream, _) = opening.await.ok()?.ok()?;
        let mut socket = Self { stream, early: VecDeque::new() };
        matches!(socket.next_message(PATIENCE).await?, ServerMessage::Welcome { .. }).then_some(socket)
    }

    /// Subscribes after a cursor; whether the message could be sent.
    pub async fn follow_after(&mut self, after: Cursor, topics: &[Topic]) -> bool {
        let message = ClientMessage::Subscribe { after: Some(after), topics: Some(topics.to_vec()) };
        self.stream.send(Message::text(serde_json::to_string(&message).expect("JSON"))).await.is_ok()
    }

    /// The next message; none where the connection ends, or nothing but pings comes for so long.
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

    /// Reads the welcome, and gives its cursor.
    pub async fn welcome(&mut self) -> Cursor {
        match self.next().await {
            ServerMessage::Welcome { cursor, .. } => cursor,
            other => panic!("not a welcome: {other:?}"),
        }
    }

    /// Subscribes to topics: from a place in the log, or with a snapshot first where `after` is `None`.
    pub async fn subscribe(&mut self, after: Option<Cursor>, topics: &[Topic]) {
        self.send(&ClientMessage::Subscribe { after, topics: Some(topics.to_vec()) }).await;
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &ClientMessage) {
        let text = serde_json::to_string(message).expect("JSON");
        self.send_raw(Message::text(text)).await;
    }

    /// Sends any frame.
    pub async fn send_raw(&mut self, message: Message) {
        self.stream.send(message).await.expect("the socket is open");
    }

    /// The next message, within the deadline.
    pub async fn next(&mut self) -> ServerMessage {
        match self.early.pop_front() {
            Some(message) => message,
            None => self.read().await,
        }
    }

    /// The next message that `choose` wants; the others are kept for [`Socket::next`].
    pub async fn wait_for<T>(&mut self, mut choose: impl FnMut(&ServerMessage) -> Option<T>) -> T {
        loop {
            let message = self.read().await;
            if let Some(chosen) = choose(&message) {
                return chosen;
            }
            self.early.push_back(message);
        }
    }

    /// The next entry; anything else fails the test.
    pub async fn entry(&mut self) -> Entry {
        match self.next().await {
            ServerMessage::Entry(entry) => entry,
            other => panic!("not an entry: {other:?}"),
        }
    }

    /// The close code, once everything before it was read; none where the connection just ended.
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
