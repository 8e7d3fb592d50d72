//! Batches: rows of several tables that are written and deleted together.
//!
//! SQLite is a library call: it executes one statement for any number of rows, bound again for each. In PostgreSQL,
//! each statement is a round trip, so the whole batch is one statement with an array for each column: its text (and
//! with it the prepared statement) does not depend on the number of rows.
//!
//! Imports the connection of `db` only.

use std::collections::HashSet;
use std::fmt::Write as _;

use sqlx::postgres::PgArguments;
use sqlx::{Arguments as _, AssertSqlSafe};
use uuid::Uuid;

use super::db::{Arg, Conn};
use super::driver_error::DriverError;

/// A table as batches write to it.
pub(super) struct Table {
    pub name: &'static str,
    /// The key columns, in the order of an index. They are the first columns of a row.
    pub key: &'static str,
    /// The remaining columns of a row, in its order.
    pub others: &'static str,
}

impl Table {
    /// The INSERT statement, up to the rows.
    pub fn insert(&self) -> String {
        let Self { name, key, others } = self;
        format!("INSERT INTO {name} ({key}{}{others}) ", if others.is_empty() { "" } else { ", " })
    }

    /// The DELETE statement, up to the keys.
    pub fn delete(&self) -> String {
        format!("DELETE FROM {} WHERE ({})", self.name, self.key)
    }
}

/// Writes that are made together, table by table; SQLite makes them in this order. No row may be in a batch twice,
/// since in PostgreSQL no part of the statement sees what another part writes.
#[derive(Default)]
pub(super) struct Batch(Vec<TableWrite>);

/// A write to one table.
struct TableWrite {
    /// The table, and the number of its key columns. `None` if the caller supplied the statement.
    table: Option<(&'static str, usize)>,
    /// The SQL before and after the rows.
    sql: (String, String),
    /// Whether rows are inserted, or are changed or deleted by their keys.
    kind: WriteKind,
    /// The rows, all with the same number and types of columns.
    rows: Vec<Vec<Arg>>,
}

#[derive(Clone, Copy)]
enum WriteKind {
    Insert,
    ByKey,
}

impl Batch {
    /// Inserts rows. `on_conflict` is the SQL after the rows.
    pub fn insert(&mut self, table: &Table, rows: Vec<Vec<Arg>>, on_conflict: &str) {
        self.add(Some(table), WriteKind::Insert, (table.insert(), on_conflict.to_owned()), rows);
    }

    /// Deletes the rows with these keys.
    pub fn delete(&mut self, table: &Table, keys: Vec<Vec<Arg>>) {
        self.add(Some(table), WriteKind::ByKey, (table.delete(), String::new()), keys);
    }

    fn add(&mut self, table: Option<&Table>, kind: WriteKind, sql: (String, String), rows: Vec<Vec<Arg>>) {
        let table = table.map(|table| (table.name, table.key.split(',').count()));
        if !rows.is_empty() {
            self.0.push(TableWrite { table, sql, kind, rows });
        }
    }

    /// Returns the table of a row that is in the batch twice, if any.
    fn repeated(&self) -> Option<&'static str> {
        let mut seen = HashSet::new();
        let tables = self.0.iter().filter_map(|write| Some((write.table?, &write.rows)));
        let mut rows = tables.flat_map(|((table, key), rows)| rows.iter().map(move |row| (table, row.get(..key))));
        rows.find(|row| !seen.insert(*row)).map(|(table, _)| table)
    }
}

impl Conn {
    /// Writes a batch.
    pub async fn write(&mut self, batch: Batch) -> Result<(), DriverError> {
        self.write_counting(batch).await.map(|_| ())
    }

    /// Inserts rows into one table.
    pub async fn insert(&mut self, table: &Table, rows: Vec<Vec<Arg>>, on_conflict: &str) -> Result<(), DriverError> {
        let mut batch = Batch::default();
        batch.insert(table, rows, on_conflict);
        self.write(batch).await
    }

    /// Inserts rows with the SQL that comes before and after them.
    pub async fn insert_by(&mut self, into: String, rows: Vec<Vec<Arg>>, after: &str) -> Result<(), DriverError> {
        let mut batch = Batch::default();
        batch.add(None, WriteKind::Insert, (into, after.to_owned()), rows);
        self.write(batch).await
    }

    /// Deletes rows of one table by their keys. Returns how many were deleted.
    pub async fn delete_rows(&mut self, table: &Table, keys: Vec<Vec<Arg>>) -> Result<u64, DriverError> {
        let mut batch = Batch::default();
        batch.delete(table, keys);
        self.write_counting(batch).await
    }

    /// Changes or deletes rows by their keys. `statement` is the SQL up to the comparison with the keys. Returns how
    /// many rows were affected.
    pub async fn change_by(&mut self, statement: String, keys: Vec<Vec<Arg>>) -> Result<u64, DriverError> {
        let mut batch = Batch::default();
        batch.add(None, WriteKind::ByKey, (statement, String::new()), keys);
        self.write_counting(batch).await
    }

    /// Writes a batch. Returns how many rows the last statement affected.
    async fn write_counting(&mut self, batch: Batch) -> Result<u64, DriverError> {
        debug_assert_eq!(batch.repeated(), None, "a row of this table is in a batch twice");
        let Batch(writes) = batch;
        let mut changed = 0;
        match self {
            Self::Sqlite(conn) => {
                for write in writes {
                    changed = conn.execute_each(write.for_each_row(), write.rows).await?;
                }
            }
            Self::Postgres(conn) if !writes.is_empty() => {
                let (sql, args) = one_statement(writes)?;
                let query = sqlx::query_with(AssertSqlSafe(sql), args);
                changed = conn.with(async |conn| query.execute(conn).await).await?.rows_affected();
            }
            Self::Postgres(_) => {}
        }
        Ok(changed)
    }
}

impl TableWrite {
    /// The statement for SQLite, executed once per row: given a list of keys, SQLite would only use the first column of
    /// the index.
    fn for_each_row(&self) -> String {
        let places = vec!["?"; self.rows.first().map_or(0, Vec::len)].join(", ");
        let (before, after) = &self.sql;
        match self.kind {
            WriteKind::Insert => format!("{before}VALUES ({places}){after}"),
            WriteKind::ByKey => format!("{before} = ({places})"),
        }
    }
}

/// The statement for PostgreSQL: `WITH w0 AS (…), w1 AS (…) …`, followed by the last write.
fn one_statement(writes: Vec<TableWrite>) -> Result<(String, PgArguments), DriverError> {
    let (mut sql, mut args, mut bound) = (String::new(), PgArguments::default(), 0);
    let last = writes.len() - 1;
    for (index, TableWrite { sql: (before, after), kind, rows, .. }) in writes.into_iter().enumerate() {
        if index < last {
            let _ = write!(sql, "{}w{index} AS (", if index == 0 { "WITH " } else { ", " });
        } else if last > 0 {
            sql.push(' ');
        }
        let columns = columns_of(rows)?;
        let places: Vec<String> = (bound + 1..=bound + columns.len()).map(|number| format!("${number}")).collect();
        bound += columns.len();
        let rows = format!("SELECT * FROM unnest({})", places.join(", "));
        let _ = match kind {
            WriteKind::Insert => write!(sql, "{before}{rows}{after}"),
            WriteKind::ByKey => write!(sql, "{before} IN ({rows})"),
        };
        if index < last {
            sql.push(')');
        }
        for column in columns {
            match column {
                Column::Int(values) => args.add(values),
                Column::Text(values) => args.add(values),
                Column::Blob(values) => args.add(values),
                Column::Uuid(values) => args.add(values),
            }
            .map_err(|error| DriverError::Postgres(sqlx::Error::Encode(error)))?;
        }
    }
    Ok((sql, args))
}

/// The values of one column, one per row.
enum Column {
    Int(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    Blob(Vec<Option<Vec<u8>>>),
    Uuid(Vec<Option<Uuid>>),
}

fn columns_of(rows: Vec<Vec<Arg>>) -> Result<Vec<Column>, DriverError> {
    let count = rows.len();
    let empty = |arg: &Arg| match arg {
        Arg::Int(_) => Column::Int(Vec::with_capacity(count)),
        Arg::Text(_) => Column::Text(Vec::with_capacity(count)),
        Arg::Blob(_) => Column::Blob(Vec::with_capacity(count)),
        Arg::Uuid(_) => Column::Uuid(Vec::with_capacity(count)),
    };
    let mut columns: Vec<Column> = rows.first().map(|row| row.iter().map(empty).collect()).unwrap_or_default();
    for row in rows {
        if row.len() != columns.len() {
            return Err(uneven("rows of different lengths"));
        }
        for (column, arg) in columns.iter_mut().zip(row) {
            match (column, arg) {
                (Column::Int(values), Arg::Int(value)) => values.push(value),
                (Column::Text(values), Arg::Text(value)) => values.push(value),
                (Column::Blob(values), Arg::Blob(value)) => values.push(value),
                (Column::Uuid(values), Arg::Uuid(value)) => values.push(value),
                _ => return Err(uneven("a column of two types")),
            }
        }
    }
    Ok(columns)
}

fn uneven(why: &str) -> DriverError {
    DriverError::Postgres(sqlx::Error::Encode(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_in_a_batch_once() {
        let queue = Table { name: "queue", key: "due, id", others: "class" };
        let other = Table { name: "reviews", key: "due, id", others: "" };
        let mut batch = Batch::default();
        batch.delete(&queue, vec![vec![Arg::from(1_i64), Arg::from("a")], vec![Arg::from(2_i64), Arg::from("a")]]);
        batch.insert(&queue, vec![vec![Arg::from(3_i64), Arg::from("a"), Arg::from("class")]], "");
        batch.insert(&other, vec![vec![Arg::from(1_i64), Arg::from("a")]], "");
        assert_eq!(batch.repeated(), None);
        batch.insert(&queue, vec![vec![Arg::from(2_i64), Arg::from("a"), Arg::from("class")]], "");
        assert_eq!(batch.repeated(), Some("queue"), "it is removed and written");
    }
}
