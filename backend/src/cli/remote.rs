//! The server that a command uses: its address, the caller's token, and the typed client over HTTP.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use shared::client::{ApiRequest, ApiResponse, Client, Transport};

use super::exit::{Exit, Quit};
use crate::http_client;

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The header that names the channel of a decision, which is only a label for the audit log.
const VIA: HeaderName = HeaderName::from_static("countersign-via");

/// The server, and the token of the caller.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// URL of the server
    #[arg(
        long,
        env = "COUNTERSIGN_SERVER",
        hide_env_values = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080"
    )]
    server: String,
    /// File with your token, instead of the variable COUNTERSIGN_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// The typed client of the server's API.
pub type Api = Client<Http>;

impl ServerArgs {
    /// Creates the client. The token comes from a file or the environment, never from the command line, where others on
    /// the machine could read it.
    pub fn client(&self) -> Result<Api, Quit> {
        let base = self.server.trim_end_matches('/');
        if !reqwest::Url::parse(base).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
            let message = format!("--server {base}: expected a URL such as https://reviews.example.org");
            return Err(Quit::new(Exit::Error, message));
        }
        let token = match &self.token_file {
            Some(file) => std::fs::read_to_string(file).map_err(|error| Quit::unread(file, &error))?,
            None => std::env::var("COUNTERSIGN_TOKEN").unwrap_or_default(),
        };
        let token = token.trim();
        if token.is_empty() {
            let message = "no token is set: create one in the console, under You (for admins: People), Your tokens, and set \
                           COUNTERSIGN_TOKEN to it, or name a file that contains it with --token-file";
            return Err(Quit::new(Exit::Forbidden, message));
        }
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Quit::new(Exit::Error, "the token has characters that no token has".to_owned()))?;
        bearer.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(reqwest::header::AUTHORIZATION, bearer);
        headers.insert(VIA, HeaderValue::from_static("cli"));
        let http = http_client::builder().default_headers(headers).timeout(TIMEOUT).build();
        let http = http.map_err(|error| Quit::new(Exit::Error, error.to_string()))?;
        Ok(Client::new(Http { http, base: base.to_owned() }))
    }
}

/// The transport of the client: HTTP to one server, with the token in every request.
pub struct Http {
    http: reqwest::Client,
    base: String,
}

impl Transport for Http {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, String> {
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| error.to_string())?;
        let mut builder = self.http.request(method, format!("{}{}", self.base, request.path));
        if let Some((content_type, body)) = request.body {
            builder = builder.header(CONTENT_TYPE, content_type).body(body);
        }
        if let Some(key) = request.idempotency_key {
            builder = builder.header("idempotency-key", key);
        }
        let away = |error: reqwest::Error| {
            // The innermost error names the cause, such as `Connection refused`.
            let whys = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            let why = whys.last().map(ToString::to_string).unwrap_or_default();
            format!("{} cannot be reached: {why}", self.base)
        };
        let response = builder.send().await.map_err(away)?;
        let status = response.status().as_u16();
        Ok(ApiResponse { status, body: response.text().await.map_err(away)? })
    }
}
