//! Opens a database: checks its settings, and reads the id of its log. The schema is in `schema`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _};

use super::cursor::Log;
use super::db::{Conn, Db, Row, Sql};
use super::driver_error::{ACQUIRE, DriverError};
use super::postgres::is_alive;
use super::schema::{self, MigrationError};
use super::sqlite::{self, Pool, PoolUse};
use super::{Error, OpenMode, StoreOptions};
use crate::files;

/// The number of concurrent write transactions in PostgreSQL. More would make the groups smaller, and cost more than
/// they gain.
pub(super) const WRITERS: u32 = 3;
/// The time limit for a statement or an idle transaction in PostgreSQL, in milliseconds: the tail of the log waits for
/// the oldest transaction.
const TIME_LIMIT_MS: &str = "15000";
/// The time limit for a statement of a writer in PostgreSQL, in milliseconds: shorter than that for a whole transaction.
const WRITE_LIMIT_MS: &str = "8000";
/// How long an unused connection is assumed to be alive. A check costs as much as a read.
const TRUSTED: Duration = Duration::from_secs(1);

/// Opens the database, and migrates it to this version if it is opened for writing.
pub(super) async fn open(options: &StoreOptions) -> Result<(Db, Log), Error> {
    let db = if options.url.starts_with("sqlite:") {
        open_sqlite(options).await?
    } else if options.url.starts_with("postgres:") || options.url.starts_with("postgresql:") {
        postgres(options).await?
    } else {
        return Err(Error::Settings(
            "the database must be sqlite:<path> or postgres://…; set --database or COUNTERSIGN_DATABASE_URL".to_owned(),
        ));
    };
    let generation = match options.access {
        OpenMode::Write => make_generation(&db, options).await?,
        OpenMode::Read => generation(&mut db.read().await?).await?,
    };
    let database = db.kind();
    Ok((db, Log { database, generation }))
}

async fn open_sqlite(options: &StoreOptions) -> Result<Db, Error> {
    if options.url.contains(":memory:") {
        return Err(Error::Settings(
            "a database in memory is not durable: use a file, as in sqlite:countersign.db".into(),
        ));
    }
    let path = sqlite::path_of(&options.url)
        .map_err(|error| Error::Settings(format!("the database URL {}: {error}", options.url)))?;
    if options.access == OpenMode::Read {
        let immutable = sqlite::cannot_be_written(&path).map_err(Error::Settings)?;
        let (of, most) = if immutable { (PoolUse::Immutable, 1) } else { (PoolUse::Reading, options.readers) };
        let db = Db::Sqlite { readers: Pool::new(&path, of, most), writer: Pool::new(&path, PoolUse::Writing, 1) };
        schema::check(&db, &options.url).await?;
        return Ok(db);
    }
    let cannot = |error: &DriverError| Error::cannot_open(&options.url, error, "check that the server may write there");
    make_private(&path);
    let file = path.clone();
    let migrated = tokio::task::spawn_blocking(move || schema::migrate_sqlite(&file)).await;
    match migrated.map_err(|_| DriverError::Interrupted)? {
        Err(MigrationError::Driver(error)) => return Err(cannot(&error)),
        other => other?,
    }
    let readers = Pool::new(&path, PoolUse::Reading, options.readers.max(2));
    let db = Db::Sqlite { readers, writer: Pool::new(&path, PoolUse::Writing, 1) };
    // Checked on the connection that writes, where it matters.
    let mut conn = db.write_on_this_thread().await.map_err(|error| cannot(&error))?;
    for (pragma, wanted) in [("journal_mode", "wal"), ("synchronous", "2"), ("foreign_keys", "1")] {
        // The types of the values differ.
        let sql = Sql::new("SELECT CAST(").push(pragma).push(" AS TEXT) FROM pragma_").push(pragma);
        let found = conn.first(sql, Row::text).await?.unwrap_or_default();
        if found != wanted {
            return Err(Error::Settings(format!(
                "SQLite's {pragma} is {found:?} but {wanted:?} is required; is the file on a network file system?"
            )));
        }
    }
    conn.rollback().await?;
    Ok(db)
}

/// Restricts the mode of the file; SQLite creates its other files with the same mode. If this fails, opening the file
/// reports why.
fn make_private(file: &Path) {
    if let Err(error) = files::make_private(file) {
        tracing::debug!(%error, path = %file.display(), "the mode of the database could not be set");
    }
    for suffix in ["-wal", "-shm"] {
        let mut further = file.as_os_str().to_owned();
        further.push(suffix);
        let further = PathBuf::from(further);
        if let Err(error) = files::narrow(&further) {
            tracing::warn!(%error, path = %further.display(), "the mode of a file of the database could not be set");
        }
    }
}

async fn postgres(options: &StoreOptions) -> Result<Db, Error> {
    let unlimited = PgConnectOptions::from_str(&options.url)
        .map_err(|error| Error::Settings(format!("the database URL: {error}")))?
        .application_name("countersign")
        .statement_cache_capacity(512)
        // No query here runs long enough to gain from JIT compilation, which takes longer than most queries.
        .options([("synchronous_commit", "on"), ("jit", "off")]);
    let connect = unlimited
        .clone()
        .options([("statement_timeout", TIME_LIMIT_MS), ("idle_in_transaction_session_timeout", TIME_LIMIT_MS)]);
    // Writers only look up rows by their keys. A plan for the values of each statement would take longer than the
    // statement, and as long as a table is small or was not analysed, a plan would read the whole of it. A statement
    // without a transaction around it ends before its client gives it up, and is isolated like those in one.
    let keyed = connect.clone().options([
        ("plan_cache_mode", "force_generic_plan"),
        ("enable_seqscan", "off"),
        ("statement_timeout", WRITE_LIMIT_MS),
        ("default_transaction_isolation", "read committed"),
    ]);
    let pool = PgPoolOptions::new()
        .acquire_timeout(ACQUIRE)
        .test_before_acquire(false)
        .before_acquire(|conn, about| Box::pin(is_usable(conn, about.idle_for)));
    let writers = pool
        .clone()
        // Two more than the writers, for claims and heartbeats.
        .max_connections(WRITERS + 2)
        .connect_with(keyed)
        .await
        .map_err(|error| {
            let place = format!("{}:{}", connect.get_host(), connect.get_port());
            Error::cannot_open(
                &format!("PostgreSQL at {place}"),
                &error.into(),
                "check that it runs and that the database exists",
            )
        })?;
    // A migration may take as long as it needs, so it has its own connection without time limits.
    if options.access == OpenMode::Write {
        let mut first = unlimited.connect().await?;
        schema::migrate_postgres(&mut first).await?;
        first.close().await?;
    }
    let readers = pool.max_connections(options.readers.max(2)).connect_with(connect).await?;
    let db = Db::Postgres { readers, writers };
    if options.access == OpenMode::Read {
        schema::check(&db, "PostgreSQL").await?;
    }
    Ok(db)
}

/// Whether a connection can be used. One that was idle for a while may be lost, and is checked.
async fn is_usable(conn: &mut PgConnection, idle_for: Duration) -> Result<bool, sqlx::Error> {
    if idle_for < TRUSTED { Ok(true) } else { is_alive(conn).await }
}

/// Returns the generation of the log, which is created once with the database.
async fn make_generation(db: &Db, options: &StoreOptions) -> Result<String, Error> {
    let made = hex::encode(&options.clock.random()[..8]);
    let sql =
        Sql::new("INSERT INTO meta (one, generation) VALUES (1, ").bind(made).push(") ON CONFLICT (one) DO NOTHING");
    let make = async move |mut conn: Conn| {
        conn.execute(sql).await?;
        let generation = generation(&mut conn).await?;
        conn.commit().await?;
        Ok(generation)
    };
    db.write(make).await
}

async fn generation(conn: &mut Conn) -> Result<String, Error> {
    let generation = conn.first(Sql::new("SELECT generation FROM meta"), Row::text).await?;
    generation.ok_or_else(|| Error::Stored("the table meta is empty".to_owned()))
}
