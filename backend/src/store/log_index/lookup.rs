//! Which blocks have what is sought.

use super::super::Error;
use super::super::db::{Conn, DatabaseKind, Row, Sql};
use super::super::words::Words;
use super::BLOCK;
use super::terms::{ANY_WORD, Term, rows_with, stem};

/// How many of the newest blocks PostgreSQL looks through before it asks its full-text index.
const WINDOW: i64 = if cfg!(test) { 2 } else { 128 };
/// How many it looks through at once at most.
const MOST_SCANNED: i64 = 16 * WINDOW;
/// Where no more blocks of the whole log are to be expected, the index is asked: it finds all of them, of whatever time,
/// before it returns the newest.
const MOST_INDEXED: i64 = if cfg!(test) { 4 } else { 1024 };

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

    /// The same in PostgreSQL. Its full-text index has no order, so it is asked for what is rare only; what is common is
    /// soon found among the newest blocks.
    async fn postgres_blocks(
        &mut self,
        sought: &Sought,
        expression: &str,
        (from, mut to): (i64, i64),
        most: i64,
    ) -> Result<Vec<Block>, Error> {
        let fits = |sql: Sql| sql.push("terms @@ CAST(").bind(expression).push(" AS tsquery)");
        let between = |sql: Sql, to: i64| {
            sql.push(" FROM log_blocks WHERE block <= ").bind(to).push(" AND block >= ").bind(from)
        };
        let (mut blocks, mut looked_at, mut window) = (Vec::new(), 0, WINDOW);
        loop {
            // MATERIALIZED: these blocks are read by their numbers, whatever the planner takes the index to cost.
            let sql = between(Sql::new("WITH newest AS MATERIALIZED (SELECT block, masks, terms"), to);
            let sql = sql.push(" ORDER BY block DESC LIMIT ").bind(window).push(") SELECT block, masks, CAST(CASE WHEN ");
            let sql = fits(sql).push(" THEN 1 ELSE 0 END AS BIGINT) FROM newest ORDER BY block DESC");
            let rows = self.fetch(sql).await?;
            for row in &rows {
                if row.int(2)? == 1 {
                    blocks.push(Block::read(row, sought)?);
                }
            }
            let (found, scanned) = (count(&blocks), count(&rows));
            looked_at += scanned;
            if found >= most || scanned < window {
                break;
            }
            let Some(lowest) = rows.last().map(|row| row.int(0)).transpose()? else { break };
            to = lowest - 1;
            if to - from < MOST_SCANNED {
                window = MOST_SCANNED;
                continue;
            }
            if found * (self.indexed_to().await? / BLOCK) / looked_at <= MOST_INDEXED {
                // Without a condition on the block, the index is the only way that the planner can prefer.
                let sql = fits(Sql::new("WITH fitting AS MATERIALIZED (SELECT block, masks FROM log_blocks WHERE "));
                let sql = sql.push(") SELECT block, masks FROM fitting WHERE block <= ").bind(to);
                let sql = sql.push(" AND block >= ").bind(from).push(" ORDER BY block DESC LIMIT ").bind(most - found);
                for row in self.fetch(sql).await? {
                    blocks.push(Block::read(&row, sought)?);
                }
                break;
            }
            // As many as should have the rest.
            window = ((most - found) * looked_at / found).clamp(WINDOW, MOST_SCANNED);
        }
        blocks.truncate(usize::try_from(most).unwrap_or(usize::MAX));
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
