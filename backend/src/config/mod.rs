//! The settings of the server: flags, then the environment, then the file.
//!
//! Contains everything that a flow must not contain: model providers, the commands of MCP servers, the hosts that tools
//! may reach, limits, prices, and who is notified of reviews.

mod network;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use shared::grant::DEFAULT_MAX_LIFETIME;
use shared::time::Span;

pub use network::NetworkSettings;

use crate::agent::Prices;
use crate::auth::{self, oidc::OidcSettings};
use crate::client_address::TrustedProxy;
use crate::files;
use crate::notify;
use crate::rate_limit::WriteLimits;
use crate::tool::{McpServer, SecretSettings};

/// The file that is read from the data folder if no other is named.
pub const FILE: &str = "countersign.toml";

/// The arguments of `countersign serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, env = "COUNTERSIGN_LISTEN", hide_env_values = true, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Where things are stored
    #[command(flatten)]
    pub storage: StorageArgs,
    /// Folder of flow files to load at the start; files whose content is already stored are skipped
    #[arg(long, env = "COUNTERSIGN_FLOWS", hide_env_values = true, value_name = "FOLDER")]
    pub flows: Option<PathBuf>,
    /// Additional origins (such as https://reviews.example.org) from which browsers may write
    #[arg(
        long = "origin",
        env = "COUNTERSIGN_ORIGINS",
        hide_env_values = true,
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    pub origins: Vec<String>,
    /// Trusted proxies (addresses, or networks such as 10.0.0.0/8), whose `Forwarded` or `X-Forwarded-For` is used
    #[arg(
        long = "trusted-proxy",
        env = "COUNTERSIGN_TRUSTED_PROXIES",
        hide_env_values = true,
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub trusted_proxies: Vec<TrustedProxy>,
    /// Number of model and tool calls that run at once [default: 16]
    #[arg(long, env = "COUNTERSIGN_WORKERS", hide_env_values = true, value_name = "NUMBER")]
    pub workers: Option<usize>,
    /// Longest time that a remembered approval may last, such as 30m or 8h [default: 24h]
    #[arg(long, env = "COUNTERSIGN_LONGEST_GRANT", hide_env_values = true, value_name = "TIME")]
    pub longest_grant: Option<Span>,
    /// Create two reviewers, ana and tom, and print a login link for each; on a loopback address only
    #[arg(long)]
    pub demo: bool,
}

/// Where data is stored; the same for every command that opens the database.
#[derive(Debug, Clone, Default, Args)]
pub struct StorageArgs {
    /// Database: sqlite:<file> or postgres://… [default: sqlite:countersign.db in the data folder]
    #[arg(long, env = "COUNTERSIGN_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database: Option<String>,
    /// Data folder, for everything that is stored in files [default: ./data]
    #[arg(long, env = "COUNTERSIGN_DATA", hide_env_values = true, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Private key that seals the audit log [default: seal.key in the data folder, created if missing]
    #[arg(long, env = "COUNTERSIGN_SEAL_KEY", hide_env_values = true, value_name = "FILE")]
    pub seal_key: Option<PathBuf>,
    /// File for the newest seal, which is replaced often [default: beside the key, as .head]
    #[arg(long, env = "COUNTERSIGN_SEAL_HEAD", hide_env_values = true, value_name = "FILE")]
    pub seal_head: Option<PathBuf>,
    /// Folder of archived runs; `audit verify` checks its files only with this flag [env: COUNTERSIGN_ARCHIVE]
    /// [default: archive in the data folder]
    #[arg(long, value_name = "FOLDER")]
    pub archive: Option<Option<PathBuf>>,
    /// Settings file [default: countersign.toml in the data folder, if it exists]
    #[arg(long, env = "COUNTERSIGN_CONFIG", hide_env_values = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The settings file. Every key is optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsFile {
    /// The address to listen on; `--listen` takes precedence.
    pub listen: Option<SocketAddr>,
    /// The database, `sqlite:<file>` or `postgres://…`; `--database` takes precedence.
    pub database: Option<String>,
    /// The file of the key that seals the audit log; `--seal-key` takes precedence.
    pub seal_key: Option<PathBuf>,
    /// The file for the newest seal; `--seal-head` takes precedence.
    pub seal_head: Option<PathBuf>,
    /// The folder of archived runs; `--archive` and `COUNTERSIGN_ARCHIVE` take precedence.
    pub archive: Option<PathBuf>,
    /// How long finished runs stay in the database before they are archived.
    pub retention: RetentionSettings,
    /// The folder of flow files to load at the start; `--flows` takes precedence.
    pub flows: Option<PathBuf>,
    /// Additional origins from which browsers may write; `--origin` takes precedence.
    pub origins: Vec<String>,
    /// How clients reach the server.
    pub network: NetworkSettings,
    /// How much each person may write.
    pub limits: WriteLimits,
    /// The number of concurrent model and tool calls, from 1 to 1024; `--workers` takes precedence.
    pub workers: Option<usize>,
    /// The longest time that a remembered approval may last; `--longest-grant` takes precedence.
    pub longest_grant: Option<Span>,
    /// The hosts that tools may reach.
    pub tools: ToolSettings,
    /// MCP servers, by the names that flows use.
    pub mcp: BTreeMap<String, McpServer>,
    /// The hosts that secrets may be sent to, by the name of the secret.
    pub secrets: BTreeMap<String, SecretSettings>,
    /// The prices of models' tokens.
    pub prices: Prices,
    /// The receivers of notifications about reviews.
    pub notifications: notify::NotificationSettings,
    /// The lifetimes of sessions and tokens, and who must have a second factor.
    pub logins: auth::LoginPolicy,
    /// The identity provider with which people sign in.
    pub oidc: Option<OidcSettings>,
}

/// The table `[retention]` of the settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionSettings {
    /// How long a finished run stays before it is archived; `None`: for ever. A flow may set its own (`retention`).
    pub runs: Option<Span>,
}

/// The table `[tools]` of the settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSettings {
    /// Private hosts (`host` or `host:port`) that `http` tools may reach; public ones are always allowed.
    pub allowed_hosts: Vec<String>,
}

/// The settings that are in effect.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The locations of stored data.
    pub storage: Storage,
    /// Whether the users of the demo are created.
    pub demo: bool,
    /// All other settings: the file, overridden by flags and the environment.
    pub file: SettingsFile,
}

/// The locations of stored data.
#[derive(Debug, Clone)]
pub struct Storage {
    /// The URL of the database: `sqlite:<file>` or `postgres://…`.
    pub database: String,
    /// The data folder.
    pub data: PathBuf,
    /// The key that seals the audit log.
    pub seal_key: PathBuf,
    /// The file for the newest seal of the audit log.
    pub seal_head: PathBuf,
    /// The folder of archived runs.
    pub archive: PathBuf,
}

/// The reason why the settings are not valid.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file at this path cannot be read.
    #[error("the settings file {0} cannot be read: {1}")]
    Unread(String, #[source] std::io::Error),
    /// The file at this path has an error, which names its line.
    #[error("the settings file {0}: {1}")]
    SettingsFile(String, #[source] Box<toml::de::Error>),
    /// The data folder at this path cannot be created.
    #[error("the data folder {0} cannot be created: {1}; choose another one with --data")]
    Data(String, #[source] std::io::Error),
    /// `--demo` was combined with an address that other machines can reach. It prints login links.
    #[error("--demo prints login links, so it needs a loopback address to listen on, not {0}")]
    DemoAddress(SocketAddr),
    /// `--archive` names no folder.
    #[error("--archive needs a folder here; only `audit verify` takes it without one")]
    ArchiveFolder,
    /// The number of workers is out of range.
    #[error("`workers` must be between 1 and 1024, not {0}")]
    Workers(usize),
}

impl StorageArgs {
    /// Returns the same arguments, but if `--archive` names no folder, with that of the environment, of the settings file
    /// or the default.
    #[must_use]
    pub fn with_usual_archive(self) -> Self {
        Self { archive: self.archive.flatten().map(Some), ..self }
    }
}

impl Storage {
    /// Resolves where data is stored. Creates nothing: a command may have been run in the wrong folder.
    pub fn resolve(args: &StorageArgs) -> Result<(Self, SettingsFile), Error> {
        if args.archive == Some(None) {
            return Err(Error::ArchiveFolder);
        }
        let data = args.data.clone().unwrap_or_else(|| PathBuf::from("data"));
        let file = SettingsFile::read(args.config.as_deref(), &data)?;
        let database = args.database.clone().or_else(|| file.database.clone());
        let database = database.unwrap_or_else(|| format!("sqlite:{}", data.join("countersign.db").display()));
        let seal_key = args.seal_key.clone().or_else(|| file.seal_key.clone()).unwrap_or_else(|| data.join("seal.key"));
        let seal_head = args.seal_head.clone().or_else(|| file.seal_head.clone());
        let seal_head = seal_head.unwrap_or_else(|| seal_key.with_extension("head"));
        let from_env =
            || std::env::var_os("COUNTERSIGN_ARCHIVE").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let archive = args.archive.clone().flatten().or_else(from_env).or_else(|| file.archive.clone());
        let archive = archive.unwrap_or_else(|| data.join("archive"));
        Ok((Self { database, data, seal_key, seal_head, archive }, file))
    }

    /// Creates the data folder if it is missing.
    pub fn make_folder(&self) -> Result<(), Error> {
        let failed = |error| Error::Data(self.data.display().to_string(), error);
        files::make_private_folder(&self.data).map_err(failed)
    }
}

impl Settings {
    /// Resolves each setting: flag or environment, then file, then default. Creates the data folder.
    pub fn resolve(args: ServeArgs) -> Result<Self, Error> {
        let (storage, file) = Storage::resolve(&args.storage)?;
        storage.make_folder()?;
        let network = file.network;
        let named = args.trusted_proxies;
        let trusted_proxies = if named.is_empty() { network.trusted_proxies } else { named };
        let file = SettingsFile {
            flows: args.flows.or(file.flows),
            origins: if args.origins.is_empty() { file.origins } else { args.origins },
            network: NetworkSettings { trusted_proxies, ..network },
            workers: args.workers.or(file.workers),
            longest_grant: args.longest_grant.or(file.longest_grant),
            ..file
        };
        file.workers()?;
        let listen = args.listen.or(file.listen).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)));
        if args.demo && !listen.ip().is_loopback() {
            return Err(Error::DemoAddress(listen));
        }
        Ok(Self { listen, storage, demo: args.demo, file })
    }
}

impl SettingsFile {
    /// Reads the settings file at this path; without a path, returns the defaults.
    pub fn load(path: Option<&Path>) -> Result<Self, Error> {
        path.map_or_else(|| Ok(Self::default()), |path| Self::read(Some(path), Path::new("")))
    }

    /// Returns the number of concurrent model and tool calls.
    pub fn workers(&self) -> Result<usize, Error> {
        let workers = self.workers.unwrap_or(16);
        if (1..=1024).contains(&workers) { Ok(workers) } else { Err(Error::Workers(workers)) }
    }

    /// Returns the longest time that a remembered approval may last.
    pub fn longest_grant(&self) -> Duration {
        self.longest_grant.map_or(DEFAULT_MAX_LIFETIME, |span| span.0)
    }

    fn read(named: Option<&Path>, data: &Path) -> Result<Self, Error> {
        let default = data.join(FILE);
        let path = match named {
            Some(path) => path,
            None if default.is_file() => &default,
            None => return Ok(Self::default()),
        };
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Error::Unread(shown(), error))?;
        toml::from_str(&text).map_err(|error| Error::SettingsFile(shown(), Box::new(error)))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn args(data: &Path) -> ServeArgs {
        ServeArgs {
            storage: StorageArgs { data: Some(data.to_owned()), ..StorageArgs::default() },
            ..ServeArgs::default()
        }
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join(FILE),
            "workers = 3\nlisten = \"127.0.0.1:9\"\n[mcp.files]\ncommand = \"x\"\n",
        )
        .unwrap();
        let settings = Settings::resolve(ServeArgs { workers: Some(5), ..args(folder.path()) }).unwrap();
        assert_eq!((settings.file.workers().unwrap(), settings.listen.port()), (5, 9));
        assert!(settings.file.mcp.contains_key("files"));
        assert!(settings.storage.database.starts_with("sqlite:"));
    }

    #[test]
    fn trusted_proxies_are_addresses_and_networks() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[network]\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\"]\n";
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let trusted = |args: ServeArgs| Settings::resolve(args).unwrap().file.network.trusted_proxies.len();
        assert_eq!(trusted(args(folder.path())), 2);
        let flags = |value: &str| Command::try_parse_from(["", "--trusted-proxy", value]).map(|command| command.serve);
        let ServeArgs { trusted_proxies, .. } = flags("192.0.2.1,192.0.2.2,fd00::/8").ok().unwrap();
        assert_eq!(trusted(ServeArgs { trusted_proxies, ..args(folder.path()) }), 3);
        let error = flags("proxy.internal").err().unwrap().to_string();
        assert!(error.contains("`proxy.internal` is not an address or a network"), "{error}");
    }

    #[test]
    fn an_archive_without_a_folder_is_refused_unless_the_usual_one_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let storage = StorageArgs { archive: Some(None), ..args(folder.path()).storage };
        let error = Settings::resolve(ServeArgs { storage: storage.clone(), ..ServeArgs::default() }).unwrap_err();
        assert!(error.to_string().contains("--archive needs a folder"), "{error}");
        assert!(Storage::resolve(&storage.with_usual_archive()).is_ok());
    }

    #[test]
    fn prices_are_by_model() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        std::fs::write(&file, "[prices.\"gpt-4.1-mini\"]\ninput = 0.25\noutput = 2\n").unwrap();
        let prices = Settings::resolve(args(folder.path())).unwrap().file.prices;
        assert!(prices.of("openai/gpt-4.1-mini").is_some() && prices.of("openai/gpt-4").is_none());
        std::fs::write(&file, "[prices.\"gpt-5\"]\ninput = -1\noutput = 2.0\n").unwrap();
        let error = Settings::resolve(args(folder.path())).unwrap_err().to_string();
        assert!(error.contains("gpt-5") && error.contains("0 or more"), "{error}");
    }

    #[test]
    fn an_mcp_server_may_be_given_more_time_to_start() {
        let read = |time: &str| {
            let folder = tempfile::tempdir().unwrap();
            let text = format!("[mcp.files]\ncommand = \"x\"\nstart_timeout = \"{time}\"\n");
            std::fs::write(folder.path().join(FILE), text).unwrap();
            Settings::resolve(args(folder.path()))
        };
        assert!(read("2m").unwrap().file.mcp.contains_key("files"));
        for wrong in ["0s", "11m", "soon"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("start_timeout (at most 10m)"), "{error}");
        }
    }

    #[test]
    fn a_mistake_in_the_file_names_file_and_key() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "wrokers = 3\n").unwrap();
        let error = Settings::resolve(args(folder.path())).unwrap_err().to_string();
        assert!(error.contains(FILE) && error.contains("line 1") && error.contains("`wrokers`"), "{error}");
    }

    #[test]
    fn the_demo_listens_on_loopback_only() {
        let folder = tempfile::tempdir().unwrap();
        let listen = Some(SocketAddr::from(([0, 0, 0, 0], 8080)));
        assert!(Settings::resolve(ServeArgs { listen, demo: true, ..args(folder.path()) }).is_err());
    }
}
