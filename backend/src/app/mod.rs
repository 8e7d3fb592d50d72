//! The whole: opens the store, lets the first people in, loads flows, and starts the hub, the worker and the server.
//! The only module that sees every other.

mod flows;
mod wiring;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt as _;
use shared::id::Username;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::{self, Models};
use crate::audit::{self, SealKey, Sealer, Seals};
use crate::auth::{self, Authenticator};
use crate::clock::{SharedClock, SystemClock};
use crate::config::{Settings, Storage};
use crate::http::{self, AppState, PublicOrigins};
use crate::live::{self, Hub, LiveState};
use crate::notify::{self, Notifier};
use crate::store::{self, Store};
use crate::stream::Streams;
use crate::tool::{self, Tools};
use crate::worker::{self, Worker};

/// How many connections read from the database.
const READERS: u32 = 8;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; is another server running? Choose another address with --listen")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// Why.
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
    /// Nobody can be told.
    #[error(transparent)]
    Notifications(#[from] notify::Error),
    /// The folder of flows cannot be read.
    #[error("the flows in {folder} cannot be read: {source}")]
    Flows {
        /// Which one.
        folder: String,
        /// Why.
        source: std::io::Error,
    },
    /// The audit cannot be sealed.
    #[error(transparent)]
    Seal(#[from] audit::KeyError),
    /// Metrics cannot be kept.
    #[error("metrics: {0}")]
    Metrics(String),
}

/// A running server.
pub struct App {
    address: SocketAddr,
    links: Vec<(Username, String)>,
    store: Store,
    hub: live::Handle,
    worker: worker::Handle,
    notifier: notify::Handle,
    sealer: audit::Handle,
    stopping: CancellationToken,
    server: JoinHandle<std::io::Result<()>>,
}

/// The machine's clock.
pub fn system_clock() -> SharedClock {
    Arc::new(SystemClock)
}

/// Opens the database alone, for commands that need no more.
pub async fn open_store(storage: &Storage, clock: SharedClock) -> Result<Store, store::Error> {
    Store::open(store::Options { url: storage.database.clone(), clock, readers: READERS, env: wiring::flow_env() })
        .await
}

impl App {
    /// Starts everything. The address is bound first, so that two servers are told apart before anything is written.
    pub async fn start(settings: Settings, admin_password: Option<String>) -> Result<Self, Error> {
        let stopping = CancellationToken::new();
        let metrics = wiring::metrics()?;
        wiring::sum_up(metrics.clone(), stopping.clone());
        let listen = |source| Error::Listen { address: settings.listen, source };
        let listener = TcpListener::bind(settings.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let clock = system_clock();
        let store = open_store(&settings.storage, clock.clone()).await?;
        let (seal_key, trusted) = SealKey::open(&settings.storage.seal_key, &*clock)?;
        let links = first_people(&store, &clock, admin_password, settings.demo).await?;
        if let Some(folder) = &settings.flows {
            load_flows(&store, folder).await?;
        }

        let seals = Seals::new(trusted);
        let sealer = Sealer::new(store.clone(), seal_key, seals.clone(), clock.clone()).run();
        let streams = Streams::default();
        let authenticator = Authenticator::new(store.clone(), clock.clone());
        let mut hub = live::Options::new(store.clone(), clock.clone(), streams.clone());
        hub.observers.push(wiring::forget_rights(authenticator.clone()));
        let hub = Hub::run(hub).await?;
        let models = Arc::new(Models::new(wiring::models(&settings))?);
        let tools = Arc::new(Tools::new(wiring::tools(&settings))?);
        let mut options = worker::Options::new(store.clone(), models, tools, streams, clock.clone());
        options.slots = settings.workers;
        let worker = Worker::new(options).run();
        let notifier = Notifier::run(wiring::notifier(&settings, address, store.clone(), clock.clone())).await?;

        let origins = PublicOrigins::from(settings.origins);
        let sockets = wiring::sockets(authenticator.clone(), origins.clone());
        let live = LiveState::new(hub.clone(), sockets, live::Limits::default());
        let state = AppState::new(store.clone(), clock, authenticator, Some(metrics), origins, seals);
        let router =
            Router::new().route("/api/v1/live", get(live::upgrade)).with_state(live).merge(http::router(state));
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let server = tokio::spawn(
            axum::serve(listener.tap_io(without_delay), service)
                .with_graceful_shutdown(stopping.clone().cancelled_owned())
                .into_future(),
        );
        tracing::info!(%address, "ready");
        Ok(Self { address, links, store, hub, worker, notifier, sealer, stopping, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who may log in with which one-time secret.
    pub fn links(&self) -> &[(Username, String)] {
        &self.links
    }

    /// Stops taking requests, finishes or gives back what is under way, and closes the database.
    pub async fn stop(self) {
        self.stopping.cancel();
        self.hub.stop();
        self.worker.shutdown().await;
        self.notifier.shutdown().await;
        if let Ok(Err(error)) = self.server.await {
            tracing::warn!(%error, "the server did not stop cleanly");
        }
        self.sealer.stop().await;
        self.store.close().await;
    }
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

/// Every frame and answer is written whole: nothing is gained by waiting for more.
fn without_delay(stream: &mut TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
}

async fn load_flows(store: &Store, folder: &Path) -> Result<(), Error> {
    flows::load(store, folder).await.map_err(|source| Error::Flows { folder: folder.display().to_string(), source })
}
