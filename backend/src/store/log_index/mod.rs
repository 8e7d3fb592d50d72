//! The index of the log: which blocks of rows have which terms and words. It is created from the log, off the path of
//! commits. Rows that are not indexed yet are read from the log itself, so a lookup always finds every entry.
//!
//! A block is a range of 32 row numbers. The database's full-text index says which blocks have a term, and a mask in
//! the block says which of its rows have it. The entries themselves are always checked, so a block may match by
//! mistake. The index stays small, since a term is stored once for all rows of a block.

mod gathered;
mod indexer;
mod lookup;
mod reindex;
mod review_words;
mod terms;

pub(super) use indexer::run;
#[cfg(test)]
pub(super) use indexer::{IndexProgress, Indexed};
pub(super) use lookup::{Block, Sought};
#[cfg(test)]
pub(super) use lookup::{in_each, in_spans};
pub(super) use review_words::{ReviewSearch, WordIndex, padded};
pub(super) use terms::Term;

use std::collections::BTreeSet;

use super::Error;
use super::cursor::LogPlace;
use super::db::{Conn, Row, Sql};

/// The number of row numbers in a block.
pub(super) const BLOCK: i64 = 32;

impl Conn {
    /// Returns the number of the first row that is not indexed.
    pub async fn indexed_to(&mut self) -> Result<i64, Error> {
        Ok(self.first(Sql::new("SELECT next FROM log_index"), Row::int).await?.unwrap_or(0))
    }

    /// Like [`Self::indexed_to`]. Until the end of this transaction, no server indexes more.
    pub async fn hold_index(&mut self) -> Result<i64, Error> {
        // SQLite has only one writer anyway.
        let lock = if self.is_postgres() { " FOR UPDATE" } else { "" };
        Ok(self.first(Sql::new("SELECT next FROM log_index").push(lock), Row::int).await?.unwrap_or(0))
    }

    /// Returns the place before the first row that waits to be indexed. `None` if none does. A block is indexed once it
    /// is full.
    pub async fn index_waits_at(&mut self) -> Result<Option<LogPlace>, Error> {
        let (next, head) = (self.indexed_to().await?, self.head().await?.seq);
        Ok((head.saturating_add(1) / BLOCK > next / BLOCK).then_some(LogPlace { seq: next - 1, seen: u32::MAX }))
    }

    /// Removes blocks whose rows were all removed from the log; `rows` are the removed rows. A block that is left over
    /// does no harm, since its rows are not found.
    pub async fn forget_blocks(&mut self, rows: &[i64]) -> Result<(), Error> {
        let blocks: BTreeSet<i64> = rows.iter().map(|row| row.div_euclid(BLOCK)).collect();
        let sql = Sql::new("SELECT block FROM log_blocks WHERE block").among(blocks);
        let sql = sql.push(" AND NOT EXISTS (SELECT 1 FROM log WHERE seq >= block * ").bind(BLOCK);
        let empty = self.all(sql.push(" AND seq < (block + 1) * ").bind(BLOCK).push(")"), Row::int).await?;
        let of_terms = (!self.is_postgres()).then_some("DELETE FROM log_terms WHERE rowid");
        for remove in of_terms.into_iter().chain(["DELETE FROM log_blocks WHERE block"]) {
            self.execute(Sql::new(remove).among(empty.iter().copied())).await?;
        }
        Ok(())
    }
}
