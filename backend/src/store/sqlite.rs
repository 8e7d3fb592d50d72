//! SQLite's connections.
//!
//! SQLite is a library, and a statement takes microseconds: the writer has its own thread and calls it there. A driver
//! that passes each statement to another thread would spend a third of a commit on wake-ups. Other callers must not
//! block the threads of the runtime, and make their calls on a thread for blocking work: those that make several calls
//! stay there for all of them (`Db::read_as_one`), for the same reason.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::types::{FromSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OpenFlags, Statement, ToSql};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::driver_error::{ACQUIRE, DriverError};
use super::interrupt::{Caller, Interrupt};
use super::sql::{Arg, Bound, GroupKey, Sql};

/// How long a statement waits while another process writes to the file.
pub(super) const BUSY: Duration = Duration::from_secs(10);
/// The number of statements that stay prepared on a connection.
const STATEMENTS: usize = 512;

/// The use of a pool's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PoolUse {
    /// Connections that cannot change anything.
    Reading,
    /// Connections to a file that nobody can change: it is read without locks and without a write-ahead log.
    Immutable,
    /// The one connection that writes.
    Writing,
}

/// Where the statements of a session run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunsOn {
    /// On the calling thread, which may block.
    ThisThread,
    BlockingThread,
}

/// A pool of connections to one file, opened on demand. Cheap to clone.
#[derive(Clone)]
pub(super) struct Pool(Arc<PoolState>);

struct PoolState {
    path: PathBuf,
    of: PoolUse,
    most: u32,
    free: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

/// A connection. A transaction that is open when it is dropped is rolled back.
pub(super) struct SqliteSession {
    /// `None` while a statement runs on another thread, and after that thread was lost.
    open: Option<Open>,
    place: RunsOn,
    interrupt: Interrupt,
}

/// A place in the pool, with its connection once it is needed. The connection returns to the pool when dropped.
struct Open {
    conn: Option<Connection>,
    pool: Arc<PoolState>,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    /// Creates a pool of up to `most` connections to an existing file.
    pub fn new(path: &Path, of: PoolUse, most: u32) -> Self {
        let free = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX)));
        Self(Arc::new(PoolState { path: path.to_owned(), of, most, free, idle: Mutex::default() }))
    }

    /// Returns a connection outside of a transaction.
    pub async fn acquire(&self, place: RunsOn) -> Result<SqliteSession, DriverError> {
        let permit = tokio::time::timeout(ACQUIRE, Arc::clone(&self.0.free).acquire_owned());
        let permit = permit.await.map_err(|_| DriverError::Exhausted)?.map_err(|_| DriverError::Closed)?;
        let conn = self.0.idle.lock().pop();
        let open = Some(Open { conn, pool: Arc::clone(&self.0), _permit: permit });
        Ok(SqliteSession { open, place, interrupt: Interrupt::default() })
    }

    /// Returns a connection in a transaction.
    pub async fn begin(&self, place: RunsOn) -> Result<SqliteSession, DriverError> {
        let mut session = self.acquire(place).await?;
        session.begin().await?;
        Ok(session)
    }

    /// Closes the pool, once all connections have been returned.
    pub async fn close(&self) {
        let all = self.0.free.acquire_many(self.0.most).await;
        self.0.free.close();
        self.0.idle.lock().clear();
        drop(all);
    }
}

/// Returns the path in a URL: `sqlite:<path>` or `sqlite://<path>`, with `?` and `%` percent-encoded. The error says
/// what is wrong with the URL.
pub(super) fn path_of(url: &str) -> Result<PathBuf, String> {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    if let Some((_, parameters)) = rest.split_once('?') {
        return Err(format!("it takes no parameters: remove `?{parameters}`, or write `%3F` for a `?` in the path"));
    }
    let path = percent_decode_str(rest).decode_utf8().map_err(|_| "the path is not UTF-8".to_owned())?;
    if path.is_empty() {
        return Err("name a file, as in sqlite:countersign.db".to_owned());
    }
    Ok(PathBuf::from(&*path))
}

/// Whether the file cannot be written, such as a backup on a read-only disk. An error if a part of its content is still
/// in the write-ahead log, which cannot be read there.
pub(super) fn cannot_be_written(path: &Path) -> Result<bool, String> {
    let Ok(about) = path.metadata() else { return Ok(false) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let writable = !about.permissions().readonly()
        && OpenOptions::new().write(true).open(path).is_ok()
        && tempfile::tempfile_in(folder).is_ok();
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if !writable && Path::new(&log).metadata().is_ok_and(|log| log.len() > 0) {
        let path = path.display();
        return Err(format!(
            "{path} is read-only, but part of it is still in {path}-wal: copy both to a writable folder, or make the \
             backup with sqlite3's .backup"
        ));
    }
    Ok(!writable)
}

impl PoolState {
    fn connect(&self) -> rusqlite::Result<Connection> {
        if self.of == PoolUse::Immutable {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let path = percent_encode(self.path.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC);
            let conn = Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)?;
            keep_statements(&conn)?;
            return Ok(conn);
        }
        // SQLITE_OPEN_CREATE is not set: if the file was removed under the server, that is an error, and no empty file
        // replaces it.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.busy_timeout(BUSY)?;
        keep_statements(&conn)?;
        // A commit moves pages into the database file only if `checkpoint` falls behind.
        conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4096")?;
        match self.of {
            // In KiB. Readers keep the default of 2 MiB, since each commit of another connection empties their cache.
            PoolUse::Writing => conn.pragma_update(None, "cache_size", -16384)?,
            PoolUse::Reading | PoolUse::Immutable => conn.pragma_update(None, "query_only", true)?,
        }
        Ok(conn)
    }
}

/// Keeps prepared statements, and their plans: otherwise a statement is prepared again whenever another value is bound to
/// its LIMIT, among others.
pub(super) fn keep_statements(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(|_| ())
}

impl SqliteSession {
    /// Begins a transaction. One that writes locks the database at once (IMMEDIATE), so what it reads cannot change
    /// before it writes.
    pub async fn begin(&mut self) -> Result<(), DriverError> {
        let writes = self.open.as_ref().is_some_and(|open| open.pool.of == PoolUse::Writing);
        let begin = if writes { "BEGIN IMMEDIATE" } else { "BEGIN" };
        self.with(move |conn| Ok(conn.execute_batch(begin)?)).await
    }

    /// Returns the caller for whom a session that reads on its own thread runs: its statements end when that is dropped.
    pub fn caller(&self) -> Caller {
        self.interrupt.caller()
    }

    pub async fn fetch(&mut self, sql: Sql) -> Result<Vec<Vec<Value>>, DriverError> {
        self.with(move |conn| fetch(conn, &sql)).await
    }

    pub async fn count_groups(&mut self, sql: Sql) -> Result<HashMap<GroupKey, u64>, DriverError> {
        self.with(move |conn| count_groups(conn, &sql)).await
    }

    pub async fn execute(&mut self, sql: Sql) -> Result<u64, DriverError> {
        self.with(move |conn| execute_each(conn, &sql.positional(), [sql.args.as_slice()])).await
    }

    /// Runs a statement once for each list of arguments. Returns how many rows were changed in total. `sql` has
    /// positional placeholders (`?`).
    pub async fn execute_each(&mut self, sql: String, each: Vec<Vec<Arg>>) -> Result<u64, DriverError> {
        self.with(move |conn| execute_each(conn, &sql, each.iter().map(Vec::as_slice))).await
    }

    /// Ends the transaction with COMMIT or ROLLBACK.
    pub async fn end(mut self, how: &'static str) -> Result<(), DriverError> {
        self.with(move |conn| Ok(conn.execute_batch(how)?)).await
    }

    async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, DriverError> + Send + 'static,
    ) -> Result<T, DriverError> {
        let mut open = self.open.take().ok_or(DriverError::Closed)?;
        // On another thread, each call has a caller of its own, which is this future.
        let (interrupt, _caller) = match self.place {
            RunsOn::ThisThread => (self.interrupt.clone(), None),
            RunsOn::BlockingThread => {
                let own = Interrupt::default();
                (own.clone(), Some(own.caller()))
            }
        };
        let run = move || {
            let result = open.connected().and_then(|conn| interrupt.run(conn, work));
            (open, result)
        };
        let (open, result) = match self.place {
            RunsOn::ThisThread => run(),
            // If the caller stops waiting, that thread returns the connection to the pool.
            RunsOn::BlockingThread => tokio::task::spawn_blocking(run).await.map_err(|_| DriverError::Interrupted)?,
        };
        self.open = Some(open);
        result
    }
}

impl Open {
    fn connected(&mut self) -> Result<&Connection, DriverError> {
        if self.conn.is_none() {
            self.conn = Some(self.pool.connect()?);
        }
        self.conn.as_ref().ok_or(DriverError::Closed)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(conn) = self.conn.take() else { return };
        // SQLite ends some transactions itself, for example when the disk is full.
        if !conn.is_autocommit()
            && let Err(error) = conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back; its connection is closed");
            return;
        }
        self.pool.idle.lock().push(conn);
    }
}

/// All statements that were run.
#[cfg(test)]
pub(super) static SEEN: Mutex<std::collections::BTreeSet<String>> = Mutex::new(std::collections::BTreeSet::new());

fn fetch(conn: &Connection, sql: &Sql) -> Result<Vec<Vec<Value>>, DriverError> {
    #[cfg(test)]
    SEEN.lock().insert(sql.positional());
    let mut statement = conn.prepare_cached(&sql.positional())?;
    bind(&mut statement, &sql.args)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((0..columns).map(|column| row.get(column)).collect::<Result<_, _>>()?);
    }
    Ok(found)
}

fn count_groups(conn: &Connection, sql: &Sql) -> Result<HashMap<GroupKey, u64>, DriverError> {
    let mut statement = conn.prepare_cached(&sql.positional())?;
    bind(&mut statement, &sql.args)?;
    let mut rows = statement.raw_query();
    let mut counts = HashMap::new();
    while let Some(row) = rows.next()? {
        let key = GroupKey { id: row.get(0)?, numbers: [row.get(1)?, row.get(2)?, row.get(3)?] };
        *counts.entry(key).or_default() += 1;
    }
    Ok(counts)
}

fn execute_each<'a, A: ToSql + 'a>(
    conn: &Connection,
    sql: &str,
    each: impl IntoIterator<Item = &'a [A]>,
) -> Result<u64, DriverError> {
    #[cfg(test)]
    SEEN.lock().insert(sql.to_owned());
    let mut statement = conn.prepare_cached(sql)?;
    let mut changed = 0;
    for args in each {
        bind(&mut statement, args)?;
        changed += u64::try_from(statement.raw_execute()?).unwrap_or(0);
    }
    Ok(changed)
}

fn bind(statement: &mut Statement<'_>, args: &[impl ToSql]) -> rusqlite::Result<()> {
    for (index, arg) in args.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, arg)?;
    }
    Ok(())
}

impl ToSql for Bound {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::One(arg) => arg.to_sql(),
            Self::Many(values) => Ok(ToSqlOutput::Owned(Value::Text(values.json()))),
        }
    }
}

impl ToSql for Arg {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Int(value) => value.map(ValueRef::Integer),
            Self::Text(value) => value.as_ref().map(|text| ValueRef::Text(text.as_bytes())),
            Self::Blob(value) => value.as_deref().map(ValueRef::Blob),
            Self::Uuid(value) => value.as_ref().map(|id| ValueRef::Blob(id.as_bytes())),
        };
        Ok(ToSqlOutput::Borrowed(value.unwrap_or(ValueRef::Null)))
    }
}

pub(super) fn column<T: FromSql>(row: &[Value], index: usize) -> Result<T, DriverError> {
    let value = row.get(index).ok_or(rusqlite::Error::InvalidColumnIndex(index))?;
    T::column_result(value.into()).map_err(|source| DriverError::Column { index, source })
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn another_value_does_not_prepare_a_statement_again() {
        let conn = Connection::open_in_memory().expect("opens");
        keep_statements(&conn).expect("sets it");
        conn.execute_batch(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, kind TEXT); CREATE INDEX some ON t (kind) WHERE kind = 'b';",
        )
        .expect("creates");
        for limit in [1_i64, 2] {
            let sql = Sql::new("SELECT id FROM t WHERE kind = ").bind("a").push(" LIMIT ").bind(limit);
            fetch(&conn, &sql).expect("reads");
            let statement = conn.prepare_cached(&sql.positional()).expect("is cached");
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        }
    }
}
