//! The application: opens the store, creates the first users, loads flows, and starts the hub, the worker and the
//! server.

mod flows;
mod gauges;
#[cfg(test)]
mod log_audience_tests;
mod masked;
mod recount;
mod runner;
mod wiring;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use axum::Router;
use axum::routing::get;
use futures::future::join_all;
use metrics_exporter_prometheus::PrometheusHandle;
use shared::id::Username;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::archive::{self, Archiver};
use crate::audit::{self, HeadFile, SealKey, Sealer, Seals, Trusted};
use crate::auth::{self, oidc::Provider};
use crate::background::BackgroundTask;
use crate::clock::{ServerClock, SharedClock, SystemClock};
use crate::config::{Settings, SettingsFile, Storage};
use crate::erasure::Eraser;
use crate::handler::{CallbackKey, CallbackUrl};
use crate::http::{self, AppState, Outside};
use crate::live::{self, LiveState};
use crate::notify::Notifier;
use crate::store::{self, Store, StoreOptions};

pub use crate::server::Server;
pub use flows::{files as flow_files, load as load_flows};
pub use runner::{Runner, RunnerOptions};
use wiring::Sockets;
pub use wiring::{environment, models, notified_url, reach, secrets, tools, webhooks};

/// The number of database connections for reading.
const READERS: u32 = 8;

/// The time limit of a stop. Service managers wait 30 s (Kubernetes) or 90 s (systemd) before they kill a process.
const STOP_LIMIT: Duration = Duration::from_secs(25);
/// How long responses in progress may take after the workers have stopped.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A running server.
pub struct App {
    links: Vec<(Username, String)>,
    runner: Runner,
    notifier: Notifier,
    sealer: BackgroundTask,
    archiver: BackgroundTask,
    eraser: BackgroundTask,
    gauges: [BackgroundTask; 3],
    server: Server,
}

/// Returns the clock of the machine, which a store on PostgreSQL moves onto the database's.
pub fn system_clock() -> SharedClock {
    Arc::new(ServerClock::new(Arc::new(SystemClock)))
}

/// Opens the database for reading, for commands that need no more.
pub async fn open_to_read(storage: &Storage, clock: SharedClock) -> Result<Store, store::Error> {
    let row_keys = SealKey::find(&storage.seal_key).map(|key| key.row_keys());
    Store::open(StoreOptions { access: store::OpenMode::Read, row_keys, ..options(storage, clock) }).await
}

/// Opens the database for writing, with the key of its audit log.
pub async fn open_to_write(storage: &Storage, clock: SharedClock) -> anyhow::Result<(Store, SealKey, Trusted)> {
    open_record(&storage.seal_key, options(storage, clock)).await
}

/// Opens a database with the key of its audit log, and registers the key.
pub async fn open_record(path: &Path, options: StoreOptions) -> anyhow::Result<(Store, SealKey, Trusted)> {
    let (key, trusted) = SealKey::open(path, &*options.clock)?;
    let store = Store::open(StoreOptions { row_keys: Some(key.row_keys()), ..options }).await?;
    audit::register(&store, &key, &trusted).await?;
    Ok((store, key, trusted))
}

fn options(storage: &Storage, clock: SharedClock) -> StoreOptions {
    StoreOptions { readers: READERS, environment: environment(), ..StoreOptions::new(storage.database.clone(), clock) }
}

impl App {
    /// Starts everything. It binds the address first, so that a second server fails before anything is written.
    pub async fn start(settings: Settings, admin_password: Option<String>) -> anyhow::Result<Self> {
        let Settings { listen: address, storage, demo, file: mut settings } = settings;
        if demo {
            // Its users have no passwords to confirm with.
            settings.logins.confirm_after = settings.logins.session_life;
        }
        let metrics = wiring::metrics()?;
        let listener = listen(address).await?;
        let address = listener.local_addr().map_err(|error| cannot_listen(address, &error))?;
        let clock = system_clock();
        let provider = wiring::provider(&settings, address)?;
        let kept = HeadFile::at(storage.seal_head.clone());
        kept.check()?;
        let longest_grant = settings.longest_grant();
        let options = StoreOptions { longest_grant, ..options(&storage, clock.clone()) };
        let (store, seal_key, trusted) = open_record(&storage.seal_key, options).await?;
        let gauges = [
            wiring::sum_up(metrics.clone(), store.background()),
            gauges::count_rows(store.clone()),
            gauges::count_pending(store.clone()),
        ];
        let links = first_people(&store, &clock, admin_password, demo).await?;
        let reach = reach(&settings, settings.notifications.slack.is_some());
        if let Some(folder) = &settings.flows {
            let people = store.people().await?;
            load_flows(&store, folder, Some(&people), &reach).await?;
        }

        let provider = provider.map(|checked| Provider::new(checked, &seal_key.cookie_key(), clock.clone()));
        let seals = Seals::new(trusted.clone(), kept);
        let callbacks = CallbackKey::new(seal_key.callback_key());
        let sealer = Sealer::new(store.clone(), seal_key, seals.clone(), clock.clone()).run();
        let runs = settings.retention.runs.map(|span| span.0);
        let retention = archive::Retention { runs, folder: storage.archive };
        let eraser = Eraser::new(store.clone(), trusted.clone()).run();
        let archiver = Archiver::new(store.clone(), trusted, clock.clone(), retention).run();
        let secrets = secrets(&settings.secrets);
        let models = Arc::new(models(&settings.prices, secrets.clone())?);
        let tools = Arc::new(tools(&settings, secrets)?);
        let server = CallbackUrl { server: notified_url(&settings, address), key: Some(callbacks.clone()) };
        let programs = webhooks(&settings.notifications.allowed_hosts, Some(server), clock.clone())?;
        let options = RunnerOptions {
            provider: provider.transpose().map_err(|error| wiring::no_client(&error))?.map(Arc::new),
            ..RunnerOptions::new(&settings, store.clone(), clock.clone(), models, tools, Arc::new(programs))?
        };
        let runner = Runner::start(options).await?;
        let notifier = Notifier::run(wiring::notifier(&settings, address, store, clock)).await?;
        let outside = Outside { notifications: Some(notifier.notifications()), reach, callbacks: Some(callbacks) };
        let server = serve(&runner, listener, &settings, Some(metrics), seals, outside)?;
        tracing::info!(%address, "ready");
        Ok(Self { links, runner, notifier, sealer, archiver, eraser, gauges, server })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the one-time login secrets, by user.
    pub fn links(&self) -> &[(Username, String)] {
        &self.links
    }

    /// Waits until a task that must run as long as the server ends unexpectedly, and returns its name.
    pub async fn failed(&self) -> &'static str {
        self.runner.store.background().failed().await
    }

    /// Stops accepting requests, finishes or releases the work in progress, and closes the database. It ends within
    /// `STOP_LIMIT`, whatever clients, receivers and the database do.
    pub async fn stop(self) {
        let until = Instant::now() + STOP_LIMIT;
        let orderly = async {
            self.server.stop();
            let store = self.runner.stop().await;
            let answered = Instant::now() + ANSWER_LIMIT;
            let server = self.server.stopped(answered.min(until));
            let (notifier, archiver) = (self.notifier.shutdown(), self.archiver.stop());
            let gauges = join_all(self.gauges.map(BackgroundTask::stop));
            tokio::join!(server, notifier, archiver, self.eraser.stop(), self.sealer.stop(), gauges);
            store.close().await;
        };
        if tokio::time::timeout_at(until, orderly).await.is_err() {
            tracing::warn!("some tasks did not stop in time; everything that was acknowledged is on disk");
        }
    }
}

/// Starts the API and the console, before the parts that run flows. `metrics` are those of `/metrics`.
pub fn serve(
    runner: &Runner,
    listener: TcpListener,
    settings: &SettingsFile,
    metrics: Option<PrometheusHandle>,
    seals: Seals,
    outside: Outside,
) -> anyhow::Result<Server> {
    let Runner { store, clock, authenticator, hub, .. } = runner;
    let options = wiring::http_options(settings);
    let sockets = Sockets { authenticator: authenticator.clone(), clock: clock.clone(), options: options.clone() };
    let live = LiveState::new(hub.clone(), Arc::new(sockets), live::MaxSockets::default());
    let (proxies, stopping) = (options.trusted_proxies.clone(), options.stopping.clone());
    let state = AppState::new(store.clone(), clock.clone(), authenticator.clone(), metrics, options, seals, outside);
    let live = Router::new().route("/api/v1/live", get(live::upgrade)).with_state(live);
    let router = http::router(state, live);
    let address = listener.local_addr().unwrap_or_else(|_| ([0; 4], 0).into());
    Server::start(listener, router, settings.network.limits(), proxies, store.background(), stopping)
        .map_err(|error| cannot_listen(address, &error))
}

/// Binds an address.
pub async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    anyhow!("cannot listen on {address}: {error}; is another server running? Choose another address with --listen")
}

/// Creates the admin and the users of the demo; returns a login link for each user without a password.
async fn first_people(
    store: &Store,
    clock: &SharedClock,
    admin_password: Option<String>,
    demo: bool,
) -> anyhow::Result<Vec<(Username, String)>> {
    let mut links = Vec::new();
    if let Some(secret) = auth::bootstrap(store, clock, admin_password).await? {
        links.extend("admin".parse().ok().map(|admin| (admin, secret)));
    }
    if demo {
        links.extend(auth::demo_users(store, clock).await?);
    }
    Ok(links)
}
