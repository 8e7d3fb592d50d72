//! The rival of the store: a bare loop that writes the same rows and bytes, with the same grouping, at the same places
//! of the same tables, without any logic.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use backend::clock::{Clock as _, Moment, SystemClock};
use rusqlite::{Connection, ToSql, params};

/// The rows that the store wrote per run, with their average sizes in characters, and the average size of its groups.
pub struct Shape {
    tables: Vec<String>,
    group: usize,
    state: usize,
    review: usize,
    search: usize,
    facts: String,
    /// The subjects in `review_audience` of a waiting run's review; `decided` are those that a decision adds.
    subjects: Vec<String>,
    decided: Vec<String>,
    steps: usize,
    step: usize,
    log: usize,
}

impl Shape {
    /// Reads the shape off a database that the store has filled.
    pub fn of(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        let number = |sql: &str| -> Result<usize> {
            Ok(usize::try_from(connection.query_row(sql, [], |row| row.get::<_, u32>(0))?)?)
        };
        let of_first = |which: &str| {
            format!(
                "SELECT subject FROM review_audience WHERE review_id = (SELECT id FROM reviews LIMIT 1) AND {which}"
            )
        };
        let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
            connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        };
        Ok(Self {
            tables: texts(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name IN \
                 ('runs', 'runs_by_status', 'reviews', 'queue', 'review_audience', 'steps', 'log')",
            )?,
            group: number(
                "SELECT CAST(ROUND(AVG(n)) AS INTEGER) FROM (SELECT COUNT(*) AS n FROM log GROUP BY commit_id)",
            )?
            .max(1),
            state: number("SELECT CAST(AVG(LENGTH(state) + COALESCE(LENGTH(steps), 0)) AS INTEGER) FROM runs")?,
            review: number("SELECT CAST(AVG(LENGTH(body)) AS INTEGER) FROM reviews")?,
            search: number("SELECT CAST(AVG(LENGTH(search)) AS INTEGER) FROM reviews")?,
            facts: texts("SELECT facts FROM reviews LIMIT 1")?.concat(),
            subjects: texts(&of_first("subject NOT LIKE 'decided:%'"))?,
            decided: texts(&of_first("subject LIKE 'decided:%'"))?,
            steps: number("SELECT (SELECT COUNT(*) FROM steps) / MAX(1, (SELECT COUNT(*) FROM runs))")?,
            step: number("SELECT CAST(COALESCE(AVG(LENGTH(body)), 0) AS INTEGER) FROM steps")?,
            log: number("SELECT CAST(AVG(LENGTH(body)) AS INTEGER) FROM log WHERE run_id IS NOT NULL")?,
        })
    }
}

/// The bare loop, on its own SQLite database with the tables of the store.
pub struct Loop {
    connection: Connection,
    shape: Shape,
}

type Id = [u8; 16];

/// The ids of a run and of its review, and the time of the launch in microseconds.
struct Launched {
    run: Id,
    id: Id,
    at: i64,
}

impl Launched {
    fn new() -> Self {
        Self { run: new_id(), id: new_id(), at: SystemClock.now().0 }
    }
}

/// Returns an id in time order, like the store's, so that rows lie beside those that were written shortly before.
fn new_id() -> Id {
    Moment::of(&SystemClock).ids().uuid().into_bytes()
}

/// Returns `length` bytes of text, which differ with every call.
fn text(length: usize) -> String {
    let id = hex::encode(SystemClock.random());
    id.chars().cycle().take(length).collect()
}

impl Loop {
    /// Creates a database with the schema and the durability of the store's.
    pub fn open(path: &Path, shape: Shape) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
             PRAGMA wal_autocheckpoint = 4096; PRAGMA cache_size = -16384",
        )?;
        // SQLite's internal tables cannot be created by hand.
        for sql in shape.tables.iter().filter(|sql| !sql.contains("sqlite_")) {
            connection.execute_batch(sql).context("the schema")?;
        }
        Ok(Self { connection, shape })
    }

    /// Runs the loop for `length`, and returns the transitions per second: half of them launches, half decisions.
    pub fn round(&mut self, length: Duration) -> Result<f64> {
        let started = Instant::now();
        let mut transitions = 0_u32;
        while started.elapsed() < length {
            let runs: Vec<Launched> = (0..self.shape.group).map(|_| Launched::new()).collect();
            self.launches(&runs)?;
            self.decisions(&runs)?;
            transitions += 2 * u32::try_from(self.shape.group)?;
        }
        Ok(f64::from(transitions) / started.elapsed().as_secs_f64())
    }

    fn launches(&self, runs: &[Launched]) -> Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let Shape { state, review, search, facts, subjects, steps, step, .. } = &self.shape;
        let (state, review, search, step) = (text(*state), text(*review), text(*search), text(*step));
        for Launched { run, at, .. } in runs {
            self.run(
                "INSERT INTO runs (id, flow, status, requested_by, created_at, format, state) \
                 VALUES (?, 'ask', 'waiting_for_human', 'admin', ?, 1, ?)",
                params![run, at, state],
            )?;
            let sql = "INSERT INTO runs_by_status (status, created_at, id) VALUES ('waiting_for_human', ?, ?)";
            self.run(sql, params![at, run])?;
        }
        for Launched { run, id, at } in runs {
            self.run(
                "INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, not_requester, \
                 created_at, search, body, facts, due, severity_rank, irreversible, claimed_until) \
                 VALUES (?, ?, 'pending', 'approval', 'medium', 'ask', 'admin', 0, ?, ?, ?, ?, 253402300799999999, 2, 0, 0)",
                params![id, run, at, search, review, facts],
            )?;
            self.run(
                "INSERT INTO queue (due, severity_rank, created_at, id, class, claimed_until) \
                 VALUES (253402300799999999, 2, ?, ?, x'00112233445566778899aabbccddeeff', 0)",
                params![at, id],
            )?;
        }
        self.audience(runs, subjects)?;
        for Launched { run, .. } in runs {
            for _ in 0..*steps {
                let sql = "INSERT INTO steps (run_id, id, body) VALUES (?, ?, ?)";
                self.run(sql, params![run, new_id(), step])?;
            }
        }
        self.log(runs)?;
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn decisions(&self, runs: &[Launched]) -> Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let Shape { state, review, facts, steps, step, .. } = &self.shape;
        // Different bytes than at the launch: SQLite does not write what stays the same.
        let (state, review, step) = (text(*state), text(*review), text(*step));
        for Launched { run, at, .. } in runs {
            self.run("UPDATE runs SET status = 'completed', state = ? WHERE id = ?", params![state, run])?;
            let sql = "DELETE FROM runs_by_status WHERE (status, created_at, id) = ('waiting_for_human', ?, ?)";
            self.run(sql, params![at, run])?;
        }
        for Launched { id, at, .. } in runs {
            let sql = "UPDATE reviews SET status = 'resolved', facts = ?, body = ? WHERE id = ?";
            self.run(sql, params![facts, review, id])?;
            let sql = "DELETE FROM queue WHERE (due, severity_rank, created_at, id) = (253402300799999999, 2, ?, ?)";
            self.run(sql, params![at, id])?;
        }
        self.audience(runs, &self.shape.decided)?;
        for Launched { run, .. } in runs.iter().filter(|_| *steps > 0) {
            self.run("UPDATE steps SET body = ? WHERE run_id = ?", params![step, run])?;
        }
        self.log(runs)?;
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn audience(&self, runs: &[Launched], subjects: &[String]) -> Result<()> {
        for Launched { id, at, .. } in runs {
            for subject in subjects {
                let sql = "INSERT INTO review_audience (subject, created_at, review_id) VALUES (?, ?, ?)";
                self.run(sql, params![subject, at, id])?;
            }
        }
        Ok(())
    }

    fn log(&self, runs: &[Launched]) -> Result<()> {
        let (commit, body, now) = (new_id(), text(self.shape.log), SystemClock.now().0);
        for Launched { run, .. } in runs {
            let sql = "INSERT INTO log (commit_id, at, run_id, body, mac) VALUES (?, ?, ?, ?, ?)";
            self.run(sql, params![commit, now, run, body, [0_u8; 40]])?;
        }
        Ok(())
    }

    /// Executes a statement, and caches it prepared.
    fn run(&self, sql: &str, values: &[&dyn ToSql]) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }
}
