//! Small adapters between modules that do not know each other.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use axum::http::HeaderMap;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use shared::error::{Code, Problem};
use shared::log::Entry;
use tokio_util::sync::CancellationToken;

use super::masked::Masked;
use crate::agent::{self, ModelOptions, Models, Prices};
use crate::auth::{Authenticator, digest, oidc};
use crate::background::{Background, BackgroundTask};
use crate::clock::SharedClock;
use crate::config::SettingsFile;
use crate::flow::{Environment, Reach};
use crate::handler::{CallbackUrl, WebhookOptions, Webhooks};
use crate::http::{HttpOptions, origin_allowed};
use crate::live::{Authenticate, Observe};
use crate::notify::{NotificationSecrets, NotifierOptions};
use crate::rate_limit::Budgets;
use crate::standard_webhooks::{self, SigningKeys};
use crate::store::{Actor, Store};
use crate::tool::{self, SecretSettings, Secrets, ToolOptions, Tools};

/// The interval at which measurements are summed up.
const SUM_UP: Duration = Duration::from_secs(5);
/// The buckets of reviewers' response times, in seconds: from five seconds to a week.
const RESPONSE_SECONDS: &[f64] =
    &[5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 28_800.0, 86_400.0, 259_200.0, 604_800.0];

/// Installs the recorder of metrics for `/metrics`.
pub fn metrics() -> anyhow::Result<PrometheusHandle> {
    let response = Matcher::Full("countersign_review_response_seconds".to_owned());
    PrometheusBuilder::new()
        .set_buckets_for_metric(response, RESPONSE_SECONDS)
        .and_then(PrometheusBuilder::install_recorder)
        .context("metrics")
}

/// Sums up measurements at intervals. Otherwise, every sample would be kept until `/metrics` is read.
pub fn sum_up(metrics: PrometheusHandle, background: &Background) -> BackgroundTask {
    let work = async move {
        loop {
            tokio::time::sleep(SUM_UP).await;
            metrics.run_upkeep();
        }
    };
    background.run("metrics", work)
}

/// Returns the SHA-256 of the token with which programs may read `/metrics`. `None` if no token is set.
fn metrics_token() -> Option<[u8; 32]> {
    std::env::var("COUNTERSIGN_METRICS_TOKEN").ok().filter(|token| !token.is_empty()).map(|token| digest(token.trim()))
}

/// Reads the secrets of tools from the settings and the environment. Warns of secrets that are bound to no host.
pub fn secrets(settings: &BTreeMap<String, SecretSettings>) -> Secrets {
    let secrets = Secrets::from_env(std::env::vars(), settings);
    for secret in secrets.unbound() {
        tracing::warn!(secret, "every flow may send this secret to any host that it names; bind it to hosts");
    }
    secrets
}

/// Creates the models from the settings and the environment.
pub fn models(prices: &Prices, secrets: Secrets) -> Result<Masked, agent::Error> {
    let options = ModelOptions::from_env(|name| std::env::var(name).ok());
    Ok(Masked { models: Models::new(ModelOptions { prices: prices.clone(), ..options })?, secrets })
}

/// Creates the tools from the settings.
pub fn tools(settings: &SettingsFile, secrets: Secrets) -> Result<Tools, tool::Error> {
    let (allowed_hosts, mcp) = (settings.tools.allowed_hosts.clone(), settings.mcp.clone());
    Tools::new(ToolOptions { allowed_hosts, mcp, secrets })
}

/// Reads the secret that signs requests to webhooks of handlers and guardrails.
fn handler_secret() -> Option<String> {
    std::env::var("COUNTERSIGN_HANDLER_SECRET").ok().filter(|secrets| !secrets.trim().is_empty())
}

/// Determines which handlers can be asked, and which tools can be called. `chats`: people can be reached in a chat.
pub fn reach(settings: &SettingsFile, chats: bool) -> Reach {
    let webhooks = handler_secret().is_some_and(|secrets| SigningKeys::read(&secrets).is_some());
    Reach { terminal: false, webhooks, chats, mcp: settings.mcp.keys().cloned().collect() }
}

/// Creates the client for webhooks that decide. `server`: the URL at which they can answer later.
pub fn webhooks(allowed_hosts: &[String], server: Option<CallbackUrl>, clock: SharedClock) -> anyhow::Result<Webhooks> {
    let secrets = handler_secret();
    let keys = secrets.as_deref().and_then(SigningKeys::read);
    if secrets.is_some() && keys.is_none() {
        tracing::error!("COUNTERSIGN_HANDLER_SECRET is not {}: no webhook is called", standard_webhooks::SECRET);
    }
    let options = WebhookOptions { allowed_hosts: allowed_hosts.to_vec(), keys, server, clock };
    Webhooks::new(options).map_err(|error| no_client(&error))
}

pub fn no_client(error: &reqwest::Error) -> anyhow::Error {
    anyhow!("the HTTP client cannot be created: {error}")
}

pub fn http_options(settings: &SettingsFile) -> HttpOptions {
    HttpOptions {
        public_origins: settings.origins.clone().into(),
        trusted_proxies: settings.network.trusted_proxies.iter().copied().collect(),
        budgets: Arc::new(Budgets::new(settings.limits)),
        hosts: settings.network.hosts.clone().into(),
        metrics_token: metrics_token(),
        stopping: CancellationToken::new(),
    }
}

/// Returns the URL of the console that notifications and callbacks contain, without a slash at the end.
pub fn notified_url(settings: &SettingsFile, address: SocketAddr) -> String {
    let url = settings.notifications.url.clone().unwrap_or_else(|| public_url(settings, address));
    url.trim_end_matches('/').to_owned()
}

pub fn notifier(settings: &SettingsFile, address: SocketAddr, store: Store, clock: SharedClock) -> NotifierOptions {
    let url = notified_url(settings, address);
    let secrets = NotificationSecrets::from_env(std::env::vars());
    let (settings, first_wait) = (settings.notifications.clone(), Duration::from_secs(5));
    NotifierOptions { store, clock, settings, secrets, url, first_wait }
}

/// Returns the URL at which browsers reach the console.
fn public_url(settings: &SettingsFile, address: SocketAddr) -> String {
    settings.origins.first().cloned().unwrap_or_else(|| format!("http://{address}"))
}

/// Checks the settings of the identity provider. `None` if the settings have none.
pub fn provider(
    settings: &SettingsFile,
    address: SocketAddr,
) -> Result<Option<oidc::CheckedSettings>, oidc::SettingsError> {
    let public = public_url(settings, address);
    settings.oidc.clone().map(|oidc| oidc.check(&public, |name| std::env::var(name).ok())).transpose()
}

/// Returns what flows use of the environment: as `env`, the variables `COUNTERSIGN_ENV_NAME`, without the prefix; and
/// the values of secrets, to find them.
pub fn environment() -> Arc<Environment> {
    let env = std::env::vars()
        .filter_map(|(name, value)| Some((name.strip_prefix("COUNTERSIGN_ENV_")?.to_owned(), value.into())))
        .collect();
    let secrets = Secrets::from_env(std::env::vars(), &BTreeMap::new()).masker();
    Arc::new(Environment { env, secrets })
}

/// Empties the cache of the authenticator whenever the log reports that rights have changed.
pub struct ForgetRights(pub Authenticator);

impl Observe for ForgetRights {
    fn entry(&self, entry: &Entry) {
        if entry.event.rights_change().is_some() {
            self.0.invalidate();
        }
    }

    fn lost(&self) {
        self.0.invalidate();
    }
}

/// Admits sockets by the same authentication, origins and write budgets as HTTP requests.
pub struct Sockets {
    pub authenticator: Authenticator,
    pub clock: SharedClock,
    pub options: HttpOptions,
}

#[async_trait]
impl Authenticate for Sockets {
    fn is_origin_allowed(&self, headers: &HeaderMap) -> bool {
        origin_allowed(headers, &self.options.public_origins)
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

    fn admit(&self, actor: &Actor) -> Result<(), Problem> {
        self.options.budgets.admit(&actor.principal, 0, self.clock.uptime())
    }

    fn charge(&self, actor: &Actor, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.options.budgets.settle(&actor.principal, 0, bytes, self.clock.uptime());
    }
}
