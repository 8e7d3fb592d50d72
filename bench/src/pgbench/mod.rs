//! The rival of the PostgreSQL row: pgbench, which sends what the server sends for as many cycles at once, in groups as
//! large as the server's and with rows that the server has written.

mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sqlx::{Connection as _, PgConnection};
use tokio::process::Command;

use crate::client::CLIENTS;

/// The settings of the server's writers. See `backend/src/store/open.rs`.
const SETTINGS: &str =
    "-c synchronous_commit=on -c jit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off";

/// The tables that the server writes beside its cycles, in its own time: the index of the log, which reads entries and
/// words of reviews many at a time.
const BESIDE_CYCLES: [&str; 3] = ["log_index", "log_blocks", "review_words"];

/// The largest difference in rows of a table per cycle. A cycle writes whole rows, so it is far below one; it is above
/// zero because the server has also written a few rows before its first cycle, and cycles may be unfinished.
const TOLERANCE: f64 = 0.25;

/// How often, 100 ms apart, the sessions of a stopped server are looked for that have not ended.
const SESSION_CHECKS: usize = 100;

/// The average size of the server's groups.
const GROUP: &str = "SELECT ROUND(AVG(n))::bigint FROM (SELECT COUNT(*) AS n FROM log GROUP BY commit_id) AS g";

/// What the script sends, by the name of its variable, read from the rows of a waiting run and of a completed one.
const VALUES: [(&str, &str); 17] = [
    ("asked_state", "SELECT state FROM runs WHERE status = 'waiting_for_human' LIMIT 1"),
    ("asked_steps", "SELECT COALESCE(steps, '') FROM runs WHERE status = 'waiting_for_human' LIMIT 1"),
    ("asked_body", "SELECT body FROM reviews WHERE status = 'pending' LIMIT 1"),
    ("asked_search", "SELECT search FROM reviews WHERE status = 'pending' LIMIT 1"),
    ("asked_facts", "SELECT COALESCE(facts, '') FROM reviews WHERE status = 'pending' LIMIT 1"),
    (
        "asked_log",
        "SELECT body FROM log WHERE run_id = (SELECT run_id FROM reviews WHERE status = 'pending' LIMIT 1) \
         ORDER BY seq LIMIT 1",
    ),
    (
        "asked_subjects",
        "SELECT ARRAY_AGG(subject)::text FROM review_audience \
         WHERE review_id = (SELECT id FROM reviews WHERE status = 'pending' LIMIT 1)",
    ),
    ("class", "SELECT class::text FROM queue LIMIT 1"),
    ("outline", "SELECT c.outline FROM classes c JOIN queue q ON q.class = c.class LIMIT 1"),
    ("decided_state", "SELECT state FROM runs WHERE status = 'completed' LIMIT 1"),
    ("decided_steps", "SELECT COALESCE(steps, '') FROM runs WHERE status = 'completed' LIMIT 1"),
    ("decided_body", "SELECT body FROM reviews WHERE status = 'resolved' LIMIT 1"),
    ("decided_search", "SELECT search FROM reviews WHERE status = 'resolved' LIMIT 1"),
    ("decided_facts", "SELECT COALESCE(facts, '') FROM reviews WHERE status = 'resolved' LIMIT 1"),
    (
        "decided_log",
        "SELECT body FROM log WHERE run_id = (SELECT run_id FROM reviews WHERE status = 'resolved' LIMIT 1) \
         ORDER BY seq DESC LIMIT 1",
    ),
    (
        "decided_subjects",
        "SELECT ARRAY_AGG(subject)::text FROM review_audience WHERE subject LIKE 'decided:%' \
         AND review_id = (SELECT id FROM reviews WHERE status = 'resolved' LIMIT 1)",
    ),
    ("digest", "SELECT digest::text FROM credentials WHERE kind = 'token' LIMIT 1"),
];

/// The rows that are written per cycle, by table and kind of write.
const WRITES: &str = "SELECT t.relname::text, w.kind, w.count::float8 / r.n_tup_ins::float8 \
                      FROM pg_stat_user_tables r CROSS JOIN pg_stat_user_tables t \
                      CROSS JOIN LATERAL (VALUES ('inserted', t.n_tup_ins), ('updated', t.n_tup_upd), \
                      ('deleted', t.n_tup_del)) AS w(kind, count) WHERE r.relname = 'runs' AND r.n_tup_ins > 0";

/// pgbench on its own database, which has the server's schema, but neither its runs nor its bloat.
pub struct Pgbench {
    url: String,
    script: tempfile::NamedTempFile,
    values: Vec<(&'static str, String)>,
    group: usize,
    rounds: u32,
}

impl Pgbench {
    /// Reads what a cycle writes from the server's database, and copies its schema, users and flows into a new one. The
    /// server must have completed cycles in groups, and a run must wait.
    pub async fn beside(admin: &str, server: &str) -> Result<Self> {
        let mut source = PgConnection::connect(server).await?;
        let group: i64 = sqlx::query_scalar(GROUP).fetch_one(&mut source).await?;
        let group = usize::try_from(group)?.clamp(1, script::LARGEST_GROUP);
        let mut values = Vec::new();
        for (name, sql) in VALUES {
            let value: String = sqlx::query_scalar(sql).fetch_one(&mut source).await.context(name)?;
            values.push((name, value));
        }
        let name = format!("bench_rival_{}", std::process::id());
        let mut connection = PgConnection::connect(&format!("{admin}/postgres")).await?;
        for sql in [format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name}")] {
            sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await?;
        }
        let url = format!("{admin}/{name}");
        copy_schema(server, &url).await?;
        let script = tempfile::NamedTempFile::new()?;
        std::fs::write(script.path(), script::of_group(group))?;
        Ok(Self { url, script, values, group, rounds: 0 })
    }

    /// The URL of the rival's database.
    pub fn database(&self) -> &str {
        &self.url
    }

    /// Runs pgbench for `length`, and returns the cycles per second. Each of its clients stands for the callers whose
    /// changes the server writes together, so that as many cycles are under way as there are callers.
    #[expect(clippy::cast_precision_loss, reason = "a group is far smaller than what a double can count")]
    pub async fn round(&mut self, length: Duration) -> Result<f64> {
        let clients = ((CLIENTS + self.group / 2) / self.group).max(1);
        let mut command = Command::new("pgbench");
        command.args(["--no-vacuum", "--protocol=prepared"]).arg(format!("--jobs={}", clients.min(2)));
        command.arg(format!("--client={clients}")).arg(format!("--time={}", length.as_secs()));
        command.arg("--file").arg(self.script.path());
        command.arg("--define").arg(format!("clients={clients}"));
        command.arg("--define").arg(format!("group={}", self.group));
        // Ids must not repeat in later rounds.
        command.arg("--define").arg(format!("n={}", self.rounds * 1_000_000));
        self.rounds += 1;
        for (name, value) in &self.values {
            command.arg("--define").arg(format!("{name}={value}"));
        }
        command.env("PGOPTIONS", SETTINGS).stdin(Stdio::null());
        let output = command.arg(&self.url).output().await.context("pgbench is not installed")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let tps = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
        match tps {
            Some(tps) if output.status.success() => Ok(tps * self.group as f64),
            _ => {
                bail!("pgbench failed: {}", String::from_utf8_lossy(&output.stderr).lines().take(3).collect::<String>())
            }
        }
    }

    /// Fails if a cycle of the server, which must be stopped, writes other rows than one of the script: a rival that
    /// does less work, or other work, says nothing about the server.
    pub async fn check_writes(&self, server: &str) -> Result<()> {
        let (ours, theirs) = (writes(server).await?, writes(&self.url).await?);
        let places: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
        let mut differences = Vec::new();
        for place in places {
            let [ours, theirs] = [&ours, &theirs].map(|rows| rows.get(place).copied().unwrap_or_default());
            if (ours - theirs).abs() > TOLERANCE {
                let (table, kind) = place;
                differences.push(format!("rows of `{table}` {kind}: {ours:.2} by the server, {theirs:.2} by pgbench"));
            }
        }
        ensure!(
            differences.is_empty(),
            "pgbench does not write what the server writes in a cycle ({}); bring bench/src/pgbench/script.rs in line \
             with backend/src/store/writer",
            differences.join("; ")
        );
        Ok(())
    }
}

/// Reads how many rows are written per cycle, once all other sessions have ended: each counts its writes at its end at
/// the latest.
async fn writes(url: &str) -> Result<BTreeMap<(String, String), f64>> {
    let mut connection = PgConnection::connect(url).await?;
    let others = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
                  AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    for _ in 0..SESSION_CHECKS {
        let open: i64 = sqlx::query_scalar(others).fetch_one(&mut connection).await?;
        if open == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let rows: Vec<(String, String, f64)> = sqlx::query_as(WRITES).fetch_all(&mut connection).await?;
    ensure!(!rows.is_empty(), "PostgreSQL has counted no runs; the setting `track_counts` must be on");
    let rows = rows.into_iter().filter(|(table, ..)| !BESIDE_CYCLES.contains(&table.as_str()));
    Ok(rows.map(|(table, kind, count)| ((table, kind), count)).collect())
}

/// The parts of a database that are copied, in the order in which they are loaded. Triggers come last: those of `users`
/// would not find their tables, since pg_dump empties the search path.
const COPY: &str = r#"pg_dump --section=pre-data "$1" &&
    pg_dump --data-only -t users -t credentials -t flows "$1" &&
    pg_dump --section=post-data "$1""#;

/// Copies the schema, and the rows of users, credentials and flows.
async fn copy_schema(from: &str, to: &str) -> Result<()> {
    let mut copy = Command::new("sh");
    let dump =
        copy.args(["-c", COPY, "sh", from]).stdin(Stdio::null()).output().await.context("pg_dump is not installed")?;
    let mut load = Command::new("psql");
    load.args(["--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", to]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut load = load.spawn().context("psql is not installed")?;
    tokio::io::AsyncWriteExt::write_all(&mut load.stdin.take().context("no input")?, &dump.stdout).await?;
    if !dump.status.success() || !load.wait().await?.success() {
        bail!("the schema could not be copied: {}", String::from_utf8_lossy(&dump.stderr));
    }
    Ok(())
}
