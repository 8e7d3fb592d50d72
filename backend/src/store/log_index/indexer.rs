//! Creates the index of the log, in batches of blocks. The number of the first row that is not indexed is stored
//! together with them, so a crash loses and duplicates nothing, and only one of several servers indexes. This server's
//! own rows are gathered from memory after each commit; all others are read.

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
use super::super::recent_rows::RecentRows;
use super::super::sqlite::RunsOn;
use super::super::{Commits, Error, Inner, Store};
use super::BLOCK;
use super::gathered::{Gathered, NewBlock};
use super::review_words::ReviewWords;
use super::terms::as_text;

/// The number of rows per transaction, since writers in SQLite wait meanwhile.
const AT_ONCE: i64 = 16 * BLOCK;
/// The shortest time between two transactions of an index that is not behind, unless there are [`AT_ONCE`] rows.
const INTERVAL: Duration = Duration::from_millis(250);
/// While others commit, the pause after each transaction is this many times as long as the transaction took.
const REST: u32 = 4;
/// If this many rows wait, pauses are only as long as the transaction, so that the index can catch up.
const FAR_BEHIND: i64 = 50_000;
/// The wait before the next look, while another server indexes.
const OTHER_SERVER_PAUSE: Duration = Duration::from_secs(5);

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

/// How far this server has come.
#[derive(Default)]
pub(in crate::store) struct IndexProgress {
    /// The first row that is not indexed, after the last step. `None` before the first step.
    indexed_to: Option<i64>,
    /// The rows from there on that are gathered. `None` if they have to be read.
    gathered: Option<Gathered>,
}

impl IndexProgress {
    fn at(indexed_to: i64) -> Self {
        Self { indexed_to: Some(indexed_to), gathered: None }
    }

    /// Gathers the rows that are in memory, before others replace them there. Returns how many are gathered.
    pub fn gather(&mut self, recent: &RecentRows) -> i64 {
        let Some(gathered) = &mut self.gathered else { return 0 };
        if gathered.count() < AT_ONCE {
            gathered.add_recent(recent);
        }
        gathered.count()
    }
}

/// Indexes the log until the store is closed.
pub(in crate::store) async fn run(inner: Arc<Inner>) {
    let (stop, store) = (inner.stop.clone(), Store { inner });
    let commits = store.commits();
    let (progress, due) = (IndexProgress::default(), Instant::now());
    follow(Indexer { commits: commits.clone(), store, progress, due }, commits, stop).await;
}

struct Indexer {
    store: Store,
    commits: watch::Receiver<Commits>,
    progress: IndexProgress,
    /// When the next transaction is due. Until then, rows are only gathered.
    due: Instant,
}

impl CommitFollower for Indexer {
    type Error = Error;
    const TROUBLE: &'static str = "the log could not be indexed";
    const POLL: Duration = Duration::from_secs(5);
    const GATHER: Duration = Duration::from_millis(10);
    const AFTER_FAILURE: Duration = Duration::from_secs(5);

    async fn advance(&mut self) -> Result<Resume, Error> {
        let begun = Instant::now();
        if begun < self.due && self.progress.gather(&self.store.inner.recent) < AT_ONCE {
            return Ok(Resume::After(Self::GATHER));
        }
        self.commits.mark_unchanged();
        Ok(match self.store.index_log(&mut self.progress, AT_ONCE).await? {
            Indexed::Some(waiting) => {
                let busy = self.commits.has_changed().unwrap_or(true);
                let rest = if busy && waiting < FAR_BEHIND { REST } else { u32::from(busy) };
                self.due = Instant::now() + begun.elapsed() * rest;
                Resume::Now
            }
            Indexed::All => {
                self.due = Instant::now() + INTERVAL;
                Resume::OnCommit
            }
            Indexed::Elsewhere => Resume::After(OTHER_SERVER_PAUSE),
        })
    }
}

impl Store {
    /// Indexes the next full blocks: of the rows that are gathered, and of at most `at_once` others, which must be at
    /// least a block. `progress` is how far this server's previous step came; if another server has continued from
    /// there, indexing is left to it.
    pub(in crate::store) async fn index_log(
        &self,
        progress: &mut IndexProgress,
        at_once: i64,
    ) -> Result<Indexed, Error> {
        // After an error, the rows are read again.
        let before = IndexProgress { indexed_to: progress.indexed_to, gathered: progress.gathered.take() };
        let store = self.clone();
        let (indexed, after) = on_blocking_thread(async move || store.index_some(before, at_once).await).await?;
        *progress = after;
        Ok(indexed)
    }

    /// Like [`Self::index_log`]. Also returns how far this server has come.
    async fn index_some(&self, mut progress: IndexProgress, at_once: i64) -> Result<(Indexed, IndexProgress), Error> {
        // Before the snapshot is taken: the words of reviews must not be older than the rows.
        progress.gather(&self.inner.recent);
        let mut conn = self.inner.db.snapshot_on(RunsOn::ThisThread).await?;
        let next = conn.indexed_to().await?;
        if progress.indexed_to.is_some_and(|mine| mine != next) {
            return Ok((Indexed::Elsewhere, IndexProgress::at(next)));
        }
        let head = conn.head().await?.seq;
        // The first row after all full blocks.
        let end = head.saturating_add(1).div_euclid(BLOCK) * BLOCK;
        if end <= next {
            return Ok((Indexed::All, IndexProgress { indexed_to: Some(next), ..progress }));
        }
        // If anything was erased since the rows were gathered, they are read again.
        let erasures = conn.last_erasure().await?;
        let mut gathered = match progress.gathered.filter(|gathered| gathered.erasures == erasures) {
            Some(gathered) => gathered,
            None => Gathered::starting_at(next, conn.end_of_blocks().await?, erasures),
        };
        if gathered.next() < end {
            conn.gather_stored(&mut gathered, end, at_once).await?;
        }
        // Read before others are kept waiting. Reviews that change meanwhile have newer entries.
        let words = conn.words_of_reviews(&gathered.runs).await?;
        conn.rollback().await?;
        let (blocks, to) = gathered.take_full();
        if !self.write_blocks((next, to), erasures, &blocks, words).await? {
            return Ok((Indexed::Elsewhere, IndexProgress::at(next)));
        }
        let indexed = if to < end { Indexed::Some(head - to) } else { Indexed::All };
        Ok((indexed, IndexProgress { indexed_to: Some(to), gathered: Some(gathered) }))
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

    /// Gathers the stored rows before `end` that are not gathered yet, at most `at_once` of them.
    async fn gather_stored(&mut self, gathered: &mut Gathered, end: i64, at_once: i64) -> Result<(), Error> {
        let sql = Sql::new("SELECT ").push(COLUMNS).push(" FROM log WHERE seq >= ").bind(gathered.next());
        let sql = sql.push(" AND seq < ").bind(end).push(" ORDER BY seq LIMIT ").bind(at_once);
        let rows = self.fetch(sql).await?;
        for some in rows.chunks(LOG_READ) {
            for (row, (place, events)) in some.iter().zip(read_rows(self, some, Form::Whole).await?) {
                gathered.add(place.seq, row.uuid_opt(1)?.map(RunId), &events);
            }
        }
        if i64::try_from(rows.len()).unwrap_or(at_once) < at_once {
            gathered.reach(end);
        }
        Ok(())
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
