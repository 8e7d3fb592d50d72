//! Batches: rows of several tables that are written and deleted together.
//!
//! SQLite is a library call: it executes one statement for any number of rows, bound again for each. In PostgreSQL,
//! each statement is a round trip, so the whole batch is one statement with an array for each column: its text (and
//! with it the prepared statement) does not depend on the number of rows.

use std::collections::HashSet;
use std::fmt::Write as _;

use sqlx::error::BoxDynError;
use sqlx::postgres::PgArguments;
use sqlx::{Arguments as _, AssertSqlSafe};

use super::db::{Arg, Conn};
use super::driver_error::DriverError;
use super::postgres::add_array;
use super::sql::Values;

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

    /// Changes the rows with these keys. `statement` is the SQL up to the comparison with the keys.
    pub fn change(&mut self, table: &Table, statement: String, keys: Vec<Vec<Arg>>) {
        self.add(Some(table), WriteKind::ByKey, (statement, String::new()), keys);
    }

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
    pub async fn write(&mut self, batch: Batch) -> Result<(), DriverError> {
        self.write_counting(batch).await.map(|_| ())
    }

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

    /// PostgreSQL: writes a batch, and then evaluates a function with the number `count`, all in one statement. Returns
    /// the numbers that the function returns. It is called after all rows were written: its argument depends on how
    /// many they are.
    pub async fn write_and_call(&mut self, batch: Batch, function: &str, count: i64) -> Result<Vec<i64>, DriverError> {
        debug_assert_eq!(batch.repeated(), None, "a row of this table is in a batch twice");
        let Self::Postgres(conn) = self else { return Err(uneven("a function that only PostgreSQL has")) };
        let (sql, args) = one_statement_with_call(batch.0, function, count)?;
        let query = sqlx::query_scalar_with(AssertSqlSafe(sql), args);
        Ok(conn.with(async |conn| query.fetch_all(conn).await).await?)
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

    /// The statement for PostgreSQL, with an array for each column.
    fn for_all_rows(self, args: &mut PgArguments) -> Result<String, DriverError> {
        let Self { sql: (before, after), kind, rows, .. } = self;
        let mut places = Vec::new();
        for column in columns_of(rows)? {
            add_array(args, column).map_err(unencodable)?;
            places.push(format!("${}", args.len()));
        }
        let rows = format!("SELECT * FROM unnest({})", places.join(", "));
        Ok(match kind {
            WriteKind::Insert => format!("{before}{rows}{after}"),
            WriteKind::ByKey => format!("{before} IN ({rows})"),
        })
    }
}

/// The statement for PostgreSQL: `WITH w0 AS (…), w1 AS (…) …`, followed by the last write.
fn one_statement(mut writes: Vec<TableWrite>) -> Result<(String, PgArguments), DriverError> {
    let mut args = PgArguments::default();
    let Some(last) = writes.pop() else { return Ok((String::new(), args)) };
    let (mut sql, _) = parts(writes, "", &mut args)?;
    sql.push_str(&last.for_all_rows(&mut args)?);
    Ok((sql, args))
}

/// Like [`one_statement`], followed by a call of a function.
fn one_statement_with_call(
    writes: Vec<TableWrite>,
    function: &str,
    count: i64,
) -> Result<(String, PgArguments), DriverError> {
    let mut args = PgArguments::default();
    let (mut sql, count_of_parts) = parts(writes, " RETURNING 1", &mut args)?;
    args.add(count).map_err(unencodable)?;
    let _ = write!(sql, "SELECT n FROM {function}(${}", args.len());
    for part in 0..count_of_parts {
        let _ = write!(sql, " + 0 * (SELECT COUNT(*) FROM w{part})");
    }
    sql.push_str(") AS n");
    Ok((sql, args))
}

/// The `WITH` parts of a statement for PostgreSQL, each with `after` at its end, and their number.
fn parts(writes: Vec<TableWrite>, after: &str, args: &mut PgArguments) -> Result<(String, usize), DriverError> {
    let (mut sql, count) = (String::new(), writes.len());
    for (index, write) in writes.into_iter().enumerate() {
        let part = write.for_all_rows(args)?;
        let _ = write!(sql, "{} w{index} AS ({part}{after})", if index == 0 { "WITH" } else { "," });
    }
    if count > 0 {
        sql.push(' ');
    }
    Ok((sql, count))
}

/// The values of each column, one per row.
fn columns_of(rows: Vec<Vec<Arg>>) -> Result<Vec<Values>, DriverError> {
    let count = rows.len();
    let empty = |arg: &Arg| Values::like(arg, count);
    let mut columns: Vec<Values> = rows.first().map(|row| row.iter().map(empty).collect()).unwrap_or_default();
    for row in rows {
        if row.len() != columns.len() {
            return Err(uneven("rows of different lengths"));
        }
        for (column, arg) in columns.iter_mut().zip(row) {
            if !column.push(arg) {
                return Err(uneven("a column of two types"));
            }
        }
    }
    Ok(columns)
}

fn uneven(why: &str) -> DriverError {
    unencodable(why.into())
}

fn unencodable(error: BoxDynError) -> DriverError {
    DriverError::Postgres(sqlx::Error::Encode(error))
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
