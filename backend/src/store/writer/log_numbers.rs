//! SQLite: numbers for rows of the log.
//!
//! A number is given once, also where rows are removed: SQLite keeps the largest one in `sqlite_sequence`, and writes it
//! with every row whose number is larger, which is a page more in each commit. So some numbers are reserved there at a
//! time. The next number is that behind the last row: the rows of a run are archived with an entry that says so and
//! stays behind them, so the last row of the log is never removed. Where it has gone all the same, as when somebody
//! emptied the table by hand, what was reserved counts as given.

use super::super::Error;
use super::super::db::{Conn, Sql};

/// How many numbers are reserved at a time.
pub(in crate::store) const RESERVED: i64 = 1024;

/// The next numbers; whoever asks writes rows with all of them in the same transaction.
pub(super) async fn next(conn: &mut Conn, count: i64) -> Result<Vec<i64>, Error> {
    let number = async |conn: &mut Conn, sql: &str| -> Result<Option<i64>, Error> {
        Ok(conn.fetch_one(Sql::new(sql)).await?.map(|row| row.int_opt(0)).transpose()?.flatten())
    };
    let reserved = number(conn, "SELECT seq FROM sqlite_sequence WHERE name = 'log'").await?;
    let last = number(conn, "SELECT MAX(seq) FROM log").await?.or(reserved).unwrap_or(0);
    let end = last + count;
    match reserved {
        Some(reserved) if reserved < end => {
            let sql = Sql::new("UPDATE sqlite_sequence SET seq = ").bind(end + RESERVED);
            conn.execute(sql.push(" WHERE name = 'log'")).await?;
        }
        Some(_) => {}
        None => {
            let sql = Sql::new("INSERT INTO sqlite_sequence (name, seq) VALUES ('log', ").bind(end + RESERVED);
            conn.execute(sql.push(")")).await?;
        }
    }
    Ok((last + 1..=end).collect())
}
