//! A PostgreSQL for one test: a new database on the server that the environment names, or in a cluster of its own.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::port::Port;
use crate::process::Process;
use crate::wait::eventually;

/// A new database, with its cluster if the test started one.
#[derive(Debug)]
pub struct Postgres {
    /// The URL of the database, with its name.
    pub url: String,
    /// The key with which all servers on the database seal the audit log, as PKCS#8 in PEM.
    pub seal_key: String,
    cluster: Option<Cluster>,
}

#[derive(Debug)]
struct Cluster {
    // Dropped in this order: the process, then its files.
    process: Mutex<Process>,
    folder: TempDir,
    port: Port,
}

impl Postgres {
    /// Creates a database on the server that `COUNTERSIGN_TEST_POSTGRES` names, otherwise in a cluster of its own.
    pub async fn start() -> Self {
        match std::env::var("COUNTERSIGN_TEST_POSTGRES") {
            Ok(url) => Self::on(&url, None).await,
            Err(_) => Self::alone().await,
        }
    }

    /// Creates a database in a cluster of its own, which [`Self::crash`] needs.
    pub async fn alone() -> Self {
        let cluster = Cluster::start();
        Self::on(&cluster.url(), Some(cluster)).await
    }

    async fn on(server: &str, cluster: Option<Cluster>) -> Self {
        let (server, query) = server.split_once('?').unwrap_or((server, ""));
        let database = |name: &str| format!("{}/{name}?{query}", server.trim_end_matches('/'));
        let admin = database("postgres");
        let mut connection =
            eventually("PostgreSQL lets us in", async || PgConnection::connect(&admin).await.ok()).await;
        #[expect(clippy::disallowed_methods, reason = "the name of a database of a test may be anything")]
        let name = format!("countersign_{}", Uuid::now_v7().simple());
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::query(create).execute(&mut connection).await.expect("a database can be made");
        Self { url: database(&name).trim_end_matches('?').to_owned(), seal_key: seal_key(), cluster }
    }

    /// Connects to the database; waits until PostgreSQL accepts connections.
    pub async fn connect(&self) -> PgConnection {
        eventually("PostgreSQL lets us in", async || PgConnection::connect(&self.url).await.ok()).await
    }

    /// Connects to the database `postgres` of the same cluster.
    pub async fn connect_elsewhere(&self) -> PgConnection {
        let (before, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let (server, _) = before.rsplit_once('/').expect("a URL with a database");
        PgConnection::connect(&format!("{server}/postgres?{query}")).await.expect("PostgreSQL lets us in")
    }

    /// Ends the cluster as a crash does, and starts it again. Panics if the cluster is not the test's own.
    pub async fn crash(&self) {
        self.cluster.as_ref().expect("a cluster of its own").crash();
        self.connect().await;
    }

    /// Dumps the database with `pg_dump`.
    pub fn dump(&self) -> Vec<u8> {
        let output = Command::new(find("pg_dump")).arg(&self.url).output().expect("pg_dump starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Restores a dump file into the database.
    pub fn restore(&self, dump: &Path) {
        let mut psql = Command::new(find("psql"));
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"]).arg(dump).arg(&self.url).stdout(Stdio::null());
        assert!(psql.status().expect("psql starts").success(), "the dump was not restored");
    }
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("countersign-pg-").tempdir().expect("a temporary folder");
        // `initdb` refuses to run as root. The cluster then belongs to another user, who needs access to the folder.
        let everybody = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), everybody).expect("permissions can be set");
        let initdb = as_postgres("initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
            .arg(folder.path().join("data"))
            .stdout(Stdio::null())
            .status();
        assert!(initdb.expect("initdb starts").success(), "initdb failed");
        let port = Port::reserve();
        Self { process: Mutex::new(run_cluster(folder.path(), &port)), folder, port }
    }

    fn url(&self) -> String {
        format!("postgres://postgres@{}", self.port.address())
    }

    fn crash(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // Like `pg_ctl stop -m immediate`: nothing more is written, and the next start recovers.
        let quit = Command::new("kill").arg("-QUIT").arg(process.id().to_string()).status();
        assert!(quit.expect("kill starts").success(), "the cluster does not run");
        process.child.wait().expect("it ends");
        *process = run_cluster(self.folder.path(), &self.port);
    }
}

fn run_cluster(folder: &Path, port: &Port) -> Process {
    let mut postgres = as_postgres("postgres");
    postgres.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).arg("-p").arg(port.address().port().to_string());
    // No test crashes the machine, so nothing has to reach the disk.
    for setting in [
        "listen_addresses=127.0.0.1",
        "fsync=off",
        "max_connections=200",
        "max_prepared_transactions=2",
        "log_min_messages=fatal",
    ] {
        postgres.arg("-c").arg(setting);
    }
    postgres.stdout(Stdio::null()).stderr(Stdio::null());
    Process::spawn(postgres)
}

/// Returns a command for a program of PostgreSQL. Root runs it as `postgres`, since PostgreSQL does not run as root.
fn as_postgres(program: &str) -> Command {
    let mut command = Command::new(find(program));
    if id(&["-u"]) == Some(0) {
        let (Some(user), Some(group)) = (id(&["-u", "postgres"]), id(&["-g", "postgres"])) else {
            panic!("PostgreSQL does not run as root, and there is no user `postgres` to run it as")
        };
        command.uid(user).gid(group).current_dir("/");
    }
    command
}

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// Finds a program of PostgreSQL: in the folder that the environment names, else in the `PATH`, else in Debian's newest
/// version.
fn find(program: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("COUNTERSIGN_TEST_POSTGRES_BINARIES") {
        return Path::new(&folder).join(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(found) = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.exists()) {
        return found;
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        versions.map(|version| version.path().join("bin").join(program)).filter(|file| Path::exists(file)).collect();
    found.sort();
    found.pop().unwrap_or_else(|| panic!("{program} is not installed; set COUNTERSIGN_TEST_POSTGRES instead"))
}

/// Creates a key like `openssl genpkey -algorithm ed25519`: 32 random bytes behind the prefix of RFC 8410.
fn seal_key() -> String {
    let prefix = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
    let secret: [u8; 32] = rand::random();
    let der = BASE64.encode([&prefix[..], &secret].concat());
    format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n")
}
