//! SQLite: numbers for log rows.
//!
//! Each number is given only once, even if rows are removed. SQLite keeps the largest one in `sqlite_sequence`, and
//! writes it with every row that has a larger number, which is one more page in each commit. So numbers are reserved
//! there in advance. The next number is the one after the last row: when runs are archived, the entry that records it
//! comes after their rows and stays, so the last row of the log is never removed. If it is gone nevertheless, because
//! someone emptied the table by hand, reserved numbers count as given.

use super::super::Error;
use super::super::db::{Conn, Row, Sql};

/// The number of row numbers that are reserved at a time.
pub(in crate::store) const RESERVED: i64 = 1024;

/// Returns the next numbers. The caller must write rows with all of them in the same transaction.
pub(super) async fn next(conn: &mut Conn, count: i64) -> Result<Vec<i64>, Error> {
    let reserved = conn.first(Sql::new("SELECT seq FROM sqlite_sequence WHERE name = 'log'"), Row::int).await?;
    let last = conn.first(Sql::new("SELECT MAX(seq) FROM log"), Row::int_opt).await?.flatten();
    let last = last.or(reserved).unwrap_or(0);
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
