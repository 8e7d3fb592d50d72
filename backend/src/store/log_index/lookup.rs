//! Finds the blocks with the terms of a search.

use super::super::Error;
use super::super::db::{Conn, DatabaseKind, Row, Sql};
use super::super::words::Words;
use super::BLOCK;
use super::terms::{ANY_WORD, Term, rows_with, stem};

/// How many of the newest blocks PostgreSQL looks at one by one before it asks its full-text index.
const NEWEST: i64 = if cfg!(test) { 2 } else { 64 };
/// How many blocks a span has in the full-text index of PostgreSQL, as its migration says.
const SPAN: i64 = 1024;
/// In how many spans it looks at first, which is enough for what is neither common nor rare.
const FIRST_SPANS: i64 = 4;
/// In how many it looks at once after that. It looks at every block of them in a few tens of milliseconds.
const MOST_SPANS: i64 = 32;

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
    /// The block's number, from 0; it has the rows from `number * BLOCK` on, `BLOCK` at most.
    pub number: i64,
    /// A bit for each of its rows that can have what is sought.
    rows: u32,
}

impl Block {
    /// A row of its number and its masks.
    fn read(row: &Row, sought: &Sought) -> Result<Self, Error> {
        let rows = if sought.terms.is_empty() { u32::MAX } else { rows_with(&row.blob(1)?, &sought.terms) };
        Ok(Self { number: row.int(0)?, rows })
    }

    /// The numbers of the rows that can have it, the newest first.
    pub fn rows(&self) -> impl Iterator<Item = i64> + '_ {
        (0..BLOCK).rev().filter(|row| self.rows >> row & 1 == 1).map(|row| self.number * BLOCK + row)
    }
}

impl Conn {
    /// The newest blocks among these that have what is sought, at most so many.
    pub async fn blocks(&mut self, sought: &Sought, from: i64, to: i64, most: i64) -> Result<Vec<Block>, Error> {
        let expression = expression(sought, self.kind());
        if self.is_postgres() {
            return self.postgres_blocks(sought, &expression, (from, to), most).await;
        }
        // CROSS: SQLite reads the full-text index first, in its order.
        let sql = Sql::new("SELECT b.block, b.masks FROM log_terms t CROSS JOIN log_blocks b ON b.block = t.rowid ");
        let sql = sql.push("WHERE t.log_terms MATCH ").bind(expression).push(" AND t.rowid <= ").bind(to);
        let sql = sql.push(" AND t.rowid >= ").bind(from).push(" ORDER BY t.rowid DESC LIMIT ").bind(most);
        self.fetch(sql).await?.iter().map(|row| Block::read(row, sought)).collect()
    }

    /// The same in PostgreSQL. Its full-text index has no order, and finds every block that fits before the newest of them
    /// are taken: it is asked for some spans of blocks at a time, so that it never finds a whole log.
    async fn postgres_blocks(
        &mut self,
        sought: &Sought,
        expression: &str,
        (from, to): (i64, i64),
        most: i64,
    ) -> Result<Vec<Block>, Error> {
        // What many blocks have is found among a few. For the beginning of a word, the index would first gather all words
        // that begin so.
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

/// The newest of these blocks that fit, in PostgreSQL: it looks at each until there are enough.
pub(in crate::store) fn in_each(expression: &str, of: (i64, i64), most: i64) -> Sql {
    // COALESCE: a condition that no index has, whatever the planner takes the full-text index to cost.
    let sql = Sql::new("SELECT block, masks FROM log_blocks WHERE COALESCE(terms @@ CAST(").bind(expression);
    newest(sql.push(" AS tsquery), FALSE) AND "), of, most)
}

/// The same by the full-text index.
pub(in crate::store) fn in_spans(expression: &str, (from, to): (i64, i64), most: i64) -> Sql {
    // The planner sees neither what is sought nor, behind OFFSET, which blocks: so it takes neither for a reason to look at
    // every block.
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
