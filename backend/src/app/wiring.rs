//! Small adapters between modules that do not know of each other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::HeaderMap;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use shared::JsonMap;
use shared::error::{Code, Problem};
use shared::log::{Entry, EntryKind};
use tokio_util::sync::CancellationToken;

use super::Error;
use crate::agent::{self, Models, Prices};
use crate::auth::Authenticator;
use crate::background::Background;
use crate::clock::SharedClock;
use crate::config::{self, Settings};
use crate::http::{PublicOrigins, origin_allowed};
use crate::live::{Authenticate, Observe};
use crate::notify;
use crate::store::{Actor, Store};
use crate::tool::{self, McpServer, Secrets, Tools};

/// How often measurements are summed up.
const SUM_UP: Duration = Duration::from_secs(5);

/// What `/metrics` shows.
pub fn metrics() -> Result<PrometheusHandle, Error> {
    PrometheusBuilder::new().install_recorder().map_err(|error| Error::Metrics(error.to_string()))
}

/// Sums up what was measured, again and again until the stop: between two looks at `/metrics` every sample would be kept.
pub fn sum_up(metrics: PrometheusHandle, background: &Background, stopping: &CancellationToken) {
    let work = stopping.clone().run_until_cancelled_owned(async move {
        loop {
            tokio::time::sleep(SUM_UP).await;
            metrics.run_upkeep();
        }
    });
    tokio::spawn(background.watch("metrics", stopping, async {
        work.await;
    }));
}

/// Where models are and what they cost, by the settings and the environment.
pub fn models(prices: &Prices) -> Result<Models, agent::Error> {
    let options = agent::Options::from_env(|name| std::env::var(name).ok());
    Models::new(agent::Options { prices: prices.clone(), ..options })
}

/// What tools may do, by the settings and the environment.
pub fn tools(settings: &config::Tools, mcp: &BTreeMap<String, McpServer>) -> Result<Tools, tool::Error> {
    let secrets = Secrets::from_env(std::env::vars());
    Tools::new(tool::Options { allowed_hosts: settings.allowed_hosts.clone(), mcp: mcp.clone(), secrets })
}

/// Who outside is told, by the settings and the environment.
pub fn notifier(settings: &Settings, address: SocketAddr, store: Store, clock: SharedClock) -> notify::Options {
    let url = settings.origins.first().cloned().unwrap_or_else(|| format!("http://{address}"));
    let secrets = notify::Secrets::from_env(std::env::vars());
    notify::Options::new(store, clock, settings.notifications.clone(), secrets, url)
}

/// What flows see as `env`: the variables `COUNTERSIGN_ENV_NAME`, without the prefix.
pub fn flow_env() -> Arc<JsonMap> {
    let variables = std::env::vars();
    Arc::new(
        variables
            .filter_map(|(name, value)| Some((name.strip_prefix("COUNTERSIGN_ENV_")?.to_owned(), value.into())))
            .collect(),
    )
}

/// Makes the authenticator forget what it remembers whenever the log tells that rights have changed.
pub fn forget_rights(authenticator: Authenticator) -> Arc<dyn Observe> {
    Arc::new(ForgetRights(authenticator))
}

struct ForgetRights(Authenticator);

impl Observe for ForgetRights {
    fn entry(&self, entry: &Entry) {
        let rights = matches!(
            entry.event.kind,
            EntryKind::UserCreated
                | EntryKind::UserUpdated
                | EntryKind::DeputyNamed
                | EntryKind::DeputyRemoved
                | EntryKind::TokenCreated
                | EntryKind::TokenRevoked
                | EntryKind::SessionEnded
        );
        if rights {
            self.0.invalidate();
        }
    }

    fn lost(&self) {
        self.0.invalidate();
    }
}

/// Lets sockets in: the same people as everywhere, and from the same origins.
pub fn sockets(authenticator: Authenticator, origins: PublicOrigins) -> Arc<dyn Authenticate> {
    Arc::new(Sockets { authenticator, origins })
}

struct Sockets {
    authenticator: Authenticator,
    origins: PublicOrigins,
}

#[async_trait]
impl Authenticate for Sockets {
    fn is_origin_allowed(&self, headers: &HeaderMap) -> bool {
        origin_allowed(headers, &self.origins)
    }

    async fn authenticate(&self, headers: &HeaderMap) -> Result<Actor, Problem> {
        let identity = self.authenticator.authenticate(headers).await?;
        identity.may_go_on()?;
        Ok(identity.actor())
    }

    async fn refresh(&self, actor: &Actor) -> Result<Actor, Problem> {
        let credential = actor.credential.ok_or_else(|| Problem::new(Code::Unauthenticated))?;
        let identity = self.authenticator.look_up(credential).await?;
        identity.may_go_on()?;
        Ok(identity.actor())
    }
}
