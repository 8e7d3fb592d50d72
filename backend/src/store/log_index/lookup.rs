//! Which blocks have what is sought.

use super::super::Error;
use super::super::db::{Conn, DatabaseKind, Sql};
use super::super::words::Words;
use super::BLOCK;
use super::terms::{ANY_WORD, Term, rows_with, stem};

/// What blocks are sought for: one of some terms, and all words. At least one of both is there.
#[derive(Debug, Clone)]
pub(in crate::store) struct Sought {
    /// None where any will do.
    pub terms: Vec<Term>,
    /// None where none is looked for.
    pub words: Option<Words>,
}

/// A block that was found.
#[derive(Debug, Clone)]
pub(in crate::store) struct Block {
    /// Its number.
    pub number: i64,
    /// A bit for each of its rows that can have what is sought.
    rows: u32,
}

impl Block {
    /// The numbers of the rows that can have it, the newest first.
    pub fn rows(&self) -> impl Iterator<Item = i64> + '_ {
        (0..BLOCK).rev().filter(|row| self.rows >> row & 1 == 1).map(|row| self.number * BLOCK + row)
    }
}

impl Conn {
    /// The newest blocks among these that have what is sought, at most so many.
    pub async fn blocks(&mut self, sought: &Sought, from: i64, to: i64, most: i64) -> Result<Vec<Block>, Error> {
        let expression = expression(sought, self.kind());
        let sql = if self.is_postgres() {
            let sql = Sql::new("SELECT block, masks FROM log_blocks WHERE terms @@ CAST(").bind(expression);
            sql.push(" AS tsquery) AND block <= ").bind(to).push(" AND block >= ").bind(from).push(" ORDER BY block")
        } else {
            // CROSS: SQLite reads the full-text index first, in its order.
            let sql =
                Sql::new("SELECT b.block, b.masks FROM log_terms t CROSS JOIN log_blocks b ON b.block = t.rowid ")
                    .push("WHERE t.log_terms MATCH ")
                    .bind(expression);
            sql.push(" AND t.rowid <= ").bind(to).push(" AND t.rowid >= ").bind(from).push(" ORDER BY t.rowid")
        };
        let mut blocks = Vec::new();
        for row in self.fetch(sql.push(" DESC LIMIT ").bind(most)).await? {
            let rows = if sought.terms.is_empty() { u32::MAX } else { rows_with(&row.blob(1)?, &sought.terms) };
            blocks.push(Block { number: row.int(0)?, rows });
        }
        Ok(blocks)
    }

    /// The first and the last indexed block that can have an entry of this time; both may be missing. `from` is a part
    /// of it, and `to` is not.
    pub async fn blocks_of_time(&mut self, from: Option<i64>, to: Option<i64>) -> Result<(i64, i64), Error> {
        let mut first = 0;
        let mut last = i64::MAX / BLOCK - 1;
        if let Some(from) = from {
            // All that comes before the first block up to which an entry is so late is earlier.
            let sql = Sql::new("SELECT block FROM log_blocks WHERE latest >= ").bind(from);
            let found = self.fetch_one(sql.push(" ORDER BY latest, block LIMIT 1")).await?;
            first = match found {
                Some(row) => row.int(0)?,
                None => self.indexed_to().await? / BLOCK,
            };
        }
        if let Some(to) = to {
            let sql = Sql::new("SELECT behind FROM log_blocks ORDER BY block DESC LIMIT 1");
            let behind = self.fetch_one(sql).await?.map(|row| row.int(0)).transpose()?.unwrap_or(0);
            // An entry that is earlier than `to` lies behind no later entry than this.
            let sql = Sql::new("SELECT block FROM log_blocks WHERE latest >= ").bind(to.saturating_add(behind));
            if let Some(row) = self.fetch_one(sql.push(" ORDER BY latest, block LIMIT 1")).await? {
                last = row.int(0)?;
            }
        }
        Ok((first, last))
    }
}

/// The same in the language of the database's full-text search.
fn expression(sought: &Sought, database: DatabaseKind) -> String {
    let (and, or) = database.either((" AND ", " OR "), (" & ", " | "));
    let quote = database.either('"', '\'');
    let quoted = |token: &str| format!("{quote}{token}{quote}");
    let mut parts = Vec::new();
    if !sought.terms.is_empty() {
        let terms: Vec<_> = sought.terms.iter().map(|term| quoted(&term.token())).collect();
        parts.push(format!("({})", terms.join(or)));
    }
    if let Some(words) = &sought.words {
        let words = words_in(words.iter().map(stem), database);
        parts.push(format!("(({words}){or}{})", quoted(ANY_WORD)));
    }
    parts.join(and)
}

/// That all of these begin words, in the language of the database's full-text search.
pub(super) fn words_in<'w>(words: impl Iterator<Item = &'w str>, database: DatabaseKind) -> String {
    let each = words.map(|word| database.either(format!("\"{word}\" *"), format!("'{word}':*")));
    each.collect::<Vec<_>>().join(database.either(" AND ", " & "))
}
