//! The rival of the store: a loop that writes the same rows and bytes, with the same grouping, and thinks of nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rusqlite::{Connection, ToSql, params};

use crate::store::random_id;

/// What the store wrote for one run, and in which groups.
pub struct Shape {
    tables: Vec<String>,
    group: usize,
    state: usize,
    review: usize,
    search: usize,
    subjects: Vec<String>,
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
        let texts = |sql: &str| -> rusqlite::Result<Vec<String>> {
            connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
        };
        Ok(Self {
            tables: texts(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name IN \
                 ('runs', 'reviews', 'review_audience', 'steps', 'log')",
            )?,
            group: number(
                "SELECT CAST(ROUND(AVG(n)) AS INTEGER) FROM (SELECT COUNT(*) AS n FROM log GROUP BY commit_id)",
            )?
            .max(1),
            state: number("SELECT CAST(AVG(LENGTH(state)) AS INTEGER) FROM runs")?,
            review: number("SELECT CAST(AVG(LENGTH(body)) AS INTEGER) FROM reviews")?,
            search: number("SELECT CAST(AVG(LENGTH(search)) AS INTEGER) FROM reviews")?,
            subjects: texts("SELECT subject FROM review_audience WHERE review_id = (SELECT id FROM reviews LIMIT 1)")?,
            steps: number("SELECT (SELECT COUNT(*) FROM steps) / MAX(1, (SELECT COUNT(*) FROM runs))")?,
            step: number("SELECT CAST(COALESCE(AVG(LENGTH(body)), 0) AS INTEGER) FROM steps")?,
            log: number("SELECT CAST(AVG(LENGTH(body)) AS INTEGER) FROM log WHERE run_id IS NOT NULL")?,
        })
    }
}

/// The loop.
pub struct Loop {
    connection: Connection,
    shape: Shape,
}

type Id = [u8; 16];

impl Loop {
    /// A new database of the same schema, with the same durability.
    pub fn open(path: &Path, shape: Shape) -> Result<Self> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
             PRAGMA wal_autocheckpoint = 4096; PRAGMA cache_size = -16384",
        )?;
        // Tables that SQLite makes by itself cannot be made by hand.
        for sql in shape.tables.iter().filter(|sql| !sql.contains("sqlite_")) {
            connection.execute_batch(sql).context("the schema")?;
        }
        Ok(Self { connection, shape })
    }

    /// Transitions a second: half of them launches, half decisions.
    pub fn round(&mut self, length: Duration) -> Result<f64> {
        let started = Instant::now();
        let mut transitions = 0_u32;
        while started.elapsed() < length {
            let ids: Vec<(Id, Id)> = (0..self.shape.group).map(|_| (random_id(), random_id())).collect();
            self.launches(&ids)?;
            self.decisions(&ids)?;
            transitions += 2 * u32::try_from(self.shape.group)?;
        }
        Ok(f64::from(transitions) / started.elapsed().as_secs_f64())
    }

    fn launches(&self, ids: &[(Id, Id)]) -> Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let Shape { state, review, search, subjects, steps, step, .. } = &self.shape;
        let (state, review, search, step) =
            ("x".repeat(*state), "x".repeat(*review), "x".repeat(*search), "x".repeat(*step));
        for (run, _) in ids {
            self.run(
                "INSERT INTO runs (id, flow, status, requested_by, created_at, format, state) \
                 VALUES (?, 'ask', 'waiting_for_human', 'admin', 1, 1, ?)",
                params![run, state],
            )?;
        }
        for (run, id) in ids {
            self.run(
                "INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, not_requester, \
                 created_at, search, body, due, severity_rank, irreversible, claimed_until, class) \
                 VALUES (?, ?, 'pending', 'approval', 'medium', 'ask', 'admin', 0, 1, ?, ?, 253402300799999999, 2, 0, 0, \
                 x'00112233445566778899aabbccddeeff')",
                params![id, run, search, review],
            )?;
        }
        for (_, id) in ids {
            for subject in subjects {
                self.run(
                    "INSERT INTO review_audience (review_id, subject, pending, created_at) VALUES (?, ?, 1, 1)",
                    params![id, subject],
                )?;
            }
        }
        for (run, _) in ids {
            for _ in 0..*steps {
                let sql = "INSERT INTO steps (run_id, id, body) VALUES (?, ?, ?)";
                self.run(sql, params![run, random_id(), step])?;
            }
        }
        self.log(ids)?;
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn decisions(&self, ids: &[(Id, Id)]) -> Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        // Other bytes: SQLite does not write what stays the same.
        let (state, review) = ("y".repeat(self.shape.state), "y".repeat(self.shape.review));
        for (run, _) in ids {
            self.run("UPDATE runs SET status = 'completed', state = ? WHERE id = ?", params![state, run])?;
        }
        for (_, id) in ids {
            self.run(
                "UPDATE reviews SET status = 'resolved', class = NULL, body = ? WHERE id = ?",
                params![review, id],
            )?;
        }
        for (_, id) in ids {
            self.run("UPDATE review_audience SET pending = 0 WHERE review_id = ?", params![id])?;
        }
        self.log(ids)?;
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn log(&self, ids: &[(Id, Id)]) -> Result<()> {
        let (commit, body) = (random_id(), "x".repeat(self.shape.log));
        for (run, _) in ids {
            let sql = "INSERT INTO log (commit_id, at, run_id, body) VALUES (?, 1, ?, ?)";
            self.run(sql, params![commit, run, body])?;
        }
        Ok(())
    }

    /// Runs a statement, which stays prepared.
    fn run(&self, sql: &str, values: &[&dyn ToSql]) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }
}
