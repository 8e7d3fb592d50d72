//! Creates the index of the log, in batches of blocks. The number of the first row that is not indexed is stored
//! together with them, so a crash loses and duplicates nothing, and only one of several servers indexes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use shared::id::RunId;
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::db::{Arg, Conn, Sql, on_blocking_thread};
use super::super::follow::{CommitFollower, Resume, follow};
use super::super::log::{COLUMNS, read_rows};
use super::super::log_row::Form;
use super::super::page_bytes::LOG_READ;
use super::super::{Commits, Error, Inner, Store};
use super::BLOCK;
use super::review_words::ReviewWords;
use super::terms::{KnownTerms, Terms, as_text};

/// The number of rows per transaction, since writers in SQLite wait meanwhile.
const AT_ONCE: i64 = 16 * BLOCK;
/// While others commit, the pause after each transaction is this many times as long as the transaction took.
const REST: u32 = 4;
/// If this many rows wait, pauses are only as long as the transaction, so that the index can catch up.
const FAR_BEHIND: i64 = 50_000;
/// The wait before the next look, while another server indexes.
const ELSEWHERE: Duration = Duration::from_secs(5);

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Indexed {
    /// All full blocks are indexed.
    All,
    /// This many rows wait.
    Some(i64),
    /// Another server is indexing.
    Elsewhere,
}

/// A block to store, with its terms.
struct NewBlock {
    number: i64,
    latest: i64,
    behind: i64,
    terms: Terms,
}

/// Indexes the log until the store is closed.
pub(in crate::store) async fn run(inner: Arc<Inner>) {
    let (stop, store) = (inner.stop.clone(), Store { inner });
    let commits = store.commits();
    follow(Indexer { commits: commits.clone(), store, indexed_to: None }, commits, stop).await;
}

struct Indexer {
    store: Store,
    commits: watch::Receiver<Commits>,
    /// The first row that this server has not indexed, after its last step. `None` before its first.
    indexed_to: Option<i64>,
}

impl CommitFollower for Indexer {
    type Error = Error;
    const TROUBLE: &'static str = "the log could not be indexed";
    const POLL: Duration = Duration::from_secs(5);
    const GATHER: Duration = Duration::from_millis(250);
    const AFTER_FAILURE: Duration = Duration::from_secs(5);

    async fn advance(&mut self) -> Result<Resume, Error> {
        self.commits.mark_unchanged();
        let begun = Instant::now();
        Ok(match self.store.index_log(&mut self.indexed_to, AT_ONCE).await? {
            Indexed::Some(waiting) => {
                let busy = self.commits.has_changed().unwrap_or(true);
                let rest = if busy && waiting < FAR_BEHIND { REST } else { u32::from(busy) };
                Resume::After(begun.elapsed() * rest)
            }
            Indexed::All => Resume::OnCommit,
            Indexed::Elsewhere => Resume::After(ELSEWHERE),
        })
    }
}

impl Store {
    /// Indexes the next full blocks, of at most `at_once` rows, which must be at least a block. `mine` is where this
    /// server's previous step ended; if another server has continued from there, indexing is left to it.
    pub(in crate::store) async fn index_log(&self, mine: &mut Option<i64>, at_once: i64) -> Result<Indexed, Error> {
        let (store, before) = (self.clone(), *mine);
        let (indexed, place) = on_blocking_thread(async move || store.index_some(before, at_once).await).await?;
        *mine = Some(place);
        Ok(indexed)
    }

    /// Like [`Self::index_log`]. Also returns where the index ends now.
    async fn index_some(&self, mine: Option<i64>, at_once: i64) -> Result<(Indexed, i64), Error> {
        let mut conn = self.inner.db.snapshot_on_this_thread().await?;
        let next = conn.indexed_to().await?;
        if mine.is_some_and(|mine| mine != next) {
            return Ok((Indexed::Elsewhere, next));
        }
        let head = conn.head().await?.seq;
        // The first row after all full blocks.
        let end = head.saturating_add(1).div_euclid(BLOCK) * BLOCK;
        if end <= next {
            return Ok((Indexed::All, next));
        }
        let sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM log WHERE seq >= ").bind(next).push(" AND seq < ");
        let rows = conn.fetch(sql.bind(end).push(" ORDER BY seq LIMIT ").bind(at_once)).await?;
        let cut = i64::try_from(rows.len()).unwrap_or(at_once) >= at_once;
        let last = rows.last().map(|row| row.int(0)).transpose()?;
        // If there may be more rows, the block of the last one may be incomplete.
        let to = match last {
            Some(last) if cut => (last + 1).div_euclid(BLOCK) * BLOCK,
            _ => end,
        };
        let (mut latest, mut behind) = conn.end_of_blocks().await?;
        let erasures = conn.last_erasure().await?;
        let mut blocks: Vec<NewBlock> = Vec::new();
        let (mut runs, mut known) = (BTreeSet::new(), KnownTerms::default());
        let of_full_blocks = rows.partition_point(|row| row.int(0).is_ok_and(|seq| seq < to));
        for rows in rows[..of_full_blocks].chunks(LOG_READ) {
            for (row, (place, events)) in rows.iter().zip(read_rows(&mut conn, rows, Form::Whole).await?) {
                let number = place.seq.div_euclid(BLOCK);
                if blocks.last().is_none_or(|block| block.number != number) {
                    latest = blocks.last().map_or(latest, |before| before.latest);
                    blocks.push(NewBlock { number, latest, behind, terms: Terms::default() });
                }
                let Some(block) = blocks.last_mut() else { continue };
                // An entry may be earlier than its row.
                let at = u32::try_from(place.seq.rem_euclid(BLOCK)).unwrap_or(0);
                for event in &events {
                    block.terms.add(at, event, &mut known);
                    behind = behind.max(latest.saturating_sub(event.at.0));
                    block.latest = block.latest.max(event.at.0);
                }
                block.behind = block.behind.max(behind);
                if events.iter().any(|event| event.kind.is_review()) {
                    runs.extend(row.uuid_opt(1)?.map(RunId));
                }
            }
        }
        // Read before others are kept waiting. Reviews that change meanwhile have newer entries.
        let words = conn.words_of_reviews(&runs).await?;
        conn.rollback().await?;
        if !self.write_blocks((next, to), erasures, &blocks, words).await? {
            return Ok((Indexed::Elsewhere, next));
        }
        Ok((if to < end { Indexed::Some(head - to) } else { Indexed::All }, to))
    }

    /// Stores blocks and the words of reviews, and moves the end of the index.
    /// Returns `false` if another server has moved it, or something was erased since the rows were read.
    async fn write_blocks(
        &self,
        (next, to): (i64, i64),
        erasures: u64,
        blocks: &[NewBlock],
        words: Vec<ReviewWords>,
    ) -> Result<bool, Error> {
        // Sorted before others are kept waiting.
        let terms: Vec<_> = blocks.iter().map(|block| (block.terms.masks(), block.terms.tokens())).collect();
        let mut conn = self.inner.db.write_on_this_thread().await?;
        // Data that were erased since the rows were read must not get into the index.
        if !conn.move_place(("log_index", "next"), next, to).await? || conn.last_erasure().await? != erasures {
            conn.rollback().await?;
            return Ok(false);
        }
        for (block, (masks, tokens)) in blocks.iter().zip(terms) {
            conn.put_block(block.number, (block.latest, block.behind), masks, &tokens).await?;
        }
        conn.put_review_words(words).await?;
        conn.commit().await?;
        Ok(true)
    }
}

impl Conn {
    /// Returns the latest time in the indexed blocks, and the longest time by which an entry was earlier than that.
    async fn end_of_blocks(&mut self) -> Result<(i64, i64), Error> {
        let sql = Sql::new("SELECT latest, behind FROM log_blocks ORDER BY block DESC LIMIT 1");
        let Some(row) = self.fetch_one(sql).await? else { return Ok((0, 0)) };
        Ok((row.int(0)?, row.int(1)?))
    }

    /// Stores a block: its number, its times `latest` and `behind`, and its terms.
    pub async fn put_block(
        &mut self,
        number: i64,
        (latest, behind): (i64, i64),
        masks: Vec<u8>,
        tokens: &[String],
    ) -> Result<(), Error> {
        let row = [number, latest, behind].map(Arg::from).into_iter().chain([Arg::Blob(Some(masks))]);
        let terms = as_text(tokens, self.kind());
        if self.is_postgres() {
            let sql = Sql::new("INSERT INTO log_blocks (block, latest, behind, masks, terms) VALUES (").list(row);
            self.execute(sql.push(", CAST(").bind(terms).push(" AS tsvector))")).await?;
        } else {
            let sql = Sql::new("INSERT INTO log_blocks (block, latest, behind, masks) ").values([row.collect()]);
            self.execute(sql).await?;
            let sql = Sql::new("INSERT INTO log_terms (rowid, terms) ");
            self.execute(sql.values([vec![number.into(), terms.into()]])).await?;
        }
        Ok(())
    }
}
