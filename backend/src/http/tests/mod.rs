//! Tests of the API as clients see it: the whole router over its own database, in SQLite, or in both databases where
//! the store matters. No worker runs.

mod account;
mod audit;
mod budgets;
mod client_address;
mod common_rules;
mod deputies;
mod described;
mod feedback;
mod finding;
mod grants;
mod guardrails;
mod lists;
mod mcp;
mod mcp_permission;
mod nested;
mod output;
mod people;
mod queue;
mod rights;
mod run;
mod saved_views;
mod slack;
mod slack_channels;
mod slack_reactions;
mod statistics;
mod story;
mod token_life;
mod unreadable;
mod votes;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::{AppState, HttpOptions, Outside, router};
use crate::audit::{HeadFile, SealKey, Seals};
use crate::auth::{Authenticator, LoginPolicy, bootstrap};
use crate::clock::{SharedClock, SystemClock};
use crate::flow::Reach;
use crate::notify::NotificationService;
use crate::store::testing::{Database, ManualClock};
use crate::store::{Store, StoreOptions};

const PASSWORD: &str = "correct horse";

struct Site {
    router: Router,
    store: Store,
    clock: SharedClock,
    seals: Seals,
    folder: TempDir,
    database: Database,
    /// The login settings of routers with notification channels.
    policy: LoginPolicy,
}

/// Returns the settings of a server behind a proxy on the loopback address.
fn http_options() -> HttpOptions {
    HttpOptions { trusted_proxies: ["127.0.0.1".parse().unwrap()].into_iter().collect(), ..HttpOptions::default() }
}

/// A response, with its body as JSON, or as a JSON string if it is something else.
#[derive(Debug)]
struct Received {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Received {
    #[track_caller]
    fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        if status >= 400 {
            assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
            assert_eq!(self.body["status"], status);
        }
        self.body
    }

    /// Expects a problem with this status, and returns its code.
    #[track_caller]
    fn code(self, status: u16) -> String {
        self.expect(status)["code"].as_str().unwrap().to_owned()
    }
}

impl Site {
    /// Creates a server with the user `admin`.
    async fn new() -> Self {
        Self::sqlite().await
    }

    async fn sqlite() -> Self {
        Self::on(Database::sqlite().unwrap()).await
    }

    async fn postgres() -> Option<Self> {
        Some(Self::on(Database::postgres().await.unwrap()?).await)
    }

    /// Creates a server whose time stands still, and returns it with its clock.
    async fn at_rest() -> (Self, Arc<ManualClock>) {
        let clock = ManualClock::now();
        (Self::with(Database::sqlite().unwrap(), clock.clone(), http_options()).await, clock)
    }

    async fn on(database: Database) -> Self {
        Self::with(database, Arc::new(SystemClock), http_options()).await
    }

    async fn with(database: Database, clock: SharedClock, http: HttpOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (key, trusted) = SealKey::open(&folder.path().join("seal.key"), &*clock).unwrap();
        let options = StoreOptions { readers: 2, row_keys: Some(key.row_keys()), ..database.options(clock.clone()) };
        let store = Store::open(options).await.unwrap();
        assert_eq!(bootstrap(&store, &clock, Some(PASSWORD.to_owned())).await.unwrap(), None);
        let authenticator = Authenticator::new(store.clone(), clock.clone());
        let seals = Seals::new(trusted, HeadFile::at(folder.path().join("seal.head")));
        let state =
            AppState::new(store.clone(), clock.clone(), authenticator, None, http, seals.clone(), Outside::default());
        Self {
            router: router(state, Router::new()),
            store,
            clock,
            seals,
            folder,
            database,
            policy: LoginPolicy::default(),
        }
    }

    fn is_postgres(&self) -> bool {
        self.database.options(self.clock.clone()).url.starts_with("postgres")
    }

    /// Replaces the router by one with other login settings.
    fn logins(&mut self, policy: LoginPolicy) {
        let authenticator = Authenticator::new(self.store.clone(), self.clock.clone()).with(policy);
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let state =
            AppState::new(store, clock, authenticator, None, http_options(), self.seals.clone(), Outside::default());
        self.router = router(state, Router::new());
    }

    /// Replaces the router by one with notification channels.
    fn tell(&mut self, notifications: NotificationService, options: HttpOptions) {
        let authenticator = Authenticator::new(self.store.clone(), self.clock.clone()).with(self.policy);
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let reach = Reach { chats: true, ..Reach::default() };
        let outside = Outside { notifications: Some(notifications), reach, ..Outside::default() };
        let state = AppState::new(store, clock, authenticator, None, options, self.seals.clone(), outside);
        self.router = router(state, Router::new());
    }

    /// Sends a request; unless it names a peer, it comes from the proxy.
    async fn send(&self, mut request: Request<Body>) -> Received {
        let proxy = ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 40_000)));
        request.extensions_mut().get_or_insert(proxy);
        request.headers_mut().entry(header::HOST).or_insert(HeaderValue::from_static("127.0.0.1:8080"));
        let (method, path) = (request.method().as_str().to_lowercase(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        described::check(&method, &path, parts.status, &parts.headers, &body);
        Received { status: parts.status, headers: parts.headers, body }
    }

    /// Logs a person in, and returns a client with the session cookie.
    async fn login(&self, username: &str) -> Client<'_> {
        let body = json!({ "username": username, "password": PASSWORD });
        let answer = Client { site: self, cookie: None }.post("/api/v1/session", &body).await;
        let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        assert_eq!(answer.expect(200)["username"], username);
        Client { site: self, cookie: Some(cookie) }
    }

    /// Sets a person's member ID in Slack, which only an admin may, and confirms it, which only the person may.
    async fn in_slack(&self, username: &str, id: &str) {
        let path = format!("/api/v1/notifications?user={username}");
        self.login("admin").await.put(&path, &json!({ "slack_user_id": id })).await.expect(200);
        let confirmed = json!({ "slack_user_id": id, "slack_confirmed": true });
        self.login(username).await.put("/api/v1/notifications", &confirmed).await.expect(200);
    }

    /// Adds a person, and logs them in.
    async fn join(&self, username: &str, roles: &[&str]) -> Client<'_> {
        let new = json!({ "username": username, "password": PASSWORD, "roles": roles });
        self.login("admin").await.post("/api/v1/users", &new).await.expect(201);
        self.login(username).await
    }
}

/// A client like a browser: logged in if it has a session cookie.
struct Client<'a> {
    site: &'a Site,
    cookie: Option<String>,
}

impl Client<'_> {
    fn request(&self, method: &str, path: &str) -> axum::http::request::Builder {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1:8080");
        match &self.cookie {
            Some(cookie) => request.header(header::COOKIE, cookie),
            None => request,
        }
    }

    async fn get(&self, path: &str) -> Received {
        self.site.send(self.request("GET", path).body(Body::empty()).unwrap()).await
    }

    async fn delete(&self, path: &str) -> Received {
        self.site.send(self.request("DELETE", path).body(Body::empty()).unwrap()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Received {
        self.post_with(path, body, &[]).await
    }

    async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Received {
        let request = self.request("POST", path).header(header::CONTENT_TYPE, "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        self.site.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn patch(&self, path: &str, body: &Value) -> Received {
        let request = self.request("PATCH", path).header(header::CONTENT_TYPE, "application/json");
        self.site.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn put(&self, path: &str, body: &Value) -> Received {
        let request = self.request("PUT", path).header(header::CONTENT_TYPE, "application/json");
        self.site.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn put_flow(&self, path: &str, source: &str) -> Received {
        let request = self.request("PUT", path).header(header::CONTENT_TYPE, "application/yaml");
        self.site.send(request.body(Body::from(source.to_owned())).unwrap()).await
    }
}
