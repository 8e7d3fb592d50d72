//! The real server binary under measurement, with its data in a temporary folder.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;
use tempfile::TempDir;
use tests::Browser;

use crate::client::Connection;

/// The password of the admin, and of every user whom the bench adds.
pub const PASSWORD: &str = "for the bench only";

/// The number of times that memory is measured until it has settled, a quarter of a second apart.
const SETTLES: usize = 24;

/// The most sockets that one user opens, below the server's limit.
const SEATS: usize = 40;

/// The settings of a server: one token writes as much as the server can take.
const SETTINGS: &str = "[limits]\ndeveloper_writes_per_second = 0\ndeveloper_bytes_per_minute = 0\n";

/// A flow with one human node: the shortest way from launch to completed.
pub const FLOW: &str =
    r#"{"id": "ask", "nodes": {"ask": {"human": {"prompt": "Go on?", "options": [{"id": "yes", "label": "Yes"}]}}}}"#;

/// A running server, which is killed when this is dropped.
pub struct Server {
    child: Child,
    /// The address on which the server listens, as `127.0.0.1:PORT`.
    pub address: String,
    /// The header that authenticates the admin, with a token.
    pub credential: String,
    /// The time from the start of the process until the server was ready.
    pub ready_after: Duration,
}

/// The data of a server, which outlives its restarts.
pub struct Data {
    folder: TempDir,
    database: Option<String>,
    credential: Option<String>,
}

impl Data {
    /// A new data folder, with a new PostgreSQL database if `postgres` is the URL of an administrator, otherwise
    /// SQLite.
    pub async fn new(postgres: Option<&str>) -> Result<Self> {
        let database = match postgres {
            Some(admin) => Some(new_database(admin).await?),
            None => None,
        };
        Ok(Self { folder: tempfile::tempdir()?, database, credential: None })
    }

    /// The data of another server on the same database. The first server must have been started before.
    pub fn of_another_server(&self) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::copy(self.path().join("seal.key"), folder.path().join("seal.key"))?;
        Ok(Self { folder, database: self.database.clone(), credential: self.credential.clone() })
    }

    /// The URL of the PostgreSQL database. `None` on SQLite.
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

async fn new_database(admin: &str) -> Result<String> {
    use sqlx::Connection as _;
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("bench_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut connection = sqlx::PgConnection::connect(&format!("{admin}/postgres")).await?;
    for statement in [format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name}")] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await?;
    }
    Ok(format!("{admin}/{name}"))
}

impl Server {
    /// Starts the binary on this data, and waits until it is ready. The first time, creates a token and saves [`FLOW`].
    pub async fn start(binary: &Path, data: &mut Data) -> Result<Self> {
        std::fs::write(data.path().join("countersign.toml"), SETTINGS)?;
        let started = Instant::now();
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data.path());
        if let Some(database) = &data.database {
            command.args(["--database", database]);
        }
        let mut child = command
            .env("COUNTERSIGN_ADMIN_PASSWORD", PASSWORD)
            .env("COUNTERSIGN_LOG", "error")
            .env("COUNTERSIGN_DEMO_PAUSE", "0")
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} could not be started", binary.display()))?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut server = Self { child, address: String::new(), credential: String::new(), ready_after: Duration::ZERO };
        server.address = loop {
            let Some(line) = lines.next() else { bail!("the server ended before it listened") };
            if let Some(address) = line?.strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        Connection::open(&server.address, "x-nobody: 1").await?.get("/readyz").await?;
        server.ready_after = started.elapsed();
        if let Some(credential) = &data.credential {
            server.credential.clone_from(credential);
        } else {
            server.credential = server.make_token().await?;
            data.credential = Some(server.credential.clone());
            server.connect().await?.send("PUT", "/api/v1/flows/ask", "application/json", FLOW).await?;
        }
        Ok(server)
    }

    pub async fn connect(&self) -> Result<Connection> {
        Connection::open(&self.address, &self.credential).await
    }

    /// Kills the process (`SIGKILL`), and waits until it is gone.
    pub fn stop(&mut self) {
        // It need not stop in order, since everything acknowledged is on disk.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The server's anonymous resident memory, in bytes, without pages of files that the system could drop.
    pub fn memory(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("no RssAnon")?;
        let kilobytes: u64 = kilobytes.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }

    /// The time that processors have worked for the server, with a precision of 10 ms.
    pub fn processor_time(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the process, in parentheses, may contain anything.
        let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let ticks: u64 = ticks.sum::<Result<_, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }

    /// The least [`Self::memory`] within the next six seconds: what launches and logins use is freed a little later.
    pub async fn settled_memory(&self) -> Result<u64> {
        let mut least = self.memory()?;
        for _ in 0..SETTLES {
            tokio::time::sleep(Duration::from_millis(250)).await;
            least = least.min(self.memory()?);
        }
        Ok(least)
    }

    /// Creates reviewers, and returns a header for each of `sockets` sockets. Each reviewer's is used at most [`SEATS`]
    /// times.
    pub async fn seats(&self, sockets: usize) -> Result<Vec<String>> {
        let mut admin = self.connect().await?;
        let mut credentials = Vec::with_capacity(sockets);
        for number in 0..sockets.div_ceil(SEATS) {
            let username = format!("reviewer{number}");
            let user = json!({"username": username, "password": PASSWORD, "roles": ["reviewer"]});
            admin.post("/api/v1/users", &user).await?;
            let credential = self.log_in(&username).await?;
            credentials.extend(std::iter::repeat_n(credential, SEATS.min(sockets - credentials.len())));
        }
        Ok(credentials)
    }

    /// Logs in with [`PASSWORD`], and returns the header with the session's cookie.
    pub async fn log_in(&self, username: &str) -> Result<String> {
        let mut connection = Connection::open(&self.address, "x-nobody: 1").await?;
        connection.post("/api/v1/session", &json!({"username": username, "password": PASSWORD})).await?;
        Ok(format!("cookie: {}", connection.cookie.take().context("no session")?))
    }

    /// Logs the admin in to the console in this browser, before its first page.
    pub async fn log_in_to_console(&self, browser: &Browser) -> Result<()> {
        let header = self.log_in("admin").await?;
        let (name, value) =
            header.strip_prefix("cookie: ").and_then(|cookie| cookie.split_once('=')).context("no cookie")?;
        let url = format!("http://{}", self.address);
        let cookie = json!({ "name": name, "value": value, "url": url, "httpOnly": true });
        browser.driver.cdp().send_raw("Network.setCookie", cookie).await?;
        Ok(())
    }

    async fn make_token(&self) -> Result<String> {
        let mut connection = Connection::open(&self.address, &self.log_in("admin").await?).await?;
        let token = connection.post("/api/v1/tokens", &json!({"name": "bench", "roles": ["admin"]})).await?;
        let secret = token["secret"].as_str().context("no secret")?;
        Ok(format!("authorization: Bearer {secret}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
