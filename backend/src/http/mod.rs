//! The HTTP API, with one file for each resource. A handler identifies the caller, reads the body, asks
//! `shared::access`, and then reads from the store or commits to it.

mod account;
mod api;
mod archived;
mod assets;
mod audit;
pub mod body;
mod budget;
mod callbacks;
mod caller;
mod compression;
#[cfg(debug_assertions)]
mod console_folder;
mod cookies;
mod deputies;
mod feedback;
mod flows;
mod grants;
mod headers;
mod health;
mod host;
mod idempotency;
mod inputs;
mod log;
mod mcp;
mod me;
mod middleware;
mod notifications;
mod oidc;
mod openapi;
mod origin;
mod outputs;
mod pagination;
pub mod problem;
mod reads;
mod request_metrics;
mod reviews;
mod runs;
mod saved_views;
mod session;
mod slack;
mod statistics;
mod tokens;
mod users;
mod wait;

#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn_with_state, map_request};
use metrics_exporter_prometheus::PrometheusHandle;
use shared::error::{Code, Problem};
use tokio_util::sync::CancellationToken;
use tower::service_fn;
use tower_http::catch_panic::CatchPanicLayer;

pub use caller::Caller;
use caller::Write;
#[cfg(test)]
pub(crate) use log::lets_see;
pub use origin::origin_allowed;

use crate::audit::Seals;
use crate::auth::Authenticator;
use crate::client_address::TrustedProxies;
use crate::clock::SharedClock;
use crate::flow::Reach;
use crate::handler::CallbackKey;
use crate::notify::{NO_CALLBACKS, NotificationService};
use crate::rate_limit::{Budgets, RateLimit};
use crate::store::Store;
use api::Api;
use problem::Refused;
use reads::ReadsAtOnce;
use request_metrics::RequestMetrics;
use reviews::{ChecksAtOnce, ViewedReviews};
use wait::Waits;

/// The shared state of all handlers. Cheap to clone: it is cloned for every layer and every request.
#[derive(Clone)]
pub struct AppState(Arc<AppParts>);

/// The parts of [`AppState`].
pub struct AppParts {
    /// The database that handlers read from and commit to.
    pub store: Store,
    /// The clock of the server.
    pub clock: SharedClock,
    /// The authenticator, which identifies callers.
    pub authenticator: Authenticator,
    /// The metrics that `/metrics` shows; `None`: it shows none.
    pub metrics: Option<PrometheusHandle>,
    /// How clients reach the server, and their limits.
    pub options: HttpOptions,
    /// The trusted seals of the audit log.
    pub seals: Seals,
    /// The connections to people and programs outside the console.
    pub outside: Outside,
    viewed_reviews: ViewedReviews,
    waits: Waits,
    checks: ChecksAtOnce,
    reads: ReadsAtOnce,
    request_metrics: RequestMetrics,
    /// The limit for callbacks, which counts per task.
    callback_limit: RateLimit,
}

/// The connections to people and programs outside the console.
#[derive(Clone, Default)]
pub struct Outside {
    /// The notification channels; `None`: people are notified only in the console.
    pub notifications: Option<NotificationService>,
    /// The handlers that can be asked, and the tools that can be called.
    pub reach: Reach,
    /// The key of the secrets with which webhooks answer later; `None`: they cannot answer later.
    pub callbacks: Option<CallbackKey>,
}

impl Outside {
    /// Checks the `callback_url` of a request, if it has one: whether messages can be posted there.
    fn check_callback(&self, url: Option<&str>) -> Result<(), Problem> {
        let Some(url) = url else { return Ok(()) };
        let checked = match &self.notifications {
            Some(notifications) => notifications.check_callback(url),
            None => Err(NO_CALLBACKS.to_owned()),
        };
        checked.map_err(|why| Problem::invalid("/callback_url", why))
    }
}

/// How clients reach the server, and their limits.
#[derive(Clone, Default)]
pub struct HttpOptions {
    /// The public addresses of the console, such as `https://countersign.example`, besides the `Host` of a request.
    pub public_origins: Arc<[String]>,
    /// The proxies whose client addresses are trusted.
    pub trusted_proxies: TrustedProxies,
    /// The limits for the writes of each person.
    pub budgets: Arc<Budgets>,
    /// The host names that requests may name besides IP addresses, `localhost` and the public origins; `*`: any.
    pub hosts: Arc<[String]>,
    /// The SHA-256 of the bearer token with which clients may read `/metrics`; `None`: there is no such token.
    pub metrics_token: Option<[u8; 32]>,
    /// Cancelled when the server stops; ends the wait of requests that wait for a review or a run.
    pub stopping: CancellationToken,
}

impl HttpOptions {
    fn is_https(&self) -> bool {
        self.public_origins.iter().any(|origin| origin.starts_with("https://"))
    }
}

impl AppState {
    /// Creates the state of a server that has not served any request yet.
    pub fn new(
        store: Store,
        clock: SharedClock,
        authenticator: Authenticator,
        metrics: Option<PrometheusHandle>,
        options: HttpOptions,
        seals: Seals,
        outside: Outside,
    ) -> Self {
        Self(Arc::new(AppParts {
            store,
            clock,
            authenticator,
            metrics,
            options,
            seals,
            outside,
            viewed_reviews: ViewedReviews::default(),
            waits: Waits::default(),
            checks: ChecksAtOnce::default(),
            reads: ReadsAtOnce::default(),
            request_metrics: RequestMetrics::default(),
            callback_limit: RateLimit::new(callbacks::TRIES, callbacks::BETWEEN_TRIES),
        }))
    }
}

impl Deref for AppState {
    type Target = AppParts;
    fn deref(&self) -> &AppParts {
        &self.0
    }
}

/// Returns the router of the API and the console, merged with `further`. Each request must carry
/// `ConnectInfo<SocketAddr>`, because limits count by address.
pub fn router(state: AppState, further: Router) -> Router {
    let console = assets::console();
    let api = openapi::mount(api());
    let mcp = mcp::router(
        api.clone().with_state(state.clone()).layer(CatchPanicLayer::custom(middleware::panicked)),
        state.clone(),
    );
    api.with_state(state.clone())
        .layer(compression::layer())
        .layer(map_request(async |request| compression::limit_to_reads(request)))
        .merge(mcp)
        .method_not_allowed_fallback(async || Refused(Problem::new(Code::MethodNotAllowed)))
        .fallback_service(service_fn(move |request| assets::serve(console.clone(), request)))
        .merge(further)
        .layer(CatchPanicLayer::custom(middleware::panicked))
        .layer(from_fn_with_state(state, middleware::observe))
}

fn api() -> Api {
    let mut api = Api::new();
    session::mount(&mut api);
    oidc::mount(&mut api);
    me::mount(&mut api);
    saved_views::mount(&mut api);
    account::mount(&mut api);
    users::mount(&mut api);
    tokens::mount(&mut api);
    deputies::mount(&mut api);
    grants::mount(&mut api);
    flows::mount(&mut api);
    runs::mount(&mut api);
    reviews::mount(&mut api);
    feedback::mount(&mut api);
    statistics::mount(&mut api);
    log::mount(&mut api);
    audit::mount(&mut api);
    notifications::mount(&mut api);
    slack::mount(&mut api);
    callbacks::mount(&mut api);
    health::mount(&mut api);
    api
}
