//! The HTTP API: one file a resource. A handler finds out who calls, reads the body, asks `shared::access`, and then
//! reads from the store or commits to it.
//!
//! Imports `shared`, `crate::client_address`, `crate::rate_limit`, `crate::clock`, `crate::flow`, `crate::engine`,
//! `crate::store`, `crate::problem`, `crate::json`, `crate::notify`, `crate::handler`, `crate::auth` and `crate::audit`.

mod account;
mod api;
mod assets;
mod audit;
pub mod body;
mod budget;
mod callbacks;
mod caller;
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
mod me;
mod middleware;
mod notifications;
mod oidc;
mod openapi;
mod origin;
mod pagination;
pub mod problem;
mod reviews;
mod runs;
mod session;
mod slack;
mod statistics;
mod tokens;
mod users;

#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use metrics_exporter_prometheus::PrometheusHandle;
use shared::error::{Code, Problem};
use tokio_util::sync::CancellationToken;
use tower::service_fn;
use tower_http::catch_panic::CatchPanicLayer;

pub use caller::Caller;
use caller::Write;
pub use host::Hosts;
pub use origin::{PublicOrigins, origin_allowed};

use crate::audit::Seals;
use crate::auth::Authenticator;
use crate::client_address::TrustedProxies;
use crate::clock::SharedClock;
use crate::flow::Reach;
use crate::handler::CallbackKey;
use crate::notify::NotificationService;
use crate::rate_limit::Budgets;
use crate::store::Store;
use api::Api;
use problem::Refused;
use reviews::{ReviewWaits, Views};

/// What every handler stands on. Cheap to clone: every layer has one, for every request.
#[derive(Clone)]
pub struct AppState(Arc<AppParts>);

/// The parts of it.
pub struct AppParts {
    /// The database that handlers read from and commit to.
    pub store: Store,
    /// The clock of answers.
    pub clock: SharedClock,
    /// Who is calling.
    pub authenticator: Authenticator,
    /// What `/metrics` shows; none: it shows nothing.
    pub metrics: Option<PrometheusHandle>,
    /// How callers reach the server.
    pub edge: Edge,
    /// Whose seals of the audit are trusted.
    pub seals: Seals,
    /// Who is told and asked outside the console.
    pub outside: Outside,
    views: Views,
    waits: ReviewWaits,
    tries: callbacks::Tries,
}

/// Who is told and asked outside the console.
#[derive(Clone, Default)]
pub struct Outside {
    /// Where people can be told; none: nowhere.
    pub notifications: Option<NotificationService>,
    /// Which handlers can be asked.
    pub reach: Reach,
    /// The key of the secrets by which webhooks answer later; none: they cannot.
    pub callbacks: Option<CallbackKey>,
}

/// How callers reach the server, and what they may do there.
#[derive(Clone, Default)]
pub struct Edge {
    /// Where browsers find the console, beside the `Host` that they name.
    pub public_origins: PublicOrigins,
    /// Whose reports of their clients' addresses are believed.
    pub trusted_proxies: TrustedProxies,
    /// What each person may write.
    pub budgets: Arc<Budgets>,
    /// Further names by which the server is reached.
    pub hosts: Hosts,
    /// Who sends the secret with this SHA-256 may read `/metrics`.
    pub metrics_token: Option<[u8; 32]>,
    /// When the server stops: then no request waits any more.
    pub stopping: CancellationToken,
}

impl Edge {
    /// Whether browsers find the server by https.
    fn is_https(&self) -> bool {
        self.public_origins.iter().any(|origin| origin.starts_with("https://"))
    }
}

impl AppState {
    /// A state in which nobody has looked at anything yet.
    pub fn new(
        store: Store,
        clock: SharedClock,
        authenticator: Authenticator,
        metrics: Option<PrometheusHandle>,
        edge: Edge,
        seals: Seals,
        outside: Outside,
    ) -> Self {
        let (views, waits, tries) = (Views::default(), ReviewWaits::default(), callbacks::Tries::default());
        Self(Arc::new(AppParts { store, clock, authenticator, metrics, edge, seals, outside, views, waits, tries }))
    }
}

impl Deref for AppState {
    type Target = AppParts;
    fn deref(&self) -> &AppParts {
        &self.0
    }
}

/// The API and the console, with the routes of `further`. Serve it with `ConnectInfo<SocketAddr>` in each request: callers
/// are counted by address.
pub fn router(state: AppState, further: Router) -> Router {
    let console = assets::console();
    openapi::mount(api())
        .method_not_allowed_fallback(async || Refused(Problem::new(Code::MethodNotAllowed)))
        .fallback_service(service_fn(move |request| assets::serve(console.clone(), request)))
        .with_state(state.clone())
        .merge(further)
        .layer(CatchPanicLayer::custom(middleware::panicked))
        .layer(from_fn_with_state(state, middleware::observe))
}

/// Every resource, with its description.
fn api() -> Api {
    let mut api = Api::new();
    session::mount(&mut api);
    oidc::mount(&mut api);
    me::mount(&mut api);
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
