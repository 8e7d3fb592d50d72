//! Databases for tests: each is a new file, or a new database on a temporary PostgreSQL server.
//!
//! `COUNTERSIGN_TEST_POSTGRES=postgres://…` names a server on which databases may be created. Without it, the first
//! test of a process starts a server from the installed programs of PostgreSQL, or fails if it cannot; that server ends
//! together with the process. With `COUNTERSIGN_TEST_POSTGRES=none`, tests of PostgreSQL do nothing.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use shared::time::Timestamp;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::StoreOptions;
use super::packed;
use super::schema::POSTGRES;
use crate::clock::{Clock, SharedClock, SystemClock};

/// A database that nobody else uses. An SQLite file is deleted when this is dropped.
#[derive(Debug)]
pub struct Database {
    /// The URL for [`StoreOptions::url`]: `sqlite:<file>` or `postgres://…`.
    pub url: String,
    folder: Option<PathBuf>,
}

impl Database {
    /// Creates a new SQLite file.
    pub fn sqlite() -> io::Result<Self> {
        let folder = new_folder("countersign-test")?;
        Ok(Self { url: format!("sqlite:{}", folder.join("test.db").display()), folder: Some(folder) })
    }

    /// Creates a new database in PostgreSQL, with the schema. `None` if tests of PostgreSQL are turned off.
    pub async fn postgres() -> io::Result<Option<Self>> {
        static CLUSTER: OnceLock<io::Result<Cluster>> = OnceLock::new();
        let (server, suffix) = match std::env::var("COUNTERSIGN_TEST_POSTGRES") {
            Ok(url) if url == "none" => return Ok(None),
            Ok(url) => {
                let (url, suffix) = url.split_once('?').map_or((url.as_str(), ""), |(url, query)| (url, query));
                (
                    url.trim_end_matches('/').to_owned(),
                    if suffix.is_empty() { String::new() } else { format!("?{suffix}") },
                )
            }
            Err(_) => match CLUSTER.get_or_init(Cluster::start) {
                Ok(cluster) => {
                    ("postgres://postgres@localhost".to_owned(), format!("?host={}", cluster.folder.display()))
                }
                Err(error) => return Err(io::Error::other(error.to_string())),
            },
        };
        let url = |name: &str| format!("{server}/{name}{suffix}");
        let mut conn = connect(&url("postgres")).await?;
        let template = template(&mut conn, url).await?;
        let name = format!("countersign_{}", random());
        run(&mut conn, format!("CREATE DATABASE {name} TEMPLATE {template}")).await?;
        conn.close().await.map_err(io::Error::other)?;
        Ok(Some(Self { url: url(&name), folder: None }))
    }

    /// Executes SQL directly, without the store. Returns how many rows it changed.
    pub async fn execute(&self, sql: &str) -> io::Result<u64> {
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let conn = rusqlite::Connection::open(path).map_err(io::Error::other)?;
            conn.execute_batch(sql).map_err(io::Error::other)?;
            return Ok(conn.changes());
        }
        let mut conn = PgConnection::connect(&self.url).await.map_err(io::Error::other)?;
        let done = sqlx::query(AssertSqlSafe(sql.to_owned())).execute(&mut conn).await;
        done.map(|done| done.rows_affected()).map_err(io::Error::other)
    }

    /// Returns the tables that contain a text in any column, compressed or not.
    pub async fn holding(&self, text: &str) -> io::Result<Vec<String>> {
        let mut holding = Vec::new();
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let conn = rusqlite::Connection::open(path).map_err(io::Error::other)?;
            let of_all = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'";
            let mut tables = conn.prepare(of_all).map_err(io::Error::other)?;
            let tables = tables.query_map([], |row| row.get::<_, String>(0)).map_err(io::Error::other)?;
            for table in tables.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)? {
                let mut all = conn.prepare(&format!("SELECT * FROM {table}")).map_err(io::Error::other)?;
                let columns = all.column_count();
                let mut rows = all.query([]).map_err(io::Error::other)?;
                let mut found = false;
                while let Some(row) = rows.next().map_err(io::Error::other)? {
                    for column in 0..columns {
                        let value = row.get_ref(column).map_err(io::Error::other)?;
                        let bytes = value.as_bytes().unwrap_or_default();
                        found |= bytes.windows(text.len()).any(|bytes| bytes == text.as_bytes());
                        found |= value.as_str().is_ok_and(|stored| is_packed_in(stored, text));
                    }
                }
                holding.extend(found.then_some(table));
            }
            return Ok(holding);
        }
        let mut conn = PgConnection::connect(&self.url).await.map_err(io::Error::other)?;
        let tables = sqlx::query_scalar("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'");
        let tables: Vec<String> = tables.fetch_all(&mut conn).await.map_err(io::Error::other)?;
        for table in tables {
            let sql =
                format!("SELECT count(*) FROM {table} AS t WHERE strpos(t::text, $1) > 0 OR strpos(t::text, $2) > 0");
            let count = sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql)).bind(text).bind(hex::encode(text));
            let plain = count.fetch_one(&mut conn).await.map_err(io::Error::other)? > 0;
            let sql = format!(
                "SELECT v.value FROM {table} AS t, jsonb_each_text(to_jsonb(t)) AS v WHERE strpos(v.value, $1) = 1"
            );
            let packed = sqlx::query_scalar::<_, String>(AssertSqlSafe(sql)).bind(packed::MARK);
            let packed = packed.fetch_all(&mut conn).await.map_err(io::Error::other)?;
            let found = plain || packed.iter().any(|stored| is_packed_in(stored, text));
            holding.extend(found.then_some(table));
        }
        Ok(holding)
    }

    /// The options for opening the database.
    pub fn options(&self, clock: SharedClock) -> StoreOptions {
        StoreOptions::new(self.url.clone(), clock)
    }
}

/// Whether a stored value is compressed and contains a text.
fn is_packed_in(stored: &str, text: &str) -> bool {
    stored.starts_with(packed::MARK) && packed::unpack(stored.to_owned()).is_ok_and(|json| json.contains(text))
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // Whatever is left is in the temporary folder.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Returns the name of a database with this version's schema. It is created once per server; copying it takes no longer
/// than creating an empty database.
async fn template(conn: &mut PgConnection, url: impl Fn(&str) -> String) -> io::Result<String> {
    let mut digest = Sha256::new();
    for migration in POSTGRES.iter() {
        digest.update(&migration.checksum);
    }
    let name = format!("countersign_template_{}", hex::encode(&digest.finalize()[..6]));
    run(conn, "SELECT pg_advisory_lock(1129270872)".to_owned()).await?;
    let exists = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1").bind(&name);
    if exists.fetch_optional(&mut *conn).await.map_err(io::Error::other)?.is_none() {
        // It has another name until it is complete, since this process may end at any moment.
        let draft = format!("countersign_draft_{}", random());
        run(conn, format!("CREATE DATABASE {draft}")).await?;
        let mut inside = connect(&url(&draft)).await?;
        POSTGRES.run(&mut inside).await.map_err(io::Error::other)?;
        inside.close().await.map_err(io::Error::other)?;
        // No connection may be open while it is copied, not even of PostgreSQL's own maintenance.
        run(conn, format!("ALTER DATABASE {draft} ALLOW_CONNECTIONS false")).await?;
        run(conn, format!("ALTER DATABASE {draft} RENAME TO {name}")).await?;
    }
    run(conn, "SELECT pg_advisory_unlock(1129270872)".to_owned()).await?;
    Ok(name)
}

async fn run(conn: &mut PgConnection, sql: String) -> io::Result<()> {
    sqlx::query(AssertSqlSafe(sql)).execute(conn).await.map(drop).map_err(io::Error::other)
}

/// Connects, and waits until the server responds.
async fn connect(url: &str) -> io::Result<PgConnection> {
    let mut last = None;
    for _ in 0..300 {
        match PgConnection::connect(url).await {
            Ok(conn) => return Ok(conn),
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(last.map_or_else(|| io::Error::other("PostgreSQL does not answer"), io::Error::other))
}

/// The PostgreSQL server of this process.
struct Cluster {
    folder: PathBuf,
    /// The shell that waits for the end of its standard input, which ends together with this process.
    _shell: Child,
}

/// Starts a server. When standard input ends, stops it and removes its folder.
const RUN: &str = r#"
"$1/initdb" -D "$2/data" -U postgres --auth=trust --no-sync --no-locale -E UTF8 >/dev/null 2>&1 || exit 1
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c full_page_writes=off \
    -c max_connections=200 </dev/null >"$2/log" 2>&1 &
server=$!
read -r _
kill -QUIT $server
wait $server
rm -rf "$2"
"#;

impl Cluster {
    fn start() -> io::Result<Self> {
        let binaries = binaries().ok_or_else(|| {
            io::Error::other(
                "PostgreSQL's programs are not installed: name a server in COUNTERSIGN_TEST_POSTGRES, or say `none`",
            )
        })?;
        let folder = new_folder("countersign-pg")?;
        let mut command = if is_root(&folder)? {
            // The server refuses to run as root.
            Command::new("chown").arg("postgres").arg(&folder).status()?;
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--", "sh"]);
            command
        } else {
            Command::new("sh")
        };
        let shell = command
            .args(["-c", RUN, "sh"])
            .arg(binaries)
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { folder, _shell: shell })
    }
}

/// The folder from `COUNTERSIGN_TEST_POSTGRES_BINARIES`, or that of the newest server on Debian.
fn binaries() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("COUNTERSIGN_TEST_POSTGRES_BINARIES") {
        return Some(folder.into());
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let with_server =
        versions.flatten().map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists());
    with_server.max()
}

fn new_folder(name: &str) -> io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("{name}-{}", random()));
    std::fs::create_dir_all(&folder)?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// Whether files that this process creates belong to root.
fn is_root(made: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(std::fs::metadata(made)?.uid() == 0)
}

fn random() -> String {
    hex::encode(&SystemClock.random()[..6])
}

/// A clock that only moves when a test moves it.
#[derive(Debug)]
pub struct ManualClock {
    /// The time, in microseconds since 1970.
    now: AtomicI64,
    /// The uptime, in microseconds.
    uptime: AtomicU64,
}

impl ManualClock {
    /// Creates a clock with the machine's current time.
    pub fn now() -> Arc<Self> {
        Arc::new(Self { now: AtomicI64::new(SystemClock.now().0), uptime: AtomicU64::new(0) })
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.now.fetch_add(i64::try_from(by.as_micros()).unwrap_or(0), Ordering::AcqRel);
        self.uptime.fetch_add(u64::try_from(by.as_micros()).unwrap_or(0), Ordering::AcqRel);
    }

    /// Sets the time back, as an admin may do; the uptime is not affected.
    pub fn set_back(&self, by: Duration) {
        self.now.fetch_sub(i64::try_from(by.as_micros()).unwrap_or(0), Ordering::AcqRel);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Acquire))
    }

    fn uptime(&self) -> Duration {
        Duration::from_micros(self.uptime.load(Ordering::Acquire))
    }

    fn random(&self) -> [u8; 16] {
        SystemClock.random()
    }
}
