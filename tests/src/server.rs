//! The real server, as its own process.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use shared::api::NewUser;
use shared::definition::Flow;
use shared::error::Problem;
use tempfile::TempDir;

use crate::port::Port;
use crate::postgres::Postgres;
use crate::process::Process;
use crate::transport::{self, Api, HttpTransport};
use crate::wait::{DEADLINE, eventually_within};

/// The password of every person in tests.
pub const PASSWORD: &str = "correct horse battery";

/// The kind of database that a server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// A file in the data folder.
    Sqlite,
    /// A new database of a PostgreSQL.
    Postgres,
}

/// How to start the server.
#[derive(Debug)]
pub struct Options {
    /// The kind of database, which is created for this server.
    pub database: Database,
    /// A folder of flow files to load.
    pub flows: Option<PathBuf>,
    /// Further arguments of `countersign serve`.
    pub arguments: Vec<String>,
    /// Further environment variables.
    pub environment: Vec<(String, String)>,
    /// Further tables of the settings file.
    pub settings: String,
    /// The most files that the server may have open; `None` for the limit of the test process.
    pub open_files: Option<u32>,
    /// Files to copy into the data folder before the start.
    pub files: Vec<PathBuf>,
}

impl Options {
    /// The default options with this kind of database.
    pub fn on(database: Database) -> Self {
        Self {
            database,
            flows: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            settings: String::new(),
            open_files: None,
            files: Vec::new(),
        }
    }

    /// Adds arguments of `countersign serve`.
    pub fn arguments<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.arguments.extend(arguments.map(str::to_owned));
        self
    }

    /// Adds a webhook that is notified of every `review.requested`.
    pub fn webhook(mut self, url: &str) -> Self {
        let allowed = "[notifications]\nallowed_hosts = [\"127.0.0.1\"]";
        let desk = format!("[notifications.webhooks.desk]\nurl = \"{url}\"\nevents = [\"review.requested\"]");
        self.settings = format!("{}{allowed}\n{desk}\n", self.settings);
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwRi7Ht2zVf0s=";
        self.environment.push(("COUNTERSIGN_WEBHOOK_SECRET_DESK".to_owned(), secret.to_owned()));
        self
    }
}

/// A server process, which is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    /// The server's address, as `http://127.0.0.1:PORT`. A restart keeps it.
    pub base: String,
    process: Option<Process>,
    options: Options,
    postgres: Option<Arc<Postgres>>,
    port: Port,
    data: TempDir,
}

impl Server {
    /// Starts a server with a new database, and waits until it is ready.
    pub async fn start(options: Options) -> Self {
        let postgres = match options.database {
            Database::Sqlite => None,
            Database::Postgres => Some(Arc::new(Postgres::start().await)),
        };
        Self::start_on(postgres, options).await
    }

    /// Starts another server, with default options, on the same PostgreSQL database, as on a second machine.
    pub async fn beside(&self) -> Self {
        assert!(self.postgres.is_some(), "only PostgreSQL has several servers");
        Self::start_on(self.postgres.clone(), Options::on(Database::Postgres)).await
    }

    /// Starts a server on an existing PostgreSQL database; `None` for SQLite in its data folder.
    pub async fn start_on(postgres: Option<Arc<Postgres>>, options: Options) -> Self {
        transport::install_tls();
        let data = tempfile::Builder::new().prefix("countersign-test-").tempdir().expect("a temporary folder");
        // Recorders and fake model servers are on loopback, which tools may only call if it is allowed.
        let settings = format!("[tools]\nallowed_hosts = [\"127.0.0.1\"]\n{}", options.settings);
        std::fs::write(data.path().join("countersign.toml"), settings).expect("the settings can be written");
        for file in &options.files {
            let name = file.file_name().expect("a file has a name");
            std::fs::copy(file, data.path().join(name)).expect("the file can be copied");
        }
        let key = data.path().join("seal.key");
        if let Some(postgres) = postgres.as_ref().filter(|_| !key.exists()) {
            std::fs::write(key, &postgres.seal_key).expect("the key can be written");
        }
        let mut server = Self { base: String::new(), process: None, options, postgres, port: Port::reserve(), data };
        server.restart().await;
        server
    }

    /// Kills the server at once (`SIGKILL`). Does nothing if it does not run.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Kills the server if it runs, starts it again on the same data and address, and waits until it is ready.
    pub async fn restart(&mut self) {
        self.kill();
        let listen = self.port.address().to_string();
        let limits = self.options.open_files.map(|limit| format!("ulimit -n {limit}; ")).unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limits}exec \"$0\" \"$@\"")]).arg(binary());
        command.args(["serve", "--listen", &listen, "--data"]).arg(self.data.path());
        if let Some(postgres) = &self.postgres {
            command.args(["--database", &postgres.url]);
        }
        if let Some(flows) = &self.options.flows {
            command.arg("--flows").arg(flows);
        }
        command.args(&self.options.arguments);
        command.env("COUNTERSIGN_ADMIN_PASSWORD", PASSWORD).env("COUNTERSIGN_DEMO_PAUSE", "0");
        command.envs(self.options.environment.iter().map(|(name, value)| (name, value)));
        let log = File::options().create(true).append(true).open(self.log()).expect("the log can be written");
        command.stdout(Stdio::piped()).stderr(log);
        let mut process = Process::spawn(command);
        let stdout = process.child.stdout.take().expect("stdout is a pipe");
        self.process = Some(process);
        let (send, receive) = mpsc::channel();
        // Reads to the end, so that a full pipe never blocks the server.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("listening on ") {
                    let _ = send.send(address.split_whitespace().next().unwrap_or_default().to_owned());
                }
            }
        });
        let address = tokio::task::spawn_blocking(move || receive.recv_timeout(DEADLINE)).await;
        let Ok(Ok(address)) = address else { panic!("the server did not start:\n{}", self.log_tail()) };
        self.base = address;
        let nobody = HttpTransport::new(&self.base);
        eventually_within(DEADLINE, "the server is ready", async || {
            let answer = nobody.raw(reqwest::Method::GET, "/readyz").send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
    }

    /// The id of the server's process. Panics if the server was killed.
    pub fn id(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    /// Sends the server a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let _ = Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).status();
    }

    /// Waits at most `within` until the server has ended by itself, and returns its exit status.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        let process = self.process.as_mut().expect("it runs");
        eventually_within(within, "the server has ended", async || process.child.try_wait().ok().flatten()).await
    }

    /// The server's data folder.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// The server's PostgreSQL database. Panics if the server uses SQLite.
    pub fn postgres(&self) -> &Postgres {
        self.postgres.as_deref().expect("it stands on PostgreSQL")
    }

    /// The server's resident memory, in bytes.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
        kilobytes * 1024
    }

    /// Logs in as the admin.
    pub async fn admin(&self) -> Api {
        self.login("admin").await.expect("the admin gets in")
    }

    /// Logs in with [`PASSWORD`].
    pub async fn login(&self, username: &str) -> Result<Api, Problem> {
        transport::login(&self.base, username, PASSWORD).await
    }

    /// A client without credentials.
    pub fn nobody(&self) -> Api {
        Api::new(HttpTransport::new(&self.base))
    }

    /// Creates a person with these roles, and logs in as that person.
    pub async fn person(&self, username: &str, roles: &[&str]) -> Api {
        let user = NewUser {
            username: username.parse().expect("a username"),
            password: PASSWORD.to_owned(),
            display_name: None,
            email: None,
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        };
        self.admin().await.create_user(&user).await.expect("a person can be added");
        self.login(username).await.expect("they get in")
    }

    /// Saves a flow as the admin. Its id is taken from the line `id: …` of the source.
    pub async fn save(&self, source: &str) {
        let id = source.lines().find_map(|line| line.strip_prefix("id: ")).expect("the source has an id");
        let saved = self.admin().await.save_flow(id.trim(), source).await;
        let saved = saved.unwrap_or_else(|problem| panic!("the flow cannot be saved: {problem}"));
        assert!(saved.definition.is_none_or(|flow: Box<Flow>| flow.id.as_str() == id.trim()));
    }

    /// The server's log since its first start.
    pub fn log_text(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// The last 40 lines of the server's log.
    pub fn log_tail(&self) -> String {
        let log = self.log_text();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// The path of a file in the data folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    fn log(&self) -> PathBuf {
        self.file("server.log")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            // Shown only if the test fails.
            let tail = self.log_tail();
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("--- server log\n{tail}\n").as_bytes());
        }
    }
}

/// The path of the server's binary: `COUNTERSIGN_BIN`, otherwise the one in the target folder of the tests.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("COUNTERSIGN_BIN") {
        return path.into();
    }
    // The binary of the tests is in `<target>/<profile>/deps`.
    let test = std::env::current_exe().expect("this program has a path");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("it is in a target folder");
    let path = profile.join("countersign");
    assert!(path.exists(), "{} is not there: `cargo build -p backend`, or set COUNTERSIGN_BIN", path.display());
    path
}
