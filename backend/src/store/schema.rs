//! The schemas of both databases, and their migration to this version.
//!
//! In PostgreSQL, sqlx's migrator runs the migrations. In SQLite, rusqlite does, as for all statements; applied
//! migrations are recorded in sqlx's table with the same checksums.

use std::cmp::Ordering;
use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};
use sqlx::migrate::{MigrateError, Migration, Migrator};
use sqlx::postgres::PgConnection;

use super::db::{Db, Row, Sql};
use super::driver_error::DriverError;
use super::{Error, sqlite};

pub(super) static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
pub(super) static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");

/// sqlx's table of applied migrations.
pub(super) const APPLIED: &str =
    "CREATE TABLE IF NOT EXISTS _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, success BOOLEAN NOT NULL, checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL)";

/// Creates an SQLite file if it does not exist, and migrates it to this version in one transaction. If several servers
/// start together, the others wait and find it done. Blocks.
pub(super) fn migrate_sqlite(path: &Path) -> Result<(), MigrationError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(sqlite::BUSY)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(APPLIED)?;
    for migration in missing(&transaction)? {
        let begun = Instant::now();
        transaction.execute_batch(migration.sql.as_str())?;
        let nanoseconds = i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX);
        transaction.execute(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (?1, ?2, TRUE, ?3, ?4)",
            params![migration.version, migration.description, migration.checksum, nanoseconds],
        )?;
    }
    transaction.commit()?;
    Ok(())
}

/// The migrations that were not yet applied, in order. An error if an applied one is unknown or differs.
fn missing(transaction: &Transaction<'_>) -> Result<Vec<&'static Migration>, MigrationError> {
    let mut statement = transaction.prepare("SELECT version, checksum FROM _sqlx_migrations")?;
    let applied = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let applied: Vec<(i64, Vec<u8>)> = applied.collect::<Result<_, _>>()?;
    for (version, checksum) in &applied {
        let known = SQLITE.iter().find(|known| known.version == *version);
        let known = known.ok_or(MigrateError::VersionMissing(*version))?;
        if *known.checksum != **checksum {
            return Err(MigrateError::VersionMismatch(*version).into());
        }
    }
    Ok(SQLITE.iter().filter(|known| !applied.iter().any(|(version, _)| *version == known.version)).collect())
}

/// Migrates a PostgreSQL database to this version.
pub(super) async fn migrate_postgres(conn: &mut PgConnection) -> Result<(), Error> {
    POSTGRES.run(conn).await.map_err(|error| MigrationError::from(error).into())
}

/// Checks that the database has the schema of this version, for opening it without migrating. `what` names it in
/// errors.
pub(super) async fn check(db: &Db, what: &str) -> Result<(), Error> {
    let sql = Sql::new("SELECT MAX(version) FROM _sqlx_migrations");
    let found = db.read().await?.first(sql, Row::int_opt).await;
    let cannot = |error: DriverError| Error::cannot_open(what, &error, "check that it is a Countersign database");
    let found = found.map_err(cannot)?.flatten().unwrap_or(0);
    let migrator = if db.is_postgres() { &POSTGRES } else { &SQLITE };
    let wanted = migrator.iter().map(|migration| migration.version).max().unwrap_or(0);
    match found.cmp(&wanted) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(MigrationError::from(MigrateError::VersionMissing(found)).into()),
        Ordering::Less => Err(Error::Settings(format!(
            "the database ({what}) has the schema {found} of an older Countersign; this version reads {wanted}: use \
             that version, or a copy that a server of this version has migrated"
        ))),
    }
}

/// Why a database could not be migrated.
#[derive(Debug, thiserror::Error)]
pub(super) enum MigrationError {
    /// The database failed, or cannot be opened.
    #[error("{0}")]
    Driver(DriverError),
    /// The applied migrations are not those of this version.
    #[error("{0}")]
    Migrations(#[from] MigrateError),
}

impl From<rusqlite::Error> for MigrationError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Driver(error.into())
    }
}

impl From<MigrationError> for Error {
    fn from(error: MigrationError) -> Self {
        match error {
            MigrationError::Migrations(MigrateError::VersionMissing(version)) => Self::Settings(format!(
                "the database has the schema {version} of a newer Countersign: use that version, or restore a backup"
            )),
            other => Self::Settings(format!("migrating the database to this version: {other}")),
        }
    }
}
