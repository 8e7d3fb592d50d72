//! The archiver: finds finished runs that are older than their retention, writes them to the archive, and removes them,
//! in the background.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use shared::entry_numbers::EntryNumbers;
use shared::id::FlowId;
use shared::log::RunsArchived;
use shared::time::Timestamp;
use tokio::time::Instant;

use super::folder::{Folder, FolderError, FolderLock};
use super::piece::{Header, RunLine, Writer};
use super::spool::{Spool, Spooled};
use crate::audit::{Explained, Numbered, NumberingError, Trusted, numbers};
use crate::background::{BackgroundTask, rest_after};
use crate::clock::SharedClock;
use crate::store::{
    self, Change, CommitError, FinishedFilter, FinishedPlace, FinishedRun, NewArchive, Operation, RunInArchive, Store,
    WholeRun,
};

/// The interval between passes.
const EVERY: Duration = Duration::from_mins(10);
/// The maximum number of runs in an archive.
const RUNS: usize = 200;
/// The length of an archive's lines, in bytes, from which on no further run is added.
const LENGTH: usize = 8 << 20;
/// The number of runs, roughly, that are found before they are grouped by day.
const FOUND: usize = 5000;
/// The number of runs per query.
const PAGE: u32 = 500;

/// How long finished runs are kept, and where older ones are archived.
#[derive(Debug, Clone)]
pub struct Retention {
    /// The retention of flows that set none; `None`: for ever.
    pub runs: Option<Duration>,
    /// The folder of archives.
    pub folder: PathBuf,
}

/// The reason why nothing was archived.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The database cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The folder of archives cannot be locked or written, or a file in it does not match the database.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The commit failed. A conflict is not an error: its runs are looked at again.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// An archive could not be written.
    #[error("an archive could not be written: {0}")]
    Io(#[from] io::Error),
    /// The entries of the log have no numbers.
    #[error(transparent)]
    Numbering(#[from] NumberingError),
    /// The log or an archive is not what was sealed or recorded.
    #[error("{0}")]
    Broken(String),
}

/// Archives finished runs.
pub struct Archiver {
    store: Store,
    trusted: Trusted,
    clock: SharedClock,
    runs: Option<Duration>,
    folder: Folder,
    explained: Explained,
    /// The lock of the folder; `None` outside a pass.
    lock: Option<Arc<FolderLock>>,
}

/// The outcome of adding a run to an archive.
enum Added {
    Whole {
        /// The time at which the run ended.
        ended_at: Timestamp,
        /// The numbers of the run's entries in the audit log.
        numbers: Vec<u64>,
    },
    /// Nothing was written, because the run has changed or cannot be read.
    Nothing,
    /// A part was written before the run turned out to have changed or to be unreadable.
    Part,
}

/// A position in the search for finished runs.
pub(super) struct RunSource {
    /// The flow whose runs are searched; `None`: carriers of questions.
    flow: Option<FlowId>,
    before: Timestamp,
    from: Option<FinishedPlace>,
}

impl Archiver {
    /// Creates an archiver for this database and folder.
    pub fn new(store: Store, trusted: Trusted, clock: SharedClock, retention: Retention) -> Self {
        let Retention { runs, folder } = retention;
        Self { store, trusted, clock, runs, folder: Folder::at(folder), explained: Explained::default(), lock: None }
    }

    /// Starts archiving in the background.
    pub fn run(mut self) -> BackgroundTask {
        let background = self.store.background().clone();
        let work = async move {
            loop {
                let begun = Instant::now();
                match self.pass().await {
                    Ok(0) => {}
                    Ok(runs) => tracing::info!(runs, took = ?begun.elapsed(), "finished runs were archived"),
                    Err(error) => {
                        metrics::counter!("countersign_archive_failures_total").increment(1);
                        tracing::warn!(%error, "finished runs could not be archived; they stay in the database");
                    }
                }
                tokio::time::sleep(EVERY).await;
            }
        };
        background.run("archiver", work)
    }

    /// Archives and removes all runs that are old enough. Returns their number, 0 while another process archives.
    pub async fn pass(&mut self) -> Result<u64, ArchiveError> {
        let mut sources = self.sources().await?;
        let left_over = self.store.has_archived_left().await?;
        if sources.is_empty() && !left_over {
            return Ok(0);
        }
        let folder = self.folder.clone();
        let Some(lock) = blocking(move || folder.lock()).await? else { return Ok(0) };
        self.lock = Some(Arc::new(lock));
        let archived = self.pass_alone(&mut sources).await;
        self.lock = None;
        archived
    }

    async fn pass_alone(&mut self, sources: &mut VecDeque<RunSource>) -> Result<u64, ArchiveError> {
        self.remove().await?;
        let mut archived = 0;
        while !sources.is_empty() {
            for (day, runs) in self.find(sources).await? {
                let mut runs: VecDeque<FinishedRun> = runs.into();
                while !runs.is_empty() {
                    archived += self.archive(&day, &mut runs).await?;
                    self.remove().await?;
                }
            }
        }
        Ok(archived)
    }

    /// Returns a search for each flow whose finished runs are not kept for ever, and one for carriers.
    pub(super) async fn sources(&self) -> Result<VecDeque<RunSource>, ArchiveError> {
        let now = self.clock.now();
        let before = |kept: Duration| {
            let kept = i64::try_from(kept.as_micros()).unwrap_or(i64::MAX);
            Timestamp(now.0.saturating_sub(kept))
        };
        let flows = self.store.retentions().await?.into_iter().filter_map(|(flow, kept)| {
            Some(RunSource { flow: Some(flow), before: before(kept.or(self.runs)?), from: None })
        });
        let carriers = self.runs.map(|kept| RunSource { flow: None, before: before(kept), from: None });
        Ok(flows.chain(carriers).collect())
    }

    /// Finds some of the runs that may be archived, by the day of the last change of each.
    pub(super) async fn find(
        &self,
        sources: &mut VecDeque<RunSource>,
    ) -> Result<BTreeMap<String, Vec<FinishedRun>>, ArchiveError> {
        let (mut found, mut count) = (BTreeMap::<String, Vec<FinishedRun>>::new(), 0);
        while count < FOUND
            && let Some(mut source) = sources.pop_front()
        {
            let of = source.flow.as_ref().map_or(FinishedFilter::Carriers, FinishedFilter::Of);
            let page = self.store.finished_runs(of, source.before, source.from, PAGE).await?;
            count += page.runs.len();
            for run in page.runs {
                found.entry(day_of(run.last_at)).or_default().push(run);
            }
            if page.next.is_some() {
                source.from = page.next;
                sources.push_front(source);
            }
        }
        Ok(found)
    }

    /// Writes one archive of the first of these runs, which are removed from `runs`. Returns the number of archived
    /// runs.
    pub(super) async fn archive(&mut self, day: &str, runs: &mut VecDeque<FinishedRun>) -> Result<u64, ArchiveError> {
        let begun = Instant::now();
        self.explained.refresh(&self.store).await?;
        let ids: Vec<_> = runs.iter().take(RUNS).map(|run| run.id).collect();
        let rows = self.store.rows_of_runs(&ids).await?;
        let numbers = numbers(&self.store, &self.trusted, &mut self.explained, &rows).await?;
        let header = Header::new(self.store.log_id().to_owned(), self.store.last_archive().await? + 1, day.to_owned());
        let mut writer = ArchiveWriter::new(&header, self.folder.path())?;
        let (mut entries, mut written) = (EntryNumbers::default(), Vec::new());
        let mut taken = Vec::new();
        for _ in 0..ids.len() {
            if writer.length >= LENGTH {
                break;
            }
            let Some(run) = runs.pop_front() else { break };
            match self.add(&mut writer, &run, &numbers).await? {
                Added::Whole { ended_at, numbers } => {
                    for number in numbers {
                        entries.add(number);
                    }
                    let FinishedRun { id, flow, requested_by, last_row, .. } = run.clone();
                    written.push(RunInArchive { id, flow, requested_by, ended_at, last_row });
                    taken.push(run);
                }
                Added::Nothing => {}
                Added::Part => {
                    // The part that was written cannot be taken back, so the other runs are written again without this
                    // one.
                    taken.into_iter().rev().for_each(|run| runs.push_front(run));
                    return Ok(0);
                }
            }
        }
        let ended = || written.iter().map(|run| run.ended_at);
        let (Some(first_ended_at), Some(last_ended_at)) = (ended().min(), ended().max()) else { return Ok(0) };
        let (mut archive, count) = (writer.finish().await?, written.len() as u64);
        let file = format!("{day}.jsonl.gz");
        let position = self.store.end_of_archive_file(&file).await?;
        let entry = RunsArchived {
            archive: header.archive,
            file: file.clone(),
            position,
            bytes: archive.bytes,
            digest: archive.digest.clone(),
            runs: count,
            first_ended_at,
            last_ended_at,
            entries,
        };
        let folder = self.folder.clone();
        let lock = self.lock.clone();
        // If the archiver is stopped meanwhile, this thread continues, and holds the lock until it has written.
        let append = move || {
            let _lock = lock;
            folder.append(&file, position, &header, &mut archive)
        };
        blocking(append).await?;
        rest_after(begun).await;
        let archive = NewArchive { entry, runs: written, erasures: self.explained.last_erasure() };
        match self.store.commit(Change::by_server(Operation::ArchiveRuns(Box::new(archive)))).await {
            Ok(_) => Ok(count),
            Err(CommitError::Conflict(why)) => {
                tracing::info!(%why, "an archive was discarded; its runs will be archived again");
                Ok(0)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Adds a run, unless it has changed meanwhile or cannot be read completely.
    async fn add(
        &self,
        writer: &mut ArchiveWriter,
        run: &FinishedRun,
        numbers: &BTreeMap<i64, Vec<Numbered>>,
    ) -> Result<Added, ArchiveError> {
        let unreadable = |why: String| {
            tracing::warn!(run = %run.id, %why, "the run cannot be read completely, and is not archived");
        };
        let whole = match self.store.whole_run(run.id).await {
            Ok(Some(whole)) if whole.rows.last() == Some(run.last_row) => whole,
            Ok(_) => return Ok(Added::Nothing),
            Err(store::Error::Stored(why)) => {
                unreadable(why);
                return Ok(Added::Nothing);
            }
            Err(error) => return Err(error.into()),
        };
        let WholeRun { state, steps, reviews, deliveries, mut rows } = whole;
        let ended_at = crate::engine::summary(&state).ended_at.unwrap_or(run.last_at);
        let line = RunLine { run: run.id, state, steps, reviews, deliveries };
        writer.write(move |writer| writer.run(&line)).await?;
        let mut written = Vec::new();
        loop {
            let row = match rows.next().await {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Added::Whole { ended_at, numbers: written }),
                Err(store::Error::Stored(why)) => {
                    unreadable(why);
                    return Ok(Added::Part);
                }
                Err(error) => return Err(error.into()),
            };
            match numbers.get(&row.number) {
                Some(numbers) if numbers.len() == row.entries.len() => {
                    let (numbers, run): (Vec<_>, _) = (numbers.iter().map(|entry| entry.number).collect(), run.id);
                    written.extend(&numbers);
                    writer.write(move |writer| writer.row(run, row, numbers.into_iter())).await?;
                }
                // The run has changed meanwhile. Another pass will archive it.
                _ => return Ok(Added::Part),
            }
        }
    }

    /// Removes the remaining rows of archived runs.
    pub(super) async fn remove(&self) -> Result<(), ArchiveError> {
        loop {
            let begun = Instant::now();
            if !self.store.remove_archived().await? {
                return Ok(());
            }
            rest_after(begun).await;
        }
    }
}

/// A [`Writer`] that is used on threads for blocking work: compression takes long.
struct ArchiveWriter {
    /// `None` only while it is used on such a thread, and after a failure there.
    writer: Option<Writer<Spool>>,
    length: usize,
}

impl ArchiveWriter {
    fn new(header: &Header, folder: &Path) -> io::Result<Self> {
        let writer = Writer::new(header, Spool::new(folder))?;
        Ok(Self { length: writer.length(), writer: Some(writer) })
    }

    async fn write(
        &mut self,
        write: impl FnOnce(&mut Writer<Spool>) -> io::Result<()> + Send + 'static,
    ) -> Result<(), ArchiveError> {
        let mut writer = self.writer.take().ok_or_else(failed)?;
        let written = blocking(move || write(&mut writer).map(|()| writer));
        let writer = written.await?;
        self.length = writer.length();
        self.writer = Some(writer);
        Ok(())
    }

    async fn finish(mut self) -> Result<Spooled, ArchiveError> {
        let writer = self.writer.take().ok_or_else(failed)?;
        blocking(move || writer.finish()?.finish()).await
    }
}

fn failed() -> io::Error {
    io::Error::other("writing the archive failed before")
}

/// Formats the day of a time, in UTC: `2026-08-25`.
fn day_of(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// Runs work that waits for the disk on a thread for blocking work.
async fn blocking<T: Send + 'static, E: Into<ArchiveError> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, ArchiveError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Into::into),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ArchiveError::Broken("the server is stopping".to_owned())),
        },
    }
}
