//! Recreates the blocks of the index whose rows were changed.

use std::collections::{BTreeMap, BTreeSet};

use shared::log::Event;

use super::super::Error;
use super::super::db::{Arg, Conn, Row, Sql};
use super::super::log::{COLUMNS, read_rows};
use super::super::log_row::Form;
use super::BLOCK;
use super::terms::{Terms, as_text};

/// The number of pages of the full-text index that one statement merges.
const PAGES: i64 = 500;

impl Conn {
    /// Returns the number of the first row that is not indexed, and the statements that update the index for these
    /// rows, whose new entries are given.
    pub async fn reindexed(&mut self, changed: &BTreeMap<i64, Vec<Event>>) -> Result<(i64, Vec<Sql>), Error> {
        let next = self.indexed_to().await?;
        let blocks: BTreeSet<i64> =
            changed.keys().filter(|row| **row < next).map(|row| row.div_euclid(BLOCK)).collect();
        let mut statements = Vec::new();
        for block in blocks {
            let sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM log WHERE seq >= ").bind(block * BLOCK);
            let rows = self.fetch(sql.push(" AND seq < ").bind((block + 1) * BLOCK).push(" ORDER BY seq")).await?;
            let mut terms = Terms::default();
            for (place, events) in read_rows(self, &rows, Form::Whole).await? {
                let row = u32::try_from(place.seq.rem_euclid(BLOCK)).unwrap_or(0);
                let events = changed.get(&place.seq).unwrap_or(&events);
                for event in events {
                    terms.add(row, event);
                }
            }
            let words = as_text(&terms.tokens(), self.kind());
            let sql = Sql::new("UPDATE log_blocks SET masks = ").bind(Arg::Blob(Some(terms.masks())));
            if self.is_postgres() {
                let sql = sql.push(", terms = CAST(").bind(words).push(" AS tsvector)");
                statements.push(sql.push(" WHERE block = ").bind(block));
            } else {
                statements.push(sql.push(" WHERE block = ").bind(block));
                statements.push(Sql::new("DELETE FROM log_terms WHERE rowid = ").bind(block));
                let sql = Sql::new("INSERT INTO log_terms (rowid, terms) SELECT block, ").bind(words);
                statements.push(sql.push(" FROM log_blocks WHERE block = ").bind(block));
            }
        }
        Ok((next, statements))
    }

    /// Merges a part of a full-text index in SQLite, so that it loses removed words. `first` begins a merge of the
    /// whole index. Returns whether there is more to merge. PostgreSQL does this itself.
    pub async fn merge_words(&mut self, table: &str, first: bool) -> Result<bool, Error> {
        if self.is_postgres() {
            return Ok(false);
        }
        let before = self.total_changes().await?;
        let into = format!("INSERT INTO {table} ({table}, rank) VALUES ('merge', ");
        self.execute(Sql::new(&into).bind(if first { -PAGES } else { PAGES }).push(")")).await?;
        Ok(self.total_changes().await? - before >= 2)
    }

    async fn total_changes(&mut self) -> Result<i64, Error> {
        Ok(self.first(Sql::new("SELECT total_changes()"), Row::int).await?.unwrap_or(0))
    }
}
