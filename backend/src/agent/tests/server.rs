//! A server whose response is under the test's control, byte for byte: in pieces of any size, cut off, or without an
//! end.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The body of a response.
#[derive(Clone)]
pub enum Body {
    /// These pieces, sent one by one, and a regular end.
    Pieces(Vec<Vec<u8>>),
    /// These bytes, after which the connection breaks.
    Cut(Vec<u8>),
    /// These bytes, then nothing more, and no end.
    Silence(Vec<u8>),
    /// These bytes, repeated endlessly.
    Endless(Vec<u8>),
}

#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
}

impl Answer {
    pub fn new(body: Body) -> Self {
        Self { status: 200, headers: Vec::new(), body }
    }

    pub fn whole(body: impl Into<Vec<u8>>) -> Self {
        Self::new(Body::Pieces(vec![body.into()]))
    }

    /// Splits a body into pieces of so many bytes, even inside characters and frames.
    pub fn cut_up(body: &[u8], size: usize) -> Self {
        Self::new(Body::Pieces(body.chunks(size).map(<[u8]>::to_vec).collect()))
    }

    pub fn refusal(status: u16, body: &Value) -> Self {
        Self { status, ..Self::whole(body.to_string()) }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A request as it was received.
#[derive(Clone)]
pub struct Heard {
    pub path: String,
    /// The head of the request, in lower case.
    pub head: String,
    pub body: Value,
}

/// A server that gives the same response to every request. It ends with the test.
pub struct Server {
    pub url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    _serving: JoinSet<()>,
}

impl Server {
    pub async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::<Mutex<Vec<Heard>>>::default();
        let mut serving = JoinSet::new();
        let told = Arc::clone(&heard);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve(socket, answer.clone(), Arc::clone(&told)));
            }
        });
        Self { url, heard, _serving: serving }
    }

    /// Returns the requests received so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Returns the only request.
    pub fn request(&self) -> Heard {
        let heard = self.heard();
        assert_eq!(heard.len(), 1, "requests");
        heard[0].clone()
    }
}

async fn serve(mut socket: TcpStream, answer: Answer, heard: Arc<Mutex<Vec<Heard>>>) {
    socket.set_nodelay(true).unwrap();
    let Some(request) = read(&mut socket).await else { return };
    heard.lock().unwrap().push(request);
    // If writing fails, the client has read enough and closed the connection.
    let _ = write(socket, answer).await;
}

async fn read(socket: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let at = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    let path = head.split(' ').nth(1)?.to_owned();
    let head = head.to_ascii_lowercase();
    let length: usize = head.split_once("content-length: ")?.1.lines().next()?.parse().unwrap();
    while bytes.len() < at + length {
        socket.read_buf(&mut bytes).await.ok()?;
    }
    Some(Heard { path, head, body: serde_json::from_slice(&bytes[at..]).unwrap() })
}

async fn write(mut socket: TcpStream, answer: Answer) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\nconnection: close\r\n", answer.status);
    head.extend(answer.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
    socket.write_all(format!("{head}\r\n").as_bytes()).await?;
    match answer.body {
        Body::Pieces(pieces) => {
            for piece in pieces {
                chunk(&mut socket, &piece).await?;
                // Lets the client read this piece before the next one is sent.
                tokio::task::yield_now().await;
            }
            socket.write_all(b"0\r\n\r\n").await
        }
        Body::Cut(bytes) => chunk(&mut socket, &bytes).await,
        Body::Silence(bytes) => {
            chunk(&mut socket, &bytes).await?;
            std::future::pending().await
        }
        Body::Endless(bytes) => loop {
            chunk(&mut socket, &bytes).await?;
        },
    }
}

async fn chunk(socket: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    if bytes.is_empty() {
        // A final chunk would mark the end of the response.
        return Ok(());
    }
    socket.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
    socket.write_all(bytes).await?;
    socket.write_all(b"\r\n").await
}
