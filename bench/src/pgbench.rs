//! The rival of the PostgreSQL row: pgbench with the same number of clients, each of which runs the statements of one
//! cycle at a time, with rows as large as the server's.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sqlx::{Connection as _, PgConnection};
use tokio::process::Command;

use crate::client::CLIENTS;

/// pgbench on its own database, which has the server's schema, but neither its runs nor its bloat.
pub struct Pgbench {
    url: String,
    script: tempfile::NamedTempFile,
    sizes: Vec<(&'static str, usize)>,
    rounds: u32,
}

impl Pgbench {
    /// Reads the average sizes of rows from the server's database, and copies its schema, users and flows into a new
    /// one.
    pub async fn beside(admin: &str, server: &str) -> Result<Self> {
        let mut source = PgConnection::connect(server).await?;
        let mut sizes = Vec::new();
        for (name, sql) in [
            ("state", "SELECT AVG(LENGTH(state) + COALESCE(LENGTH(steps), 0))::bigint FROM runs"),
            ("review", "SELECT AVG(LENGTH(body))::bigint FROM reviews"),
            ("search", "SELECT AVG(LENGTH(search))::bigint FROM reviews"),
            ("log", "SELECT AVG(LENGTH(body))::bigint FROM log WHERE run_id IS NOT NULL"),
        ] {
            let size: i64 = sqlx::query_scalar(sql).fetch_one(&mut source).await?;
            sizes.push((name, usize::try_from(size)?));
        }
        let name = format!("bench_rival_{}", std::process::id());
        let mut connection = PgConnection::connect(&format!("{admin}/postgres")).await?;
        for sql in [format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name}")] {
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await?;
        }
        let url = format!("{admin}/{name}");
        copy_schema(server, &url).await?;
        let script = tempfile::NamedTempFile::new()?;
        std::fs::write(script.path(), CYCLE)?;
        Ok(Self { url, script, sizes, rounds: 0 })
    }

    /// The URL of the rival's database.
    pub fn database(&self) -> &str {
        &self.url
    }

    /// Runs pgbench for `length`, and returns the cycles per second.
    pub async fn round(&mut self, length: Duration) -> Result<f64> {
        let mut command = Command::new("pgbench");
        command.args(["--no-vacuum", "--protocol=prepared", "--jobs=2"]);
        command.arg(format!("--client={CLIENTS}")).arg(format!("--time={}", length.as_secs()));
        command.arg("--file").arg(self.script.path());
        // Ids must not repeat in later rounds.
        command.arg("--define").arg(format!("n={}", self.rounds * 1_000_000));
        self.rounds += 1;
        for (name, size) in &self.sizes {
            command.arg("--define").arg(format!("{name}={}", "x".repeat(*size)));
        }
        let output = command.arg(&self.url).stdin(Stdio::null()).output().await.context("pgbench is not installed")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let tps = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        match tps {
            Some(tps) if output.status.success() => Ok(tps),
            _ => {
                bail!("pgbench failed: {}", String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<String>())
            }
        }
    }
}

/// Copies the schema, and the rows of users, credentials and flows.
async fn copy_schema(from: &str, to: &str) -> Result<()> {
    let mut copy = Command::new("sh");
    copy.args(["-c", r#"pg_dump --schema-only "$1" && pg_dump --data-only -t users -t credentials -t flows "$1""#]);
    let dump = copy.args(["sh", from]).stdin(Stdio::null()).output().await.context("pg_dump is not installed")?;
    let mut load = Command::new("psql");
    load.args(["--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", to]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut load = load.spawn().context("psql is not installed")?;
    tokio::io::AsyncWriteExt::write_all(&mut load.stdin.take().context("no input")?, &dump.stdout).await?;
    if !dump.status.success() || !load.wait().await?.success() {
        bail!("the schema could not be copied: {}", String::from_utf8_lossy(&dump.stderr));
    }
    Ok(())
}

/// A launch, a read of the run's reviews, and a decision: each statement as the server sends it for a group of one,
/// with a hyphen where the server has a colon, since pgbench would take a colon for a variable.
const CYCLE: &str = r"
\set n :n + 1
\set run :n * 64 + :client_id
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT CASE WHEN alone = 1 THEN pg_advisory_xact_lock(key)::text ELSE pg_advisory_xact_lock_shared(key)::text END FROM (SELECT column1 AS key, column2 AS alone FROM (VALUES (1::bigint, 0::bigint), (2::bigint, 0), (:run::bigint, 1)) AS v ORDER BY column1 OFFSET 0) AS k;
SELECT username, display_name, email, roles, active, password_hash, created_at FROM users WHERE username IN ('admin');
SELECT c.digest, c.kind, c.id, c.name, c.username, c.roles, c.created_at, c.expires_at FROM credentials c WHERE c.digest IN ('\x00'::bytea);
SELECT id, state FROM runs WHERE id IN (lpad(to_hex(:run::bigint), 32, '0')::uuid);
SELECT id, version, digest, source, definition, saved_by, saved_at FROM flows WHERE id = 'ask' ORDER BY version DESC LIMIT 1;
INSERT INTO runs (id, flow, status, requested_by, created_at, format, state) VALUES (lpad(to_hex(:run::bigint), 32, '0')::uuid, 'ask', 'waiting_for_human', 'admin', :run::bigint, 1, :state) ON CONFLICT (id) DO UPDATE SET status = excluded.status, format = excluded.format, state = excluded.state;
INSERT INTO runs_by_status (status, created_at, id) VALUES ('waiting_for_human', :run::bigint, lpad(to_hex(:run::bigint), 32, '0')::uuid);
INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, not_requester, created_at, search, body, due, severity_rank, irreversible, claimed_until) VALUES (lpad(to_hex(:run::bigint), 32, '1')::uuid, lpad(to_hex(:run::bigint), 32, '0')::uuid, 'pending', 'approval', 'medium', 'ask', 'admin', 0, :run::bigint, :search, :review, 253402300799999999, 2, 0, 0) ON CONFLICT (id) DO UPDATE SET status = excluded.status, search = excluded.search, body = excluded.body, due = excluded.due, claimed_until = excluded.claimed_until;
INSERT INTO classes (class, outline) VALUES ('00112233-4455-6677-8899-aabbccddeeff'::uuid, :search) ON CONFLICT (class) DO NOTHING;
INSERT INTO queue (due, severity_rank, created_at, id, class, claimed_until, question) VALUES (253402300799999999, 2, :run::bigint, lpad(to_hex(:run::bigint), 32, '1')::uuid, '00112233-4455-6677-8899-aabbccddeeff'::uuid, 0, NULL) ON CONFLICT (due, severity_rank, created_at, id) DO UPDATE SET class = excluded.class, claimed_until = excluded.claimed_until;
INSERT INTO review_audience (subject, created_at, review_id) VALUES ('role-reviewer', :run::bigint, lpad(to_hex(:run::bigint), 32, '1')::uuid), ('asked-admin', :run::bigint, lpad(to_hex(:run::bigint), 32, '1')::uuid) ON CONFLICT DO NOTHING;
SELECT n AS seq FROM log_numbers(1::bigint) AS n \gset
INSERT INTO log (seq, commit_id, at, run_id, body) OVERRIDING SYSTEM VALUE VALUES (:seq::bigint, lpad(to_hex(:run::bigint), 32, '3')::uuid, :run::bigint, lpad(to_hex(:run::bigint), 32, '0')::uuid, :log);
COMMIT;
SELECT NULL AS at, id, state AS body FROM runs WHERE id = lpad(to_hex(:run::bigint), 32, '0')::uuid UNION ALL SELECT created_at, id, body FROM reviews WHERE run_id = lpad(to_hex(:run::bigint), 32, '0')::uuid ORDER BY 1, 2;
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT run_id FROM reviews WHERE id IN (lpad(to_hex(:run::bigint), 32, '1')::uuid);
SELECT CASE WHEN alone = 1 THEN pg_advisory_xact_lock(key)::text ELSE pg_advisory_xact_lock_shared(key)::text END FROM (SELECT column1 AS key, column2 AS alone FROM (VALUES (1::bigint, 0::bigint), (2::bigint, 0), (:run::bigint, 1)) AS v ORDER BY column1 OFFSET 0) AS k;
SELECT username, display_name, email, roles, active, password_hash, created_at FROM users WHERE username IN ('admin');
SELECT c.digest, c.kind, c.id, c.name, c.username, c.roles, c.created_at, c.expires_at FROM credentials c WHERE c.digest IN ('\x00'::bytea);
SELECT id, run_id FROM reviews WHERE id IN (lpad(to_hex(:run::bigint), 32, '1')::uuid);
SELECT id, state FROM runs WHERE id IN (lpad(to_hex(:run::bigint), 32, '0')::uuid);
SELECT run_id, body FROM reviews WHERE run_id IN (lpad(to_hex(:run::bigint), 32, '0')::uuid) AND status = 'pending';
INSERT INTO runs (id, flow, status, requested_by, created_at, format, state) VALUES (lpad(to_hex(:run::bigint), 32, '0')::uuid, 'ask', 'completed', 'admin', :run::bigint, 1, :state) ON CONFLICT (id) DO UPDATE SET status = excluded.status, format = excluded.format, state = excluded.state;
DELETE FROM runs_by_status WHERE (status, created_at, id) IN (VALUES ('waiting_for_human', :run::bigint, lpad(to_hex(:run::bigint), 32, '0')::uuid));
INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, not_requester, created_at, search, body, due, severity_rank, irreversible, claimed_until) VALUES (lpad(to_hex(:run::bigint), 32, '1')::uuid, lpad(to_hex(:run::bigint), 32, '0')::uuid, 'resolved', 'approval', 'medium', 'ask', 'admin', 0, :run::bigint, :search, :review, 253402300799999999, 2, 0, 0) ON CONFLICT (id) DO UPDATE SET status = excluded.status, search = excluded.search, body = excluded.body, due = excluded.due, claimed_until = excluded.claimed_until;
DELETE FROM queue WHERE (due, severity_rank, created_at, id) IN (VALUES (253402300799999999, 2::bigint, :run::bigint, lpad(to_hex(:run::bigint), 32, '1')::uuid));
INSERT INTO review_audience (subject, created_at, review_id) VALUES ('decided-admin', :run::bigint, lpad(to_hex(:run::bigint), 32, '1')::uuid) ON CONFLICT DO NOTHING;
SELECT n AS seq FROM log_numbers(1::bigint) AS n \gset
INSERT INTO log (seq, commit_id, at, run_id, body) OVERRIDING SYSTEM VALUE VALUES (:seq::bigint, lpad(to_hex(:run::bigint), 32, '4')::uuid, :run::bigint, lpad(to_hex(:run::bigint), 32, '0')::uuid, :log);
COMMIT;
";
