//! Runs flows, with or without a server: the store, the tail of its log, a worker, and the recount of votes when users
//! change.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::agent::Model;
use crate::auth::{self, Authenticator, oidc::Provider};
use crate::background::BackgroundTask;
use crate::clock::SharedClock;
use crate::flow::guardrail::GuardrailPrograms;
use crate::handler::Programs;
use crate::live::{self, Hub, Observe};
use crate::store::{self, Store};
use crate::token_stream::Streams;
use crate::tool::Tool;
use crate::worker;

use super::{recount, wiring};

/// What running flows needs.
pub struct RunnerOptions {
    /// The database, opened for writing; it stays open when the runner stops.
    pub store: Store,
    /// Time and randomness.
    pub clock: SharedClock,
    /// What takes agents' turns.
    pub models: Arc<dyn Model>,
    /// What makes tool calls.
    pub tools: Arc<dyn Tool>,
    /// What asks handlers that are programs.
    pub programs: Arc<dyn Programs>,
    /// Told of every entry of the log.
    pub observers: Vec<Arc<dyn Observe>>,
    /// How many calls of models and tools run at once.
    pub slots: usize,
    /// How people log in.
    pub logins: auth::LoginPolicy,
    /// The identity provider, where there is one.
    pub provider: Option<Arc<Provider>>,
}

impl RunnerOptions {
    /// The usual: 16 calls at once, no observers.
    pub fn new(
        store: Store,
        clock: SharedClock,
        models: Arc<dyn Model>,
        tools: Arc<dyn Tool>,
        programs: Arc<dyn Programs>,
    ) -> Self {
        let (observers, logins) = (Vec::new(), auth::LoginPolicy::default());
        Self { store, clock, models, tools, programs, observers, slots: 16, logins, provider: None }
    }
}

/// Runs flows until it is stopped.
pub struct Runner {
    /// The database of the options, which [`Self::stop`] gives back, still open.
    pub store: Store,
    /// Time and randomness.
    pub clock: SharedClock,
    /// Who is calling.
    pub authenticator: Authenticator,
    /// The tail of the log.
    pub hub: live::HubHandle,
    worker: BackgroundTask,
    tools: Arc<dyn Tool>,
    stopping: CancellationToken,
}

impl Runner {
    /// Starts the tail of the log, and the worker.
    pub async fn start(options: RunnerOptions) -> Result<Self, store::Error> {
        let RunnerOptions { store, clock, models, tools, programs, observers, slots, logins, provider } = options;
        let streams = Streams::default();
        store.relay(streams.clone());
        let authenticator = Authenticator::new(store.clone(), clock.clone()).with(logins).with_provider(provider);
        let mut hub = live::Options::new(store.clone(), clock.clone(), streams.clone());
        hub.observers.push(Arc::new(wiring::ForgetRights(authenticator.clone())));
        let stopping = CancellationToken::new();
        hub.observers.push(recount::start(store.clone(), &stopping));
        hub.observers.extend(observers);
        let hub = Hub::run(hub).await?;
        let mut worker = worker::Options::new(store.clone(), models, Arc::clone(&tools), streams, clock.clone());
        worker.slots = slots;
        let guardrails: Arc<dyn GuardrailPrograms> = programs.clone();
        store.ask_guardrails_by(guardrails);
        worker.programs = programs;
        let worker = worker::start(worker);
        Ok(Self { store, clock, authenticator, hub, worker, tools, stopping })
    }

    /// Finishes or gives back what is under way, and ends the programs that tools started. The database stays open, for requests that are still answered.
    pub async fn stop(self) -> Store {
        self.stopping.cancel();
        self.hub.stop();
        self.worker.stop().await;
        self.tools.close().await;
        self.store
    }
}
