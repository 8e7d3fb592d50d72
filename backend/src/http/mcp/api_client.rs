//! Calls the REST API inside the process, with the credentials of the request that it serves.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, Method, Request, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::error::{Code, Problem};
use tower::ServiceExt as _;

use super::super::reads::ReadTurn;
use super::super::wait;
use crate::client_address::ClientAddress;

/// The largest response that is read, in bytes.
const MAX_RESPONSE: usize = 64 * 1024 * 1024;

/// A client of the REST API with the credentials of one caller.
#[derive(Clone)]
pub(super) struct ApiClient {
    router: Router,
    headers: HeaderMap,
    extensions: Extensions,
    origin: Option<String>,
}

impl ApiClient {
    /// Creates a client that calls `router` with the credentials and the address of a request. Its calls are not
    /// counted as further writes of the caller.
    pub fn new(router: Router, parts: &Parts, public: &[String]) -> Self {
        let mut headers = HeaderMap::new();
        for name in [header::AUTHORIZATION, header::COOKIE, header::HOST] {
            headers.extend(parts.headers.get_all(&name).iter().map(|value| (name.clone(), value.clone())));
        }
        let mut extensions = Extensions::new();
        if let Some(client) = parts.extensions.get::<ClientAddress>() {
            extensions.insert(*client);
        }
        let host = || Some(format!("http://{}", headers.get(header::HOST)?.to_str().ok()?));
        let origin = public.first().map(|origin| origin.trim_end_matches('/').to_owned()).or_else(host);
        Self { router, headers, extensions, origin }
    }

    /// Returns the address of the console: the first public origin, or the host of the caller's request.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.call(Method::GET, path, None, Body::empty()).await
    }

    /// Posts a body, under an idempotency key if there is one.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        key: Option<&str>,
        body: &impl Serialize,
    ) -> Result<T, Problem> {
        let body = serde_json::to_vec(body).map_err(|error| Problem::invalid("", error.to_string()))?;
        self.call(Method::POST, path, key, Body::from(body)).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Body,
    ) -> Result<T, Problem> {
        let mut request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let mut request = request.body(body).map_err(|_| Problem::invalid("/idempotency_key", "not a header value"))?;
        request.headers_mut().extend(self.headers.clone());
        *request.extensions_mut() = self.extensions.clone();
        let waits = wait::is_asked(request.uri());
        // Kept until the response has been read.
        let _read_turn = ReadTurn::of(&mut request, waits);
        let Ok(response) = self.router.clone().oneshot(request).await;
        let succeeded = response.status().is_success();
        let bytes = to_bytes(response.into_body(), MAX_RESPONSE).await.map_err(|_| Problem::new(Code::Internal))?;
        if !succeeded {
            return Err(serde_json::from_slice(&bytes).unwrap_or_else(|_| Problem::new(Code::Internal)));
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            tracing::error!(%error, path, "a response of the API could not be read");
            Problem::new(Code::Internal)
        })
    }
}
