//! How clients reach the server: the table `[network]` of the settings file, and its flags.

use std::num::NonZeroUsize;

use clap::Args;
use serde::Deserialize;

use crate::client_address::TrustedProxy;
use crate::server::Limits;

/// The flags of `countersign serve` for how clients reach the server.
#[derive(Debug, Clone, Default, Args)]
pub struct NetworkArgs {
    /// Trusted proxies (addresses, or networks such as 10.0.0.0/8), whose `Forwarded` or `X-Forwarded-For` is used
    #[arg(
        long = "trusted-proxy",
        env = "COUNTERSIGN_TRUSTED_PROXIES",
        hide_env_values = true,
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub trusted_proxies: Vec<TrustedProxy>,
}

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

    /// Applies what flags or the environment set.
    pub(super) fn overridden_by(self, args: NetworkArgs) -> Self {
        let NetworkArgs { trusted_proxies } = args;
        let trusted_proxies = if trusted_proxies.is_empty() { self.trusted_proxies } else { trusted_proxies };
        Self { trusted_proxies, ..self }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        network: NetworkArgs,
    }

    #[test]
    fn trusted_proxies_are_addresses_and_networks() {
        let file: NetworkSettings = toml::from_str("trusted_proxies = [\"10.0.0.0/8\", \"::1\"]").unwrap();
        assert_eq!(file.clone().overridden_by(NetworkArgs::default()).trusted_proxies.len(), 2);
        let flags =
            |value: &str| Command::try_parse_from(["", "--trusted-proxy", value]).map(|command| command.network);
        let set = file.overridden_by(flags("192.0.2.1,192.0.2.2,fd00::/8").ok().unwrap());
        assert_eq!(set.trusted_proxies.len(), 3);
        let error = flags("proxy.internal").err().unwrap().to_string();
        assert!(error.contains("`proxy.internal` is not an address or a network"), "{error}");
    }
}
