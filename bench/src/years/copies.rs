//! Copies of a run's rows: the store makes one run, and its rows are copied, each time with other ids, times and words.

use anyhow::{Context, Result, ensure};
use backend::store::packed::{pack, unpack};
use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::Value;
use shared::time::Timestamp;
use uuid::Uuid;

/// The placeholder in the template's texts that each copy replaces by its own words.
pub const WORDS: &str = "qqwordsqq";
/// Times and numbers within this distance of the run's creation, in microseconds, move with the copy.
const NEAR: i64 = 3_600_000_000;

/// The tables of a run: name, copied columns, and the column by which the run's rows are found. `review` means the
/// column `id` with the review's id.
pub const TABLES: [(&str, &str, &str); 7] = [
    ("runs", "id, flow, status, requested_by, created_at, format, state, carries_question, steps", "id"),
    (
        "reviews",
        "id, run_id, status, kind, severity, flow, requested_by, not_requester, created_at, search, body, due, \
         severity_rank, irreversible, claimed_until, tags, facts",
        "run_id",
    ),
    ("runs_by_status", "status, created_at, id", "id"),
    ("queue", "due, severity_rank, created_at, id, class, claimed_until, question", "review"),
    ("review_audience", "subject, created_at, review_id", "review_id"),
    ("steps", "run_id, id, body", "run_id"),
    // Each copy gets its own number and HMAC.
    ("log", "commit_id, at, run_id, body", "run_id"),
];
/// The table and column (`queue.class`) that is the same in all copies, though it is as long as an id.
const CLASS: (usize, usize) = (3, 4);

/// Rows of each table, in the order of [`TABLES`].
pub type Rows<T = Cell> = [Vec<Vec<T>>; TABLES.len()];

/// The rows of one run, with everything marked that a copy replaces.
pub struct Template {
    rows: Rows<CellTemplate>,
    ids: Vec<Uuid>,
    /// All rows of the table `classes` (`class`, `outline`), to which rows of the queue refer.
    pub classes: Vec<Vec<Cell>>,
    /// The number of log entries of the run.
    pub entries: usize,
}

/// The value of one column, as a copy has it. `Id` is an index into [`Template::ids`].
enum CellTemplate {
    Same(Cell),
    Id(usize),
    /// A time, in microseconds since the run's creation.
    Time(i64),
    Text(Vec<Piece>),
}

/// A piece of a text, as a copy has it.
enum Piece {
    Same(String),
    Id(usize),
    Time(i64),
    Words,
}

impl Template {
    /// Reads the rows of a run, as the store has written them. Fails if the run has values in `blobs`.
    pub fn of(conn: &Connection, run: Uuid, review: Uuid) -> Result<Self> {
        let mut found: Rows = Default::default();
        for ((table, columns, key), rows) in TABLES.into_iter().zip(&mut found) {
            let (id, key) = match key {
                "review" => (review, "id"),
                "review_id" => (review, key),
                key => (run, key),
            };
            let mut statement = conn
                .prepare(&format!("SELECT {columns} FROM {table} WHERE {key} = ?1 ORDER BY rowid"))
                .or_else(|_| conn.prepare(&format!("SELECT {columns} FROM {table} WHERE {key} = ?1")))?;
            let count = statement.column_count();
            let mut read = statement.query([id])?;
            while let Some(row) = read.next()? {
                let cell = |column| {
                    anyhow::Ok(match row.get(column)? {
                        Cell::Text(text) => Cell::Text(unpack(text)?),
                        other => other,
                    })
                };
                rows.push((0..count).map(cell).collect::<Result<_>>()?);
            }
        }
        let blobs: i64 = conn.query_row("SELECT COUNT(*) FROM blobs WHERE run_id = ?1", [run], |row| row.get(0))?;
        ensure!(blobs == 0, "the run is too large to be copied");
        let start = match found[0].first().and_then(|run| run.get(4)) {
            Some(Cell::Integer(at)) => *at,
            _ => anyhow::bail!("the run has no time"),
        };
        let mut ids = Vec::new();
        for (table, rows) in found.iter().enumerate() {
            for (column, cell) in rows.iter().flat_map(|row| row.iter().enumerate()) {
                if let Some(id) = id_in(cell).filter(|id| (table, column) != CLASS && !ids.contains(id)) {
                    ids.push(id);
                }
            }
        }
        let mut entries = 0;
        let log = TABLES.len() - 1;
        for row in &found[log] {
            let Some(Cell::Text(body)) = row.get(3) else { continue };
            let body: Value = serde_json::from_str(body)?;
            entries += body["events"].as_array().context("a row has no events")?.len();
        }
        let mut statement = conn.prepare("SELECT class, outline FROM classes")?;
        let classes = statement.query_map([], |row| Ok(vec![row.get(0)?, row.get(1)?]))?;
        let classes = classes.collect::<rusqlite::Result<_>>()?;
        let rows = found.map(|rows| {
            let row = |row: Vec<Cell>| row.into_iter().map(|cell| part(cell, start, &ids)).collect();
            rows.into_iter().map(row).collect()
        });
        Ok(Self { rows, ids, classes, entries })
    }

    /// Returns the rows of copy `number`, created at `at` (microseconds) and with these words.
    pub fn copy(&self, number: usize, at: i64, words: &str) -> Rows {
        let ids: Vec<Uuid> = (0..self.ids.len()).map(|id| id_of(number, id, at)).collect();
        let cell = |part: &CellTemplate| match part {
            CellTemplate::Same(cell) => cell.clone(),
            CellTemplate::Id(id) => Cell::Blob(ids[*id].as_bytes().to_vec()),
            CellTemplate::Time(after) => Cell::Integer(at + after),
            CellTemplate::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Same(same) => text.push_str(same),
                        Piece::Id(id) => text.push_str(&ids[*id].to_string()),
                        Piece::Time(after) => text.push_str(&Timestamp(at + after).to_string()),
                        Piece::Words => text.push_str(words),
                    }
                }
                Cell::Text(pack(text))
            }
        };
        self.rows.each_ref().map(|rows| rows.iter().map(|row| row.iter().map(cell).collect()).collect())
    }
}

/// Returns an id in time order, like the server's. `id` is its index in the template.
fn id_of(number: usize, id: usize, at: i64) -> Uuid {
    let milliseconds = u128::from(at.unsigned_abs() / 1000);
    let rest = (number as u128 * 64 + id as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15) & 0x3FFF_FFFF_FFFF_FFFF;
    Uuid::from_u128(milliseconds << 80 | 0x7000 << 64 | 0x8000_0000_0000_0000 | rest)
}

fn id_in(cell: &Cell) -> Option<Uuid> {
    match cell {
        Cell::Blob(bytes) => Uuid::from_slice(bytes).ok(),
        _ => None,
    }
}

fn part(cell: Cell, start: i64, ids: &[Uuid]) -> CellTemplate {
    match cell {
        Cell::Integer(at) if (at - start).abs() < NEAR => CellTemplate::Time(at - start),
        Cell::Text(text) => CellTemplate::Text(pieces(&text, start, ids)),
        cell => match id_in(&cell).and_then(|id| ids.iter().position(|known| *known == id)) {
            Some(id) => CellTemplate::Id(id),
            None => CellTemplate::Same(cell),
        },
    }
}

fn pieces(text: &str, start: i64, ids: &[Uuid]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut same = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let found = if let Some(behind) = rest.strip_prefix(WORDS) {
            Some((Piece::Words, behind))
        } else if let Some(id) = rest.get(..36).and_then(|id| id.parse::<Uuid>().ok())
            && let Some(id) = ids.iter().position(|known| *known == id)
        {
            Some((Piece::Id(id), &rest[36..]))
        } else if rest.starts_with("20")
            && let Some(end) = rest.find('"')
            && let Some(at) =
                rest.get(..end).filter(|time| time.ends_with('Z')).and_then(|time| time.parse::<Timestamp>().ok())
            && (at.0 - start).abs() < NEAR
        {
            Some((Piece::Time(at.0 - start), &rest[end..]))
        } else {
            None
        };
        let Some((piece, behind)) = found else {
            same.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        if !same.is_empty() {
            pieces.push(Piece::Same(std::mem::take(&mut same)));
        }
        pieces.push(piece);
        rest = behind;
    }
    pieces.push(Piece::Same(same));
    pieces
}
