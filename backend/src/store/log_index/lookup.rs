//! Finds the blocks that may match a search.

use super::super::Error;
use super::super::db::{Conn, DatabaseKind, Row, Sql};
use super::super::words::Words;
use super::BLOCK;
use super::terms::{ANY_WORD, Term, rows_with, stem};

/// The number of the newest blocks that PostgreSQL examines one by one before it uses the full-text index.
const NEWEST: i64 = if cfg!(test) { 2 } else { 64 };
/// The number of blocks in a span of PostgreSQL's full-text index, as in the migration.
const SPAN: i64 = 1024;
/// The number of spans that are examined first: enough for terms that are neither common nor rare.
const FIRST_SPANS: i64 = 4;
/// The number of spans that are examined at once after that. Examining all their blocks takes a few tens of
/// milliseconds.
const MOST_SPANS: i64 = 32;

/// The condition on blocks: one of these terms, and all of these words. At least one of the two is set.
#[derive(Debug, Clone)]
pub(in crate::store) struct Sought {
    /// The terms; if empty, any block matches.
    pub terms: Vec<Term>,
    /// The words. `None` if no words are searched.
    pub words: Option<Words>,
}

/// A block that may match.
#[derive(Debug, Clone)]
pub(in crate::store) struct Block {
    /// The block's number, from 0. Its rows have the numbers from `number * BLOCK` on, at most `BLOCK` of them.
    pub number: i64,
    /// A bit for each row that may match.
    rows: u32,
}

impl Block {
    /// Reads a block from the columns for its number and its masks.
    fn read(row: &Row, sought: &Sought) -> Result<Self, Error> {
        let rows = if sought.terms.is_empty() { u32::MAX } else { rows_with(&row.blob(1)?, &sought.terms) };
        Ok(Self { number: row.int(0)?, rows })
    }

    /// The numbers of the rows that may match, newest first.
    pub fn rows(&self) -> impl Iterator<Item = i64> + '_ {
        (0..BLOCK).rev().filter(|row| self.rows >> row & 1 == 1).map(|row| self.number * BLOCK + row)
    }
}

impl Conn {
    /// Returns at most `most` of the newest blocks from `from` to `to` that may match.
    pub async fn blocks(&mut self, sought: &Sought, from: i64, to: i64, most: i64) -> Result<Vec<Block>, Error> {
        let expression = expression(sought, self.kind());
        if self.is_postgres() {
            return self.postgres_blocks(sought, &expression, (from, to), most).await;
        }
        // With CROSS JOIN, SQLite reads the full-text index first, in its order.
        let sql = Sql::new("SELECT b.block, b.masks FROM log_terms t CROSS JOIN log_blocks b ON b.block = t.rowid ");
        let sql = sql.push("WHERE t.log_terms MATCH ").bind(expression).push(" AND t.rowid <= ").bind(to);
        let sql = sql.push(" AND t.rowid >= ").bind(from).push(" ORDER BY t.rowid DESC LIMIT ").bind(most);
        self.fetch(sql).await?.iter().map(|row| Block::read(row, sought)).collect()
    }

    /// Like [`Self::blocks`], in PostgreSQL. Its full-text index has no order, and finds every match before the newest
    /// are taken. So it is asked for a few spans at a time, and never finds the matches of a whole log.
    async fn postgres_blocks(
        &mut self,
        sought: &Sought,
        expression: &str,
        (from, to): (i64, i64),
        most: i64,
    ) -> Result<Vec<Block>, Error> {
        // Common terms are found in a few blocks. For a prefix, the index would first collect all words that begin with
        // it.
        let mut low = from.max(to - NEWEST + 1);
        let mut rows = self.fetch(in_each(expression, (low, to), most)).await?;
        let mut spans = FIRST_SPANS;
        while low > from && count(&rows) < most {
            let to = low - 1;
            low = from.max((to / SPAN + 1 - spans) * SPAN);
            rows.extend(self.fetch(in_spans(expression, (low, to), most - count(&rows))).await?);
            spans = MOST_SPANS;
        }
        rows.iter().map(|row| Block::read(row, sought)).collect()
    }

    /// Returns the first and the last indexed block that may have an entry in this time range. Blocks of these numbers
    /// need not exist. `from` is inclusive, `to` exclusive.
    pub async fn blocks_of_time(&mut self, from: Option<i64>, to: Option<i64>) -> Result<(i64, i64), Error> {
        let mut first = 0;
        let mut last = i64::MAX / BLOCK - 1;
        if let Some(from) = from {
            // All blocks before the first one whose latest time is in the range are too early.
            let sql = Sql::new("SELECT block FROM log_blocks WHERE latest >= ").bind(from);
            first = match self.first(sql.push(" ORDER BY latest, block LIMIT 1"), Row::int).await? {
                Some(block) => block,
                None => self.indexed_to().await? / BLOCK,
            };
        }
        if let Some(to) = to {
            let sql = Sql::new("SELECT behind FROM log_blocks ORDER BY block DESC LIMIT 1");
            let behind = self.first(sql, Row::int).await?.unwrap_or(0);
            // No entry is earlier than the latest one before it by more than `behind`.
            let sql = Sql::new("SELECT block FROM log_blocks WHERE latest >= ").bind(to.saturating_add(behind));
            last = self.first(sql.push(" ORDER BY latest, block LIMIT 1"), Row::int).await?.unwrap_or(last);
        }
        Ok((first, last))
    }
}

/// Selects the newest matching blocks in PostgreSQL, by examining one after the other.
pub(in crate::store) fn in_each(expression: &str, of: (i64, i64), most: i64) -> Sql {
    // With COALESCE, the condition matches no index, so the planner does not use the full-text index.
    let sql = Sql::new("SELECT block, masks FROM log_blocks WHERE COALESCE(terms @@ CAST(").bind(expression);
    newest(sql.push(" AS tsquery), FALSE) AND "), of, most)
}

/// Like [`in_each`], by the full-text index.
pub(in crate::store) fn in_spans(expression: &str, (from, to): (i64, i64), most: i64) -> Sql {
    // The planner sees neither the searched terms nor, because of OFFSET, the range of blocks. So neither makes it
    // prefer examining every block.
    let sql = Sql::new("SELECT block, masks FROM (SELECT block, masks FROM log_blocks WHERE terms @@ (SELECT CAST(");
    let sql = sql.bind(expression).push(" AS tsquery)) AND ARRAY[block / 1024] && (SELECT array_agg(span) FROM ");
    let sql = sql.push("generate_series(").bind(from / SPAN).push(", ").bind(to / SPAN).push(") AS spans (span)) ");
    newest(sql.push("OFFSET 0) AS fitting WHERE "), (from, to), most)
}

fn newest(sql: Sql, (from, to): (i64, i64), most: i64) -> Sql {
    let sql = sql.push("block >= ").bind(from).push(" AND block <= ").bind(to);
    sql.push(" ORDER BY block DESC LIMIT ").bind(most)
}

fn count<T>(rows: &[T]) -> i64 {
    i64::try_from(rows.len()).unwrap_or(i64::MAX)
}

/// The condition in the language of the database's full-text search.
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

/// The condition that all of these are prefixes of words, in the language of the database's full-text search.
pub(super) fn words_in<'w>(words: impl Iterator<Item = &'w str>, database: DatabaseKind) -> String {
    let each = words.map(|word| database.either(format!("\"{word}\" *"), format!("'{word}':*")));
    each.collect::<Vec<_>>().join(database.either(" AND ", " & "))
}
