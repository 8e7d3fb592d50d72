//! A lean HTTP/1.1 client on one kept-alive connection, so that the load takes little of the machine that it measures.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The number of concurrent clients.
pub const CLIENTS: usize = 64;

/// A connection over which one request is sent at a time.
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
    credential: String,
    /// The session cookie, as `name=value`. `None` until a response sets it.
    pub cookie: Option<String>,
    line: String,
    body: Vec<u8>,
}

impl Connection {
    /// Connects to `address` (`HOST:PORT`). `credential` is a header that every request carries, such as
    /// `authorization: Bearer …` or `cookie: …`.
    pub async fn open(address: &str, credential: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("{address} does not answer"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            address: address.to_owned(),
            credential: credential.to_owned(),
            cookie: None,
            line: String::new(),
            body: Vec::new(),
        })
    }

    /// Sends a request, and returns the JSON of the response (`Null` if it is not JSON); an error status is an error.
    pub async fn send(&mut self, method: &str, path: &str, content_type: &str, body: &str) -> Result<Value> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.credential,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let status = self.read().await?;
        let answer = serde_json::from_slice(&self.body).unwrap_or(Value::Null);
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status}: {answer}");
        }
        Ok(answer)
    }

    /// Posts JSON, and returns the JSON of the response; an error status is an error.
    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", path, "application/json", &body.to_string()).await
    }

    /// Gets the JSON at a path; an error status is an error.
    pub async fn get(&mut self, path: &str) -> Result<Value> {
        self.send("GET", path, "application/json", "").await
    }

    async fn read(&mut self) -> Result<u16> {
        self.next_line().await?;
        let status = self.line.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status line")?;
        let mut length = 0;
        loop {
            self.next_line().await?;
            let line = self.line.trim_end();
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else { continue };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            } else if name.eq_ignore_ascii_case("set-cookie") && value.contains("session=") {
                self.cookie = value.trim().split(';').next().map(str::to_owned);
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).await?;
        Ok(status)
    }

    async fn next_line(&mut self) -> Result<()> {
        self.line.clear();
        if self.stream.read_line(&mut self.line).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}
