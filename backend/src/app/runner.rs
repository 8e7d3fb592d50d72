//! Runs flows, with or without a server: the store, the tail of its log, a worker, and the recheck of reviews when
//! users change.

use std::sync::Arc;

use crate::agent::Model;
use crate::auth::{self, Authenticator, oidc::Provider};
use crate::background::BackgroundTask;
use crate::clock::SharedClock;
use crate::config::{self, SettingsFile};
use crate::flow::guardrail::GuardrailPrograms;
use crate::handler::Programs;
use crate::live::{Hub, HubOptions, Observe};
use crate::store::{self, Store};
use crate::token_stream::Streams;
use crate::tool::Tool;
use crate::worker::{self, WorkerOptions};

use super::{recount, wiring};

/// The dependencies of a runner.
pub struct RunnerOptions {
    /// The database, opened for writing; it stays open when the runner stops.
    pub store: Store,
    /// The source of time and randomness.
    pub clock: SharedClock,
    /// The models, which carry out agents' turns.
    pub models: Arc<dyn Model>,
    /// The tools, which make calls.
    pub tools: Arc<dyn Tool>,
    /// The programs that are asked as handlers and by guardrails.
    pub programs: Arc<dyn Programs>,
    /// Observers that are told of every entry of the log.
    pub observers: Vec<Arc<dyn Observe>>,
    /// The maximum number of concurrent calls of models and tools.
    pub slots: usize,
    /// The policy for logins.
    pub logins: auth::LoginPolicy,
    /// The identity provider for single sign-on, if there is one.
    pub provider: Option<Arc<Provider>>,
}

impl RunnerOptions {
    /// Returns options with what the settings say of calls and logins, without observers and identity provider.
    pub fn new(
        settings: &SettingsFile,
        store: Store,
        clock: SharedClock,
        models: Arc<dyn Model>,
        tools: Arc<dyn Tool>,
        programs: Arc<dyn Programs>,
    ) -> Result<Self, config::Error> {
        let (slots, logins) = (settings.workers()?, settings.logins);
        Ok(Self { store, clock, models, tools, programs, observers: Vec::new(), slots, logins, provider: None })
    }
}

/// Runs flows until it is stopped.
pub struct Runner {
    /// The database, still open when [`Self::stop`] returns it.
    pub store: Store,
    /// The source of time and randomness.
    pub clock: SharedClock,
    /// Authenticates callers.
    pub authenticator: Authenticator,
    /// The hub, which tails the log.
    pub hub: Hub,
    worker: BackgroundTask,
    recount: BackgroundTask,
    tools: Arc<dyn Tool>,
}

impl Runner {
    /// Starts the hub and the worker.
    pub async fn start(options: RunnerOptions) -> Result<Self, store::Error> {
        let RunnerOptions { store, clock, models, tools, programs, observers, slots, logins, provider } = options;
        let streams = Streams::default();
        store.relay(streams.clone());
        let authenticator = Authenticator::new(store.clone(), clock.clone()).with(logins).with_provider(provider);
        let mut hub = HubOptions::new(store.clone(), clock.clone(), streams.clone());
        hub.observers.push(Arc::new(wiring::ForgetRights(authenticator.clone())));
        let (rights, recount) = recount::start(store.clone());
        hub.observers.push(rights);
        hub.observers.extend(observers);
        let hub = Hub::run(hub).await?;
        let mut worker = WorkerOptions::new(store.clone(), models, Arc::clone(&tools), streams, clock.clone());
        worker.slots = slots;
        let guardrails: Arc<dyn GuardrailPrograms> = programs.clone();
        store.ask_guardrails_by(guardrails);
        worker.programs = programs;
        let worker = worker::start(worker);
        Ok(Self { store, clock, authenticator, hub, worker, recount, tools })
    }

    /// Finishes or releases the work in progress, and ends the programs that tools started. The database stays open for
    /// requests that are still being answered.
    pub async fn stop(self) -> Store {
        self.hub.stop();
        tokio::join!(self.recount.stop(), self.worker.stop());
        self.tools.close().await;
        self.store
    }
}
