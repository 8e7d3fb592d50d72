//! The whole: opens the store, lets the first people in, loads flows, and starts the hub, the worker and the server.
//! The only module that sees every other.

mod flows;
mod gauges;
mod masked;
mod recount;
mod runner;
mod wiring;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use shared::id::Username;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent;
use crate::archive::{self, Archiver};
use crate::audit::{self, HeadFile, SealKey, Sealer, Seals, Trusted};
use crate::auth::{self, oidc::Provider};
use crate::background::BackgroundTask;
use crate::clock::{SharedClock, SystemClock};
use crate::config::{Settings, Storage};
use crate::erasure::Eraser;
use crate::handler::{CallbackKey, CallbackUrl};
use crate::http::{self, AppState, Edge, Outside};
use crate::live::{self, LiveState};
use crate::notify::{self, Notifier};
use crate::rate_limit::Budgets;
use crate::server::Limits;
use crate::store::{self, Store};
use crate::tool;

pub use crate::server::Server;
pub use flows::{files as flow_files, load as load_flows};
pub use runner::{Runner, RunnerOptions};
use wiring::Sockets;
pub use wiring::{flow_env, models, reach, secrets, tools, webhooks};

/// How many connections read from the database.
const READERS: u32 = 8;

/// How long a stop takes at most. Service managers wait 30 s (Kubernetes) or 90 s (systemd) before they kill.
const STOP_LIMIT: Duration = Duration::from_secs(25);
/// How long, once workers have stopped, answers that are under way may take.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; is another server running? Choose another address with --listen")]
    Listen {
        /// The address as the settings give it.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The first people cannot be let in.
    #[error(transparent)]
    People(#[from] auth::Error),
    /// Models cannot be called.
    #[error(transparent)]
    Models(#[from] agent::Error),
    /// Tools cannot be called.
    #[error(transparent)]
    Tools(#[from] tool::Error),
    /// Nobody can sign in by the identity provider.
    #[error(transparent)]
    SingleSignOn(#[from] auth::oidc::SettingsError),
    /// Nobody can be told.
    #[error(transparent)]
    Notifications(#[from] notify::Error),
    /// The folder of flows cannot be read.
    #[error("the flows in {folder} cannot be read: {source}")]
    Flows {
        /// The path of the folder: that of `--flows`, or of the settings file.
        folder: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The audit cannot be sealed.
    #[error(transparent)]
    Seal(#[from] audit::KeyError),
    /// The head of the audit cannot be kept.
    #[error(transparent)]
    Head(#[from] audit::HeadError),
    /// The audit is sealed by somebody else.
    #[error(transparent)]
    Register(#[from] audit::RegisterError),
    /// Nobody can be asked over HTTP.
    #[error("the HTTP client cannot be created: {0}")]
    Requests(String),
    /// Metrics cannot be kept.
    #[error("metrics: {0}")]
    Metrics(String),
}

/// A running server.
pub struct App {
    links: Vec<(Username, String)>,
    runner: Runner,
    notifier: notify::NotifierHandle,
    sealer: BackgroundTask,
    archiver: BackgroundTask,
    eraser: BackgroundTask,
    stopping: CancellationToken,
    server: Server,
}

/// The machine's clock.
pub fn system_clock() -> SharedClock {
    Arc::new(SystemClock)
}

/// Opens the database to read it, for commands that need no more.
pub async fn open_to_read(storage: &Storage, clock: SharedClock) -> Result<Store, store::Error> {
    let row_keys = SealKey::find(&storage.seal_key).map(|key| key.row_keys());
    Store::open(store::Options { access: store::OpenMode::Read, row_keys, ..options(storage, clock) }).await
}

/// Opens the database to write to it, with the key of its record.
pub async fn open_to_write(storage: &Storage, clock: SharedClock) -> Result<(Store, SealKey, Trusted), Error> {
    open_record(&storage.seal_key, options(storage, clock)).await
}

/// Opens a database with the key of its record, which is registered with it.
pub async fn open_record(path: &Path, options: store::Options) -> Result<(Store, SealKey, Trusted), Error> {
    let (key, trusted) = SealKey::open(path, &*options.clock)?;
    let store = Store::open(store::Options { row_keys: Some(key.row_keys()), ..options }).await?;
    audit::register(&store, &key, &trusted).await?;
    Ok((store, key, trusted))
}

fn options(storage: &Storage, clock: SharedClock) -> store::Options {
    store::Options { readers: READERS, env: flow_env(), ..store::Options::new(storage.database.clone(), clock) }
}

impl App {
    /// Starts everything. The address is bound first, so that two servers are told apart before anything is written.
    pub async fn start(settings: Settings, admin_password: Option<String>) -> Result<Self, Error> {
        let stopping = CancellationToken::new();
        let metrics = wiring::metrics()?;
        let listener = listen(settings.listen).await?;
        let address = listener.local_addr().map_err(|source| Error::Listen { address: settings.listen, source })?;
        let clock = system_clock();
        let provider = wiring::provider(&settings, address)?;
        let kept = HeadFile::at(settings.storage.seal_head.clone());
        kept.check()?;
        let options =
            store::Options { longest_grant: settings.longest_grant, ..options(&settings.storage, clock.clone()) };
        let (store, seal_key, trusted) = open_record(&settings.storage.seal_key, options).await?;
        wiring::sum_up(metrics.clone(), store.background(), &stopping);
        gauges::count_rows(store.clone(), &stopping);
        gauges::count_pending(store.clone(), &stopping);
        let links = first_people(&store, &clock, admin_password, settings.demo).await?;
        let reach = reach(settings.notifications.slack.is_some());
        if let Some(folder) = &settings.flows {
            let people = store.people().await?;
            load_flows(&store, folder, Some(&people), reach).await?;
        }

        let provider = provider.map(|checked| Provider::new(checked, &seal_key.cookie_key(), clock.clone()));
        let seals = Seals::new(trusted.clone(), kept);
        let callbacks = CallbackKey::new(seal_key.callback_key());
        let sealer = Sealer::new(store.clone(), seal_key, seals.clone(), clock.clone()).run();
        let retention = archive::Retention {
            runs: settings.retention.runs.map(|span| span.0),
            folder: settings.storage.archive.clone(),
        };
        let eraser = Eraser::new(store.clone(), trusted.clone()).run();
        let archiver = Archiver::new(store.clone(), trusted, clock.clone(), retention).run();
        let secrets = secrets(&settings.secrets);
        let models = Arc::new(models(&settings.prices, secrets.clone())?);
        let tools = Arc::new(tools(&settings.tools, &settings.mcp, secrets)?);
        let server = CallbackUrl { server: wiring::notified_url(&settings, address), key: Some(callbacks.clone()) };
        let programs = webhooks(&settings.notifications.allowed_hosts, Some(server), clock.clone())?;
        let options = RunnerOptions {
            slots: settings.workers,
            logins: settings.logins,
            provider: provider.transpose().map_err(|error| Error::Requests(error.to_string()))?.map(Arc::new),
            ..RunnerOptions::new(store.clone(), clock.clone(), models, tools, Arc::new(programs))
        };
        let runner = Runner::start(options).await?;
        let notifier = Notifier::run(wiring::notifier(&settings, address, store, clock)).await?;
        let outside = Outside { notifications: Some(notifier.notifications()), reach, callbacks: Some(callbacks) };
        let edge = Edge {
            public_origins: settings.origins.into(),
            trusted_proxies: settings.network.trusted_proxies.iter().copied().collect(),
            budgets: Arc::new(Budgets::new(settings.limits)),
            hosts: settings.network.hosts.iter().cloned().collect(),
            metrics_token: wiring::metrics_token(),
            stopping: CancellationToken::new(),
        };
        let limits = settings.network.limits();
        let front = Front { metrics: Some(metrics), edge, limits, seals, outside };
        let server = serve(&runner, listener, front)?;
        tracing::info!(%address, "ready");
        Ok(Self { links, runner, notifier, sealer, archiver, eraser, stopping, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Who may log in with which one-time secret.
    pub fn links(&self) -> &[(Username, String)] {
        &self.links
    }

    /// Waits until something that must run for as long as the server does has ended unasked, and names it.
    pub async fn failed(&self) -> &'static str {
        self.runner.store.background().failed().await
    }

    /// Stops taking requests, finishes or gives back what is under way, and closes the database. It ends within
    /// [`STOP_LIMIT`], whatever clients, receivers and the database do.
    pub async fn stop(self) {
        let until = Instant::now() + STOP_LIMIT;
        let orderly = async {
            self.stopping.cancel();
            self.server.stop();
            let store = self.runner.stop().await;
            self.notifier.shutdown().await;
            let answered = Instant::now() + ANSWER_LIMIT;
            self.server.stopped(answered.min(until)).await;
            self.archiver.stop().await;
            self.eraser.stop().await;
            self.sealer.stop().await;
            store.close().await;
        };
        if tokio::time::timeout_at(until, orderly).await.is_err() {
            tracing::warn!("some tasks did not stop in time; everything that was acknowledged is on disk");
        }
    }
}

/// What the API shows beside the store.
#[derive(Default)]
pub struct Front {
    /// What `/metrics` shows.
    pub metrics: Option<PrometheusHandle>,
    /// How callers reach the server.
    pub edge: Edge,
    /// What connections may take.
    pub limits: Limits,
    /// The keys that prove the audit.
    pub seals: Seals,
    /// Who is told, asked and heard outside the console.
    pub outside: Outside,
}

/// Starts the API and the console, in front of what runs flows.
pub fn serve(runner: &Runner, listener: TcpListener, front: Front) -> Result<Server, Error> {
    let Front { metrics, edge, limits, seals, outside } = front;
    let Runner { store, clock, authenticator, hub, .. } = runner;
    let sockets = Sockets { authenticator: authenticator.clone(), clock: clock.clone(), edge: edge.clone() };
    let live = LiveState::new(hub.clone(), Arc::new(sockets), live::MaxSockets::default());
    let (proxies, stopping) = (edge.trusted_proxies.clone(), edge.stopping.clone());
    let state = AppState::new(store.clone(), clock.clone(), authenticator.clone(), metrics, edge, seals, outside);
    let live = Router::new().route("/api/v1/live", get(live::upgrade)).with_state(live);
    let router = http::router(state, live);
    let address = listener.local_addr().unwrap_or_else(|_| ([0; 4], 0).into());
    Server::start(listener, router, limits, proxies, store.background(), stopping)
        .map_err(|source| Error::Listen { address, source })
}

/// Binds an address.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// The admin, and the people of the demo; with a link for everyone who has no password.
async fn first_people(
    store: &Store,
    clock: &SharedClock,
    admin_password: Option<String>,
    demo: bool,
) -> Result<Vec<(Username, String)>, Error> {
    let mut links = Vec::new();
    if let Some(secret) = auth::bootstrap(store, clock, admin_password).await? {
        links.extend("admin".parse().ok().map(|admin| (admin, secret)));
    }
    if demo {
        links.extend(auth::demo_users(store, clock).await?);
    }
    Ok(links)
}
