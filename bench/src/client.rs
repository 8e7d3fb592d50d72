//! A lean HTTP/1.1 client on one kept-alive connection, so that the load takes little of the machine that it measures.

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
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
        let answer = self.request(method, path, content_type, body).await?;
        Ok(serde_json::from_slice(answer).unwrap_or(Value::Null))
    }

    /// Posts JSON, and returns the JSON of the response; an error status is an error.
    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.send("POST", path, "application/json", &body.to_string()).await
    }

    /// Gets the JSON at a path; an error status is an error.
    pub async fn get(&mut self, path: &str) -> Result<Value> {
        self.send("GET", path, "application/json", "").await
    }

    /// Like [`Self::post`], and reads only the members that `T` has: a whole response takes much of the client's time.
    pub async fn post_for<T: DeserializeOwned>(&mut self, path: &str, body: &Value) -> Result<T> {
        let answer = self.request("POST", path, "application/json", &body.to_string()).await?;
        serde_json::from_slice(answer).with_context(|| format!("the response of {path}"))
    }

    /// Like [`Self::get`], and reads only the members that `T` has.
    pub async fn get_for<T: DeserializeOwned>(&mut self, path: &str) -> Result<T> {
        let answer = self.request("GET", path, "application/json", "").await?;
        serde_json::from_slice(answer).with_context(|| format!("the response of {path}"))
    }

    /// Sends a request, and returns the body of the response; an error status is an error.
    async fn request(&mut self, method: &str, path: &str, content_type: &str, body: &str) -> Result<&[u8]> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.credential,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).await?;
        let status = self.read().await?;
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&self.body));
        }
        Ok(&self.body)
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
