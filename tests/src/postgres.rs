//! A PostgreSQL for one test: a fresh database on the server that the environment names, or a cluster of its own.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::process::Process;
use crate::wait::eventually;

/// A fresh database.
#[derive(Debug)]
pub struct Postgres {
    /// Where the server under test finds it.
    pub url: String,
    /// The key of the first server that was started on it, which every other one needs too.
    pub seal_key: OnceLock<Vec<u8>>,
    _cluster: Option<Cluster>,
}

#[derive(Debug)]
struct Cluster {
    // Dropped in this order: the process, then its files.
    _process: Process,
    _folder: TempDir,
}

impl Postgres {
    /// Makes one.
    pub async fn start() -> Self {
        let (server, cluster) = if let Ok(url) = std::env::var("COUNTERSIGN_TEST_POSTGRES") {
            (url, None)
        } else {
            let (url, cluster) = start_cluster();
            (url, Some(cluster))
        };
        let (server, query) = server.split_once('?').unwrap_or((&server, ""));
        let database = |name: &str| format!("{}/{name}?{query}", server.trim_end_matches('/'));
        let admin = database("postgres");
        let mut connection =
            eventually("PostgreSQL lets us in", async || PgConnection::connect(&admin).await.ok()).await;
        #[expect(clippy::disallowed_methods, reason = "the name of a database of a test may be anything")]
        let name = format!("countersign_{}", Uuid::now_v7().simple());
        let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::query(create).execute(&mut connection).await.expect("a database can be made");
        Self { url: database(&name).trim_end_matches('?').to_owned(), seal_key: OnceLock::new(), _cluster: cluster }
    }
}

fn start_cluster() -> (String, Cluster) {
    let folder = tempfile::Builder::new().prefix("countersign-pg-").tempdir().expect("a temporary folder");
    // `initdb` refuses to run as root: the cluster belongs to another user then, who must get into the folder.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("permissions can be set");
    let data = folder.path().join("data");
    let initdb = as_postgres("initdb")
        .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
        .arg(&data)
        .stdout(Stdio::null())
        .status();
    assert!(initdb.expect("initdb starts").success(), "initdb failed");
    let port = free_port();
    let mut postgres = as_postgres("postgres");
    postgres.arg("-D").arg(&data).arg("-k").arg(folder.path()).arg("-p").arg(port.to_string());
    // Nothing here is kept, so nothing has to reach the disk.
    for setting in ["listen_addresses=127.0.0.1", "fsync=off", "max_connections=200", "log_min_messages=fatal"] {
        postgres.arg("-c").arg(setting);
    }
    postgres.stdout(Stdio::null()).stderr(Stdio::null());
    let cluster = Cluster { _process: Process::spawn(postgres), _folder: folder };
    (format!("postgres://postgres@127.0.0.1:{port}"), cluster)
}

/// A program of PostgreSQL, as a user whom it accepts.
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

/// In the path, or in the newest version where Debian puts it.
fn find(program: &str) -> PathBuf {
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

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}
