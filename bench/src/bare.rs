//! The rival of the store: a loop that writes the same rows and bytes, with the same grouping, and thinks of nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, QueryBuilder, Row as _, Sqlite, SqliteConnection};

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
    pub async fn of(path: &Path) -> Result<Self> {
        let mut connection = SqliteConnectOptions::new().filename(path).connect().await?;
        let number = async |connection: &mut SqliteConnection, sql: &'static str| -> Result<usize> {
            let row = sqlx::query(sql).fetch_one(connection).await?;
            Ok(usize::try_from(row.try_get::<i64, _>(0)?)?)
        };
        let schema = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name IN \
                      ('runs', 'reviews', 'review_audience', 'steps', 'log')";
        let tables = sqlx::query_scalar(schema).fetch_all(&mut connection).await?;
        let subjects = "SELECT subject FROM review_audience WHERE review_id = (SELECT id FROM reviews LIMIT 1)";
        Ok(Self {
            tables,
            group: number(
                &mut connection,
                "SELECT CAST(ROUND(AVG(n)) AS INTEGER) FROM (SELECT COUNT(*) AS n FROM log GROUP BY commit_id)",
            )
            .await?
            .max(1),
            state: number(&mut connection, "SELECT CAST(AVG(LENGTH(state)) AS INTEGER) FROM runs").await?,
            review: number(&mut connection, "SELECT CAST(AVG(LENGTH(body)) AS INTEGER) FROM reviews").await?,
            search: number(&mut connection, "SELECT CAST(AVG(LENGTH(search)) AS INTEGER) FROM reviews").await?,
            subjects: sqlx::query_scalar(subjects).fetch_all(&mut connection).await?,
            steps: number(&mut connection, "SELECT (SELECT COUNT(*) FROM steps) / MAX(1, (SELECT COUNT(*) FROM runs))")
                .await?,
            step: number(&mut connection, "SELECT CAST(AVG(LENGTH(body)) AS INTEGER) FROM steps").await?,
            log: number(&mut connection, "SELECT CAST(AVG(LENGTH(body)) AS INTEGER) FROM log WHERE run_id IS NOT NULL")
                .await?,
        })
    }
}

/// The loop.
pub struct Loop {
    connection: SqliteConnection,
    shape: Shape,
}

type Id = [u8; 16];

impl Loop {
    /// A new database of the same schema, with the same durability.
    pub async fn open(path: &Path, shape: Shape) -> Result<Self> {
        let mut connection = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("wal_autocheckpoint", "4096")
            .pragma("cache_size", "-16384")
            .connect()
            .await?;
        for sql in &shape.tables {
            // Tables that SQLite makes by itself cannot be made by hand.
            if !sql.contains("sqlite_") {
                sqlx::query(AssertSqlSafe(sql.clone())).execute(&mut connection).await.context("the schema")?;
            }
        }
        Ok(Self { connection, shape })
    }

    /// Transitions a second: half of them launches, half decisions.
    pub async fn round(&mut self, length: Duration) -> Result<f64> {
        let started = Instant::now();
        let mut transitions = 0_u32;
        while started.elapsed() < length {
            let ids: Vec<(Id, Id)> = (0..self.shape.group).map(|_| (random_id(), random_id())).collect();
            self.launches(&ids).await?;
            self.decisions(&ids).await?;
            transitions += 2 * u32::try_from(self.shape.group)?;
        }
        Ok(f64::from(transitions) / started.elapsed().as_secs_f64())
    }

    async fn launches(&mut self, ids: &[(Id, Id)]) -> Result<()> {
        self.run("BEGIN IMMEDIATE").await?;
        let text = |length: usize| "x".repeat(length);
        let mut runs = QueryBuilder::<Sqlite>::new(
            "INSERT INTO runs (id, flow, status, requested_by, created_at, format, state) ",
        );
        let state = text(self.shape.state);
        runs.push_values(ids, |mut row, (run, _)| {
            row.push_bind(&run[..]).push_bind("ask").push_bind("waiting_for_human").push_bind("admin");
            row.push_bind(1_i64).push_bind(1_i64).push_bind(&state);
        });
        runs.build().execute(&mut self.connection).await?;
        let mut reviews = QueryBuilder::<Sqlite>::new(
            "INSERT INTO reviews (id, run_id, status, kind, severity, flow, requested_by, not_requester, created_at, search, body) ",
        );
        let (search, body) = (text(self.shape.search), text(self.shape.review));
        reviews.push_values(ids, |mut row, (run, review)| {
            row.push_bind(&review[..])
                .push_bind(&run[..])
                .push_bind("pending")
                .push_bind("approval")
                .push_bind("medium");
            row.push_bind("ask")
                .push_bind("admin")
                .push_bind(0_i64)
                .push_bind(1_i64)
                .push_bind(&search)
                .push_bind(&body);
        });
        reviews.build().execute(&mut self.connection).await?;
        let mut audience =
            QueryBuilder::<Sqlite>::new("INSERT INTO review_audience (review_id, subject, pending, created_at) ");
        let subjects = &self.shape.subjects;
        let pairs = ids.iter().flat_map(|(_, review)| subjects.iter().map(move |subject| (review, subject)));
        audience.push_values(pairs, |mut row, (review, subject)| {
            row.push_bind(&review[..]).push_bind(subject).push_bind(1_i64).push_bind(1_i64);
        });
        if !subjects.is_empty() {
            audience.build().execute(&mut self.connection).await?;
        }
        self.steps(ids).await?;
        self.log(ids).await?;
        self.run("COMMIT").await
    }

    async fn decisions(&mut self, ids: &[(Id, Id)]) -> Result<()> {
        self.run("BEGIN IMMEDIATE").await?;
        let mut runs = QueryBuilder::<Sqlite>::new("WITH new (id, state) AS (");
        let state = "y".repeat(self.shape.state);
        runs.push_values(ids, |mut row, (run, _)| {
            row.push_bind(&run[..]).push_bind(&state);
        });
        runs.push(") UPDATE runs SET status = 'completed', state = new.state FROM new WHERE runs.id = new.id");
        runs.build().execute(&mut self.connection).await?;
        let mut reviews = QueryBuilder::<Sqlite>::new("WITH new (id, body) AS (");
        let body = "y".repeat(self.shape.review);
        reviews.push_values(ids, |mut row, (_, review)| {
            row.push_bind(&review[..]).push_bind(&body);
        });
        reviews.push(") UPDATE reviews SET status = 'resolved', body = new.body FROM new WHERE reviews.id = new.id");
        reviews.build().execute(&mut self.connection).await?;
        let mut audience = QueryBuilder::<Sqlite>::new("UPDATE review_audience SET pending = 0 WHERE review_id IN (");
        let mut list = audience.separated(", ");
        for (_, review) in ids {
            list.push_bind(&review[..]);
        }
        audience.push(")");
        audience.build().execute(&mut self.connection).await?;
        self.log(ids).await?;
        self.run("COMMIT").await
    }

    async fn steps(&mut self, ids: &[(Id, Id)]) -> Result<()> {
        if self.shape.steps == 0 {
            return Ok(());
        }
        let mut steps = QueryBuilder::<Sqlite>::new("INSERT INTO steps (run_id, id, body) ");
        let body = "x".repeat(self.shape.step);
        let rows = ids.iter().flat_map(|(run, _)| std::iter::repeat_n(run, self.shape.steps));
        steps.push_values(rows, |mut row, run| {
            row.push_bind(&run[..]).push_bind(random_id().to_vec()).push_bind(&body);
        });
        steps.build().execute(&mut self.connection).await?;
        Ok(())
    }

    async fn log(&mut self, ids: &[(Id, Id)]) -> Result<()> {
        let mut log = QueryBuilder::<Sqlite>::new("INSERT INTO log (commit_id, at, run_id, body) ");
        let (commit, body) = (random_id(), "x".repeat(self.shape.log));
        log.push_values(ids, |mut row, (run, _)| {
            row.push_bind(commit.to_vec()).push_bind(1_i64).push_bind(&run[..]).push_bind(&body);
        });
        log.build().execute(&mut self.connection).await?;
        Ok(())
    }

    async fn run(&mut self, sql: &'static str) -> Result<()> {
        sqlx::query(sql).execute(&mut self.connection).await?;
        Ok(())
    }
}
