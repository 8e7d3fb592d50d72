//! An HTTP tool on loopback that records every call.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// A request to the recorder.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The idempotency key, or the id of a webhook's message: the same for every attempt of a call. Empty if neither is
    /// sent.
    pub key: String,
    /// The JSON body of the request.
    pub arguments: Value,
}

/// The tool's server, which stops when this is dropped.
#[derive(Debug)]
pub struct Recorder {
    /// The URL at which the tool is called.
    pub url: String,
    calls: Calls,
    server: AbortHandle,
}

type Calls = Arc<Mutex<Vec<Call>>>;

impl Recorder {
    /// Starts a recorder that waits for `delay` before each answer.
    pub async fn start(delay: Duration) -> Self {
        let calls = Calls::default();
        let router = Router::new().route("/call", post(record)).with_state((Arc::clone(&calls), delay));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address: SocketAddr = listener.local_addr().expect("it has an address");
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { url: format!("http://{address}/call"), calls, server }
    }

    /// Every call so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The calls so far whose argument `name` is `value`.
    pub fn calls_with(&self, name: &str, value: &str) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|call| call.arguments.get(name).and_then(Value::as_str) == Some(value));
        calls
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn record(
    State((calls, delay)): State<(Calls, Duration)>,
    headers: HeaderMap,
    Json(arguments): Json<Value>,
) -> Json<Value> {
    let key = headers.get("idempotency-key").or(headers.get("webhook-id"));
    let key = key.and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    // Recorded before the answer: the effect has happened even if the answer gets lost.
    calls.lock().unwrap_or_else(PoisonError::into_inner).push(Call { key, arguments });
    tokio::time::sleep(delay).await;
    Json(json!({ "recorded": true }))
}
