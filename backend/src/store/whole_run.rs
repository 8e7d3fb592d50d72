//! All stored data of a run, for writing them elsewhere. Unreadable data are an error here, not replaced.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::{Value, json};
use shared::id::RunId;
use shared::log::Event;
use shared::review::Review;
use shared::run::Step;
use shared::time::Timestamp;

use super::blobs::{Blobs, Reader};
use super::db::{Conn, Row, Sql};
use super::log::{COLUMNS, whole_rows};
use super::log_row::Form;
use super::page_bytes::LOG_READ;
use super::{Error, Store};
use crate::engine::RunState;

/// A run with everything that belongs to it, read from one snapshot.
pub struct WholeRun {
    /// The state, with large values restored.
    pub state: RunState,
    /// All steps, in order.
    pub steps: Vec<Step>,
    /// The reviews, in the order in which they were requested.
    pub reviews: Vec<Review>,
    /// The deliveries about these reviews and the run itself, as JSON.
    pub deliveries: Vec<Value>,
    /// The log rows of the run.
    pub rows: RunRows,
}

/// The log rows of a run. They are read a few at a time, since each contains its review with all large values, even if
/// other rows contain the same values.
pub struct RunRows {
    conn: Conn,
    run: RunId,
    blobs: Blobs,
    stored: Vec<Row>,
    /// The number of rows in `stored` that were read.
    begun: usize,
    read: VecDeque<RunRow>,
}

/// A log row of a run.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// The number of the row in the log.
    pub number: i64,
    /// The time of its commit.
    pub at: Timestamp,
    /// The inputs of the engine, with which the run can be replayed.
    pub inputs: Value,
    /// The entries, in the form that is sealed.
    pub entries: Vec<Event>,
}

/// The inputs in the body of a log row.
#[derive(Deserialize)]
struct RowInputs {
    #[serde(default)]
    inputs: Value,
}

impl Store {
    /// Reads everything that belongs to a run. `None` if the run does not exist.
    pub async fn whole_run(&self, id: RunId) -> Result<Option<WholeRun>, Error> {
        let conn = self.inner.db.snapshot().await?;
        conn.whole_run(id).await
    }
}

impl RunRows {
    /// The number of the last row. `None` if there are no rows.
    pub fn last(&self) -> Option<i64> {
        self.stored.last().and_then(|row| row.int(0).ok())
    }

    /// Returns the next row in the order of the log, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RunRow>, Error> {
        if self.read.is_empty() {
            let stored = &self.stored[self.begun..];
            let stored = &stored[..stored.len().min(LOG_READ)];
            self.begun += stored.len();
            let entries = whole_rows(Reader::verifying(), &mut self.conn, stored, Form::Sealed).await?;
            let mut reader = Reader::verifying();
            for row in stored {
                reader.add(self.run.0, row.text(2));
            }
            let inputs = reader.finish::<RowInputs>("a row of the log", &mut self.conn, &mut self.blobs).await?;
            for ((row, (place, entries)), inputs) in stored.iter().zip(entries).zip(inputs) {
                let entries = entries.map_err(|why| Error::Stored(format!("row {} of the log: {why}", place.seq)))?;
                let (number, at) = (place.seq, Timestamp(row.int(3)?));
                self.read.push_back(RunRow { number, at, inputs: inputs.inputs, entries });
            }
        }
        Ok(self.read.pop_front())
    }
}

impl Conn {
    async fn whole_run(mut self, id: RunId) -> Result<Option<WholeRun>, Error> {
        let of_run = |sql: &str, order: &str| Sql::new(sql).bind(id.0).push(order);
        let Some(row) = self.fetch_one(of_run("SELECT state, steps FROM runs WHERE id = ", "")).await? else {
            return Ok(None);
        };
        let mut blobs = Blobs::default();
        let mut reader = Reader::verifying();
        reader.add_state(id.0, Ok(row.text(0)?));
        let Some(state) = reader.finish("the state", &mut self, &mut blobs).await?.pop() else { return Ok(None) };
        let mut reader = Reader::verifying();
        for row in self.fetch(of_run("SELECT body FROM steps WHERE run_id = ", " ORDER BY position")).await? {
            reader.add(id.0, row.text(0));
        }
        let mut steps = match row.text_opt(1)? {
            Some(column) => self.steps_in_run(id.0, column, &mut blobs).await?,
            None => Vec::new(),
        };
        steps.extend(reader.finish::<Step>("a step", &mut self, &mut blobs).await?);
        let mut reader = Reader::verifying();
        for row in self.fetch(of_run("SELECT body FROM reviews WHERE run_id = ", " ORDER BY created_at, id")).await? {
            reader.add(id.0, row.text(0));
        }
        let reviews = reader.finish("a review", &mut self, &mut blobs).await?;
        let deliveries = self.deliveries_of_run(id).await?;
        let sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM log WHERE run_id = ").bind(id.0).push(" ORDER BY seq");
        let stored = self.fetch(sql).await?;
        let rows = RunRows { conn: self, run: id, blobs, stored, begun: 0, read: VecDeque::new() };
        Ok(Some(WholeRun { state, steps, reviews, deliveries, rows }))
    }

    async fn deliveries_of_run(&mut self, id: RunId) -> Result<Vec<Value>, Error> {
        const OF_DELIVERY: &str = "d.id, d.channel, d.target, d.event, d.review_id, d.status, d.error, d.created_at";
        let sql = Sql::new("SELECT ").push(OF_DELIVERY).push(" FROM deliveries d JOIN reviews v ON v.id = d.review_id");
        let sql = sql.push(" WHERE v.run_id = ").bind(id.0).push(" UNION ALL SELECT ").push(OF_DELIVERY);
        let sql = sql.push(" FROM deliveries d WHERE d.review_id IS NULL AND d.run_id = ").bind(id.0);
        // By the time, then by the id.
        let rows = self.fetch(sql.push(" ORDER BY 8, 1")).await?;
        let read = rows.iter().map(|row| {
            Ok::<_, Error>(json!({
                "id": row.uuid(0)?, "channel": row.text(1)?, "target": row.text(2)?, "event": row.text(3)?,
                "review_id": row.uuid_opt(4)?, "status": row.text(5)?, "error": row.text_opt(6)?,
                "created_at": Timestamp(row.int(7)?),
            }))
        });
        read.collect()
    }
}
