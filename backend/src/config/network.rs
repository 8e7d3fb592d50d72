//! How clients reach the server: the table `[network]` of the settings file.

use std::num::NonZeroUsize;

use serde::Deserialize;

use crate::client_address::TrustedProxy;
use crate::server::Limits;

/// The table of the settings file. Every key is optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// Proxies whose `Forwarded` and `X-Forwarded-For` name the client; `--trusted-proxy` takes precedence.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The maximum number of concurrent connections; default: as many as the limit of open files leaves room for.
    pub max_connections: Option<NonZeroUsize>,
    /// The maximum number of concurrent connections per address; default: half of all, and at most 1,000.
    pub max_connections_per_address: Option<NonZeroUsize>,
    /// Additional names of the server, checked against the `Host` of requests; `*`: any.
    pub hosts: Vec<String>,
}

impl NetworkSettings {
    /// Returns the limits of connections.
    pub fn limits(&self) -> Limits {
        let limits = self.max_connections.map_or_else(Limits::default, |all| Limits::of(all.get()));
        let each = self.max_connections_per_address.map_or(limits.connections_per_address, NonZeroUsize::get);
        Limits { connections_per_address: each, ..limits }
    }
}
