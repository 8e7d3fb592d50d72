//! The provider's configuration with its keys: fetched at a sign-in, kept for an hour, and fetched again if a token
//! names an unknown key. It is fetched rarely, however many people sign in.

use std::sync::Arc;
use std::time::Duration;

use openidconnect::{DiscoveryError, IssuerUrl};
use shared::time::Timestamp;
use tokio::sync::Mutex;

use super::OidcError;
use super::client::{Configuration, HttpClient, HttpError};
use super::settings::is_private;

/// How long the configuration is used before it is fetched again.
const LIFE: Duration = Duration::from_hours(1);
/// The minimum interval between fetches for unknown keys, which anyone who can sign in could provoke.
const REFRESH: Duration = Duration::from_mins(1);
/// The wait after a failed fetch. Meanwhile, further fetches fail at once.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct ConfigurationCache(Mutex<CacheState>);

#[derive(Default)]
struct CacheState {
    held: Option<(Timestamp, Arc<Configuration>)>,
    /// The time of the last fetch for an unknown key.
    refreshed: Option<Timestamp>,
    failed: Option<(Timestamp, String)>,
}

type Fetched = Result<Arc<Configuration>, OidcError>;

impl ConfigurationCache {
    /// Returns the current configuration. Concurrent callers wait for one fetch.
    pub async fn get(&self, issuer: &IssuerUrl, http: &HttpClient, now: Timestamp) -> Fetched {
        let mut state = self.0.lock().await;
        match &state.held {
            Some((fetched, held)) if now.since(*fetched) < LIFE => Ok(Arc::clone(held)),
            _ => state.fetch(issuer, http, now).await,
        }
    }

    /// Fetches the configuration again because a token names an unknown key, unless that was done less than [`REFRESH`]
    /// ago.
    pub async fn refreshed(&self, issuer: &IssuerUrl, http: &HttpClient, now: Timestamp) -> Fetched {
        let mut state = self.0.lock().await;
        match (&state.held, state.refreshed) {
            (Some((_, held)), Some(refreshed)) if now.since(refreshed) < REFRESH => Ok(Arc::clone(held)),
            _ => {
                state.refreshed = Some(now);
                state.fetch(issuer, http, now).await
            }
        }
    }
}

impl CacheState {
    async fn fetch(&mut self, issuer: &IssuerUrl, http: &HttpClient, now: Timestamp) -> Fetched {
        if let Some((failed, why)) = &self.failed
            && now.since(*failed) < RETRY
        {
            return Err(OidcError::Unreachable(why.clone()));
        }
        match fetch(issuer, http).await {
            Ok(configuration) => {
                let configuration = Arc::new(configuration);
                self.held = Some((now, Arc::clone(&configuration)));
                self.failed = None;
                Ok(configuration)
            }
            Err(why) => {
                self.failed = Some((now, why.clone()));
                Err(OidcError::Unreachable(why))
            }
        }
    }
}

async fn fetch(issuer: &IssuerUrl, http: &HttpClient) -> Result<Configuration, String> {
    let configuration = Configuration::discover_async(issuer.clone(), http).await.map_err(|error| match error {
        // Without the body, which may contain anything.
        DiscoveryError::Response(status, _, why) => format!("{why} (status {status})"),
        other => causes::<DiscoveryError<HttpError>>(&other),
    })?;
    if !is_private(configuration.authorization_endpoint().url()) {
        return Err(format!("its sign-in page, {}, is not https", configuration.authorization_endpoint()));
    }
    Ok(configuration)
}

/// Formats an error with its causes: the innermost says what is wrong.
pub(super) fn causes<E: std::error::Error>(error: &E) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
