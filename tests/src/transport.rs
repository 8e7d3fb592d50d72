//! The console's typed client over reqwest, and raw requests for what that client would never send.

use std::sync::{Mutex, Once, PoisonError};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, SET_COOKIE};
use reqwest::{Method, RequestBuilder};
use shared::api::LoginRequest;
use shared::client::{ApiRequest, ApiResponse, Client, Transport};
use shared::error::Problem;

/// The typed client of the API over reqwest.
pub type Api = Client<HttpTransport>;

/// Sends requests to one server with the credential of one person, or without any.
#[derive(Debug)]
pub struct HttpTransport {
    http: reqwest::Client,
    base: String,
    /// The session cookie, as `name=value`. `None` until a response sets it.
    cookie: Mutex<Option<String>>,
    token: Option<String>,
}

impl HttpTransport {
    /// A transport to the server at `base`, without a credential.
    pub fn new(base: &str) -> Self {
        install_tls();
        let http = reqwest::Client::builder().build().expect("an HTTP client");
        Self { http, base: base.to_owned(), cookie: Mutex::default(), token: None }
    }

    /// A transport to the server at `base`, with a token.
    pub fn with_token(base: &str, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..Self::new(base) }
    }

    /// The name and value of the header that authenticates requests. `None` without a token or cookie.
    pub fn credential(&self) -> Option<(&'static str, String)> {
        if let Some(token) = &self.token {
            return Some(("authorization", format!("Bearer {token}")));
        }
        self.cookie().clone().map(|cookie| ("cookie", cookie))
    }

    /// A request with the credential, to be completed and sent by the caller.
    pub fn raw(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match (&self.token, &*self.cookie()) {
            (Some(token), _) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            (None, Some(cookie)) => request.header(COOKIE, cookie),
            (None, None) => request,
        }
    }

    fn cookie(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.cookie.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for HttpTransport {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, String> {
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| error.to_string())?;
        let mut builder = self.raw(method, &request.path);
        if let Some((content_type, body)) = request.body {
            builder = builder.header(CONTENT_TYPE, content_type).body(body);
        }
        if let Some(key) = request.idempotency_key {
            builder = builder.header("idempotency-key", key);
        }
        let response = builder.send().await.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        if let Some(cookie) = response.headers().get(SET_COOKIE).and_then(|cookie| cookie.to_str().ok()) {
            *self.cookie() = cookie.split(';').next().map(str::to_owned);
        }
        let body = response.text().await.map_err(|error| error.to_string())?;
        Ok(ApiResponse { status, body })
    }
}

/// Logs in to the server at `base`, and returns a client with the session.
pub async fn login(base: &str, username: &str, password: &str) -> Result<Api, Problem> {
    let api = Client::new(HttpTransport::new(base));
    let (username, password) = (username.to_owned(), password.to_owned());
    api.login(&LoginRequest::Password { username, password, code: None }).await?;
    Ok(api)
}

/// Installs the TLS provider once per process. HTTP clients need it even for plain HTTP.
pub fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
