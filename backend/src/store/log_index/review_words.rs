//! The words of reviews: finds the reviews with all words of a search.
//!
//! A review is indexed together with the block of the log that has its entry. Reviews with newer entries are checked
//! directly, so a search finds what is currently stored.

use std::collections::{BTreeSet, HashMap};

use shared::id::RunId;
use shared::review::ReviewStatus;
use uuid::Uuid;

use super::super::Error;
use super::super::db::{Arg, Conn, DatabaseKind, Row, Sql};
use super::super::words::{WordSet, Words, each_word};
use super::lookup::words_in;
use super::terms::as_text;

/// The number of rows that may wait to be indexed; if more wait, the index is not used.
const FAR_BEHIND: i64 = 2000;
/// The number of keys that one statement looks up.
const CHUNK: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum WordIndex {
    Pending,
    /// The words of reviews that are over.
    Past,
}

/// The words of a review, as the index stores them.
pub(super) struct ReviewWords {
    review: Uuid,
    index: WordIndex,
    words: String,
}

impl WordIndex {
    pub const ALL: [Self; 2] = [Self::Pending, Self::Past];

    fn of(status: &str) -> Self {
        if status == ReviewStatus::Pending.as_str() { Self::Pending } else { Self::Past }
    }

    /// The index for this value of the column `pending`.
    fn of_pending(pending: i64) -> Self {
        if pending == Self::Pending.pending() { Self::Pending } else { Self::Past }
    }

    /// The table of the index in SQLite.
    fn table(self) -> &'static str {
        match self {
            Self::Pending => "pending_words",
            Self::Past => "past_words",
        }
    }

    /// The value of the column `pending` for this index.
    fn pending(self) -> i64 {
        i64::from(self == Self::Pending)
    }
}

/// The way to find the reviews that have the words of a search.
#[derive(Debug, Clone)]
pub(in crate::store) enum ReviewSearch {
    /// Exactly these reviews have the words.
    Among(Vec<Uuid>),
    /// Many may have the words: each review in the list has to be checked.
    Each(Words),
}

impl Conn {
    /// Determines how to find the reviews in these indexes that have all words. If more than `few` have them, they are
    /// found quickly along any list, without the index.
    pub async fn search_reviews(
        &mut self,
        words: Words,
        indexes: &[WordIndex],
        few: usize,
    ) -> Result<ReviewSearch, Error> {
        if words.is_empty() {
            return Ok(ReviewSearch::Among(Vec::new()));
        }
        let next = self.indexed_to().await?;
        if self.head().await?.seq - next > FAR_BEHIND {
            return Ok(ReviewSearch::Each(words));
        }
        let mut found = BTreeSet::new();
        for index in indexes {
            let most = u32::try_from(few + 1 - found.len()).unwrap_or(0);
            found.extend(self.all(reviews_with(&words, *index, most, self.kind()), Row::uuid).await?);
            if found.len() > few {
                return Ok(ReviewSearch::Each(words));
            }
        }
        // Reviews with newer log entries. A condition on `run_id` would make SQLite read the whole index on runs.
        let sql = Sql::new("SELECT id, search FROM reviews WHERE run_id IN (SELECT run_id FROM log WHERE seq >= ");
        let sql = sql.bind(next).push(")");
        for row in self.fetch(sql).await? {
            let id = row.uuid(0)?;
            if words.are_in(&row.text(1)?) {
                found.insert(id);
            } else {
                found.remove(&id);
            }
        }
        if found.len() > few {
            return Ok(ReviewSearch::Each(words));
        }
        Ok(ReviewSearch::Among(found.into_iter().collect()))
    }

    /// Indexes the current words of the reviews of these runs.
    pub(in crate::store) async fn index_reviews(&mut self, runs: &BTreeSet<RunId>) -> Result<(), Error> {
        let words = self.words_of_reviews(runs).await?;
        self.put_review_words(words).await
    }

    pub(super) async fn words_of_reviews(&mut self, runs: &BTreeSet<RunId>) -> Result<Vec<ReviewWords>, Error> {
        let runs: Vec<_> = runs.iter().map(|run| run.0).collect();
        let mut found = Vec::new();
        for chunk in runs.chunks(CHUNK) {
            let sql = Sql::new("SELECT id, status, search FROM reviews WHERE run_id").among(padded(chunk));
            for row in self.fetch(sql).await? {
                let mut words = WordSet::default();
                each_word(&row.text(2)?, &mut |word| {
                    words.add(word);
                });
                let words = as_text(&words.sorted(), self.kind());
                found.push(ReviewWords { review: row.uuid(0)?, index: WordIndex::of(&row.text(1)?), words });
            }
        }
        Ok(found)
    }

    /// Stores the words of reviews, except of those that were removed since the words were read.
    pub(super) async fn put_review_words(&mut self, found: Vec<ReviewWords>) -> Result<(), Error> {
        if self.is_postgres() {
            let rows = found
                .into_iter()
                .map(|found| vec![found.review.into(), found.index.pending().into(), found.words.into()]);
            let into = "INSERT INTO review_words (review_id, pending, words) SELECT a, b, CAST(c AS tsvector) FROM (";
            let again = ") AS k (a, b, c) WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.id = a) \
                         ON CONFLICT (review_id) DO UPDATE SET pending = excluded.pending, words = excluded.words";
            self.insert_by(into.to_owned(), rows.collect(), again).await?;
            return Ok(());
        }
        self.put_numbered_words(found).await
    }

    /// Like [`Self::put_review_words`], in SQLite. A full-text table has no key columns, so each review has a row number.
    async fn put_numbered_words(&mut self, found: Vec<ReviewWords>) -> Result<(), Error> {
        let mut known = HashMap::new();
        let ids: Vec<_> = found.iter().map(|found| found.review).collect();
        for chunk in ids.chunks(CHUNK) {
            let sql = Sql::new("SELECT r.id, n.number, n.pending FROM reviews r LEFT JOIN review_numbers n ");
            for row in self.fetch(sql.push("ON n.review_id = r.id WHERE r.id").among(padded(chunk))).await? {
                known.insert(row.uuid(0)?, row.int_opt(1)?.zip(row.int_opt(2)?));
            }
        }
        let last = self.first(Sql::new("SELECT MAX(number) FROM review_numbers"), Row::int_opt).await?;
        let mut last = last.flatten().unwrap_or(0);
        let (mut new, mut rows) = (Vec::new(), Vec::new());
        for ReviewWords { review, index, words } in found {
            let Some(&before) = known.get(&review) else { continue };
            let number = before.map_or(last + 1, |(number, _)| number);
            if before.is_none() {
                last = number;
                new.push(vec![Arg::from(number), review.into(), index.pending().into()]);
            }
            rows.push((number, before.map(|(_, pending)| WordIndex::of_pending(pending)), index, words));
        }
        // In the order of their numbers: FTS5 writes out what it has gathered whenever a number is lower than the last.
        rows.sort_unstable_by_key(|(number, ..)| *number);
        self.insert_by("INSERT INTO review_numbers (number, review_id, pending) ".to_owned(), new, "").await?;
        for index in WordIndex::ALL {
            let (mut old, mut moved, mut current) = (Vec::new(), Vec::new(), Vec::new());
            for (number, before, now, words) in &rows {
                if *before == Some(index) {
                    old.push(vec![Arg::from(*number)]);
                }
                if *now == index {
                    if before.is_some_and(|before| before != index) {
                        moved.push(vec![Arg::from(*number)]);
                    }
                    current.push(vec![Arg::from(*number), words.into()]);
                }
            }
            let (table, pending) = (index.table(), index.pending());
            self.change_by(format!("DELETE FROM {table} WHERE rowid"), old).await?;
            self.change_by(format!("UPDATE review_numbers SET pending = {pending} WHERE number"), moved).await?;
            self.insert_by(format!("INSERT INTO {table} (rowid, words) "), current, "").await?;
        }
        Ok(())
    }

    /// Removes the words of reviews that are being removed.
    pub async fn forget_review_words(&mut self, reviews: &[Uuid]) -> Result<(), Error> {
        for chunk in reviews.chunks(CHUNK) {
            if self.is_postgres() {
                self.execute(Sql::new("DELETE FROM review_words WHERE review_id").among(padded(chunk))).await?;
                continue;
            }
            let of_words = WordIndex::ALL.map(|index| format!("{} WHERE rowid", index.table()));
            for of_numbers in of_words.into_iter().chain(["review_numbers WHERE number".to_owned()]) {
                let sql = Sql::new("DELETE FROM ").push(&of_numbers).push(" IN (SELECT number FROM review_numbers ");
                self.execute(sql.push("WHERE review_id").among(padded(chunk)).push(")")).await?;
            }
        }
        Ok(())
    }
}

/// Selects the reviews that have all words according to the index.
fn reviews_with(words: &Words, index: WordIndex, most: u32, database: DatabaseKind) -> Sql {
    let expression = words_in(words.iter(), database);
    let sql = if database == DatabaseKind::Postgres {
        let sql = Sql::new("SELECT review_id FROM review_words WHERE pending = ");
        sql.push(&index.pending().to_string()).push(" AND words @@ CAST(").bind(expression).push(" AS tsquery)")
    } else {
        let table = index.table();
        let sql = Sql::new("SELECT n.review_id FROM ").push(table).push(" CROSS JOIN review_numbers n ");
        let sql = sql.push("ON n.number = ").push(table).push(".rowid WHERE ").push(table).push(" MATCH ");
        sql.bind(expression)
    };
    sql.push(" LIMIT ").bind(most)
}

/// Repeats the last key until the number of keys is a power of two: each number of keys is a statement of its own, and
/// there should be few that stay prepared.
pub(in crate::store) fn padded<T: Copy>(keys: &[T]) -> Vec<T> {
    let mut keys = keys.to_vec();
    if let Some(last) = keys.last().copied() {
        keys.resize(keys.len().next_power_of_two(), last);
    }
    keys
}
