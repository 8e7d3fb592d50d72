//! The eraser: finds erased people whom the database still names, and removes them.

use std::time::Duration;

use shared::entry_numbers::EntryNumbers;
use shared::log::EntriesErased;
use tokio::time::Instant;

use crate::audit::{Explained, Hash, NumberingError, Trusted, hash, joined, numbers, sealed_text};
use crate::background::{BackgroundTask, rest_after};
use crate::store::{
    self, Change, CommitError, CommitFollower, Erasing, ErasureStep, NewErasure, Operation, Prepared, Resume, RunPlace,
    Store,
};

/// The minimum interval between passes while there are commits.
const EVERY: Duration = Duration::from_secs(5);
/// The wait before the next look, while another server erases.
const OTHER_SERVER_PAUSE: Duration = Duration::from_secs(5);
/// The rest after a failure, or if data of the person are still in use.
const RETRY_INTERVAL: Duration = Duration::from_mins(10);
/// The maximum number of entries that one entry `entries.erased` records.
const ENTRIES: usize = 256;

/// The reason why a person could not be erased.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// The database cannot be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A step of the erasure could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The entries of the log have no numbers.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// The log is not what was sealed.
    #[error("{0}")]
    Broken(String),
}

/// How far a pass came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reached {
    /// Nothing names an erased person any more.
    End,
    /// Entries are not sealed yet, or were changed meanwhile.
    Soon,
    /// Runs are not over yet, or something cannot be read.
    Later,
    /// Another server is erasing.
    Elsewhere,
    /// The maximum number of steps was reached.
    Stopped,
}

/// Removes erased people from everything that names them.
pub struct Eraser {
    store: Store,
    trusted: Trusted,
    explained: Explained,
    /// The newest `entries.erased` entry when this server last erased or looked. `None` if nobody was being erased.
    mine: Option<u64>,
    /// The last wait for entries to be sealed. It doubles each time.
    soon: Duration,
}

impl CommitFollower for Eraser {
    type Error = EraseError;
    const TROUBLE: &'static str = "a person could not be erased everywhere";
    /// Without commits, nobody is erased.
    const POLL: Duration = Duration::MAX;
    const GATHER: Duration = EVERY;
    const AFTER_FAILURE: Duration = RETRY_INTERVAL;

    async fn advance(&mut self) -> Result<Resume, EraseError> {
        let reached = self.pass(u64::MAX).await;
        if reached.is_err() {
            metrics::counter!("countersign_erasure_failures_total").increment(1);
        }
        // A sealer that is behind may stay so for some time.
        self.soon = if matches!(reached, Ok(Reached::Soon)) { (self.soon * 2).min(RETRY_INTERVAL) } else { EVERY };
        Ok(match reached? {
            Reached::End => Resume::OnCommit,
            Reached::Soon | Reached::Stopped => Resume::After(self.soon),
            Reached::Later => Resume::After(RETRY_INTERVAL),
            Reached::Elsewhere => Resume::After(OTHER_SERVER_PAUSE),
        })
    }
}

impl Eraser {
    /// Creates an eraser for this database.
    pub fn new(store: Store, trusted: Trusted) -> Self {
        Self { store, trusted, explained: Explained::default(), mine: None, soon: EVERY }
    }

    /// Starts erasing in the background.
    pub fn run(self) -> BackgroundTask {
        let (background, commits) = (self.store.background().clone(), self.store.commits());
        background.start("eraser", |stop| store::follow(self, commits, stop))
    }

    /// Searches everything for all people who are being erased, and makes at most `steps` steps. If another server has
    /// erased something since this one last looked, erasing is left to it.
    pub(super) async fn pass(&mut self, mut steps: u64) -> Result<Reached, EraseError> {
        let all = self.store.being_erased().await?;
        if all.is_empty() {
            self.mine = None;
            return Ok(Reached::End);
        }
        self.explained.refresh(&self.store).await?;
        let last = self.explained.last_erasure();
        if self.mine.replace(last).is_some_and(|mine| mine != last) {
            return Ok(Reached::Elsewhere);
        }
        let mut reached = Reached::End;
        for erasing in all {
            let of_one = self.erase(&erasing, &mut steps).await?;
            if of_one >= Reached::Elsewhere {
                return Ok(of_one);
            }
            if of_one == Reached::End {
                tracing::info!(pseudonym = %erasing.pseudonym, "a person was erased; nothing names them any longer");
            }
            reached = reached.max(of_one);
        }
        Ok(reached)
    }

    async fn erase(&mut self, erasing: &Erasing, steps: &mut u64) -> Result<Reached, EraseError> {
        let mut reached = Reached::End;
        let mut place = Some(0);
        while let Some(after) = place {
            let begun = Instant::now();
            let (rows, next) = self.store.rows_naming(erasing, after).await?;
            rest_after(begun).await;
            if !rows.is_empty() {
                let prepared = self.store.erase_of_rows(erasing, &rows).await;
                reached = reached.max(self.step(prepared, steps).await?);
            }
            if reached >= Reached::Elsewhere {
                return Ok(reached);
            }
            place = next;
        }
        let mut place: Option<RunPlace> = None;
        loop {
            let begun = Instant::now();
            let (runs, next) = self.store.runs_naming(erasing, place).await?;
            rest_after(begun).await;
            for run in runs {
                let prepared = self.store.erase_of_run(erasing, run).await;
                reached = reached.max(self.step(prepared, steps).await?);
                if reached >= Reached::Elsewhere {
                    return Ok(reached);
                }
            }
            place = next;
            if place.is_none() {
                break;
            }
        }
        while self.store.erase_rest(erasing).await? {}
        if reached == Reached::End {
            self.forget_words().await?;
            self.store.end_erasure(erasing).await?;
        }
        Ok(reached)
    }

    async fn forget_words(&self) -> Result<(), EraseError> {
        let (mut index, mut first) = (0, true);
        loop {
            let begun = Instant::now();
            let Some(more) = self.store.forget_words(index, first).await? else { return Ok(()) };
            (index, first) = if more { (index, false) } else { (index + 1, true) };
            rest_after(begun).await;
        }
    }

    /// Makes a step. Data that cannot be read or written, or are not what was sealed, stay unchanged, and do not keep
    /// other data from being erased.
    async fn step(&mut self, prepared: Result<Prepared, store::Error>, steps: &mut u64) -> Result<Reached, EraseError> {
        let reached = match prepared {
            Ok(prepared) => self.make(prepared, steps).await,
            Err(error) => Err(error.into()),
        };
        match reached {
            Err(
                error @ (EraseError::Broken(_)
                | EraseError::Commit(_)
                | EraseError::Store(store::Error::Stored(_))
                | EraseError::Numbering(
                    NumberingError::Broken(_) | NumberingError::Store(store::Error::Stored(_)),
                )),
            ) => {
                metrics::counter!("countersign_erasure_failures_total").increment(1);
                tracing::warn!(%error, "an erased person is still named in data that cannot be changed");
                Ok(Reached::Later)
            }
            reached => reached,
        }
    }

    async fn make(&mut self, prepared: Prepared, steps: &mut u64) -> Result<Reached, EraseError> {
        let step = match prepared {
            Prepared::Nothing => return Ok(Reached::End),
            Prepared::Waits => return Ok(Reached::Later),
            Prepared::Step(step) => *step,
        };
        if *steps == 0 {
            return Ok(Reached::Stopped);
        }
        let begun = Instant::now();
        if self.mine != Some(step.erasures()) {
            return Ok(Reached::Elsewhere);
        }
        let erased_entries = match self.entries_erased(&step).await? {
            Ok(erased_entries) => erased_entries,
            Err(why_not) => return Ok(why_not),
        };
        let (before, mine) = (step.erasures(), step.erasures() + erased_entries.len() as u64);
        let new = Box::new(NewErasure { erased_entries, step });
        match self.store.commit(Change::by_server(Operation::EraseEntries(new))).await {
            Ok(_) => {
                *steps -= 1;
                self.mine = Some(mine);
            }
            Err(CommitError::Conflict(why)) => {
                tracing::info!(%why, "a step of an erasure failed; it will be repeated");
                self.explained.refresh(&self.store).await?;
                let is_elsewhere = self.explained.last_erasure() != before;
                return Ok(if is_elsewhere { Reached::Elsewhere } else { Reached::Soon });
            }
            Err(error) => return Err(error.into()),
        }
        rest_after(begun).await;
        Ok(Reached::End)
    }

    /// Returns the records of a step for the audit log, or why there are none yet: one of its entries is not sealed, or
    /// another server has erased something since the data were read. Fails if the data are not what was sealed, which
    /// must never get a new hash.
    async fn entries_erased(&mut self, step: &ErasureStep) -> Result<Result<Vec<EntriesErased>, Reached>, EraseError> {
        self.explained.refresh(&self.store).await?;
        let rows: Vec<i64> = step.rows().iter().map(|row| row.number).collect();
        let numbers = numbers(&self.store, &self.trusted, &mut self.explained, &rows).await?;
        if self.explained.last_erasure() != step.erasures() {
            return Ok(Err(Reached::Elsewhere));
        }
        let mut changed: Vec<(u64, Hash)> = Vec::new();
        for row in step.rows() {
            let Some(entries) = numbers.get(&row.number) else { return Ok(Err(Reached::Soon)) };
            let broken =
                || EraseError::Broken(format!("row {} of the log was changed after it was sealed", row.number));
            if entries.len() != row.before.len() || row.after.len() != row.before.len() {
                return Err(broken());
            }
            for ((entry, before), after) in entries.iter().zip(&row.before).zip(&row.after) {
                let of = |event| sealed_text(event).map(|text| hash(&text)).map_err(|_| broken());
                if of(before)? != entry.hash {
                    return Err(broken());
                }
                let after = of(after)?;
                if after != entry.hash {
                    changed.push((entry.number, after));
                }
            }
        }
        changed.sort_unstable();
        let erased_entries =
            changed.chunks(ENTRIES).zip(self.explained.last_erasure() + 1..).map(|(changed, erasure)| {
                let entries: EntryNumbers = changed.iter().map(|(number, _)| *number).collect();
                let hashes: Vec<Hash> = changed.iter().map(|(_, hash)| *hash).collect();
                let username = step.erasing().pseudonym.clone();
                EntriesErased { erasure, username, entries, hashes: joined(&hashes) }
            });
        Ok(Ok(erased_entries.collect()))
    }
}
