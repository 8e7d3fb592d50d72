//! The index of the log: which blocks of rows have which terms and words. It is made of the log, off the path of whoever
//! commits, and stands at a place of its own; what lies behind that place is read from the log itself, so whoever looks
//! something up sees every entry at any moment.
//!
//! A block is 32 numbers of rows. The database's full-text index says which blocks have a term, and a mask beside the
//! block says which of its rows; the entries themselves are always looked at once more. So a block may name too much,
//! and the index stays small: what 32 rows have in common stands in it once.

mod indexer;
mod lookup;
mod review_words;
mod terms;

#[cfg(test)]
pub(super) use indexer::Indexed;
pub(super) use indexer::run;
pub(super) use lookup::{Block, Sought};
pub(super) use review_words::{ReviewSearch, padded};
pub(super) use terms::Term;

use shared::id::ReviewId;

use super::cursor::LogPlace;
use super::db::{Conn, Sql};
use super::{Error, Store};

/// How many numbers of rows a block has.
pub(super) const BLOCK: i64 = 32;

impl Store {
    /// Removes what is indexed of blocks that end before a row, and of these reviews: they are no longer stored. A block
    /// that is left too long finds nothing wrong, since its rows are looked for.
    pub async fn forget_index(&self, before: i64, reviews: &[ReviewId]) -> Result<(), Error> {
        let mut conn = self.inner.db.write().await?;
        conn.forget_blocks_before(before).await?;
        conn.forget_review_words(&reviews.iter().map(|review| review.0).collect::<Vec<_>>()).await?;
        Ok(conn.commit().await?)
    }
}

impl Conn {
    /// The number of the first row that is not indexed.
    pub async fn indexed_to(&mut self) -> Result<i64, Error> {
        let row = self.fetch_one(Sql::new("SELECT next FROM log_index")).await?;
        Ok(row.map(|row| row.int(0)).transpose()?.unwrap_or(0))
    }

    /// The row before the first that waits to be indexed; none where none does. A block is indexed once it is full.
    pub async fn index_waits_at(&mut self) -> Result<Option<LogPlace>, Error> {
        let (next, head) = (self.indexed_to().await?, self.head().await?.seq);
        Ok((head.saturating_add(1) / BLOCK > next / BLOCK).then_some(LogPlace { seq: next - 1, seen: u32::MAX }))
    }

    /// Removes the blocks that end before a row.
    pub async fn forget_blocks_before(&mut self, row: i64) -> Result<(), Error> {
        let first = row.div_euclid(BLOCK);
        if !self.is_postgres() {
            let sql = Sql::new("DELETE FROM log_terms WHERE rowid IN (SELECT block FROM log_blocks WHERE block < ");
            self.execute(sql.bind(first).push(")")).await?;
        }
        self.execute(Sql::new("DELETE FROM log_blocks WHERE block < ").bind(first)).await?;
        Ok(())
    }
}
