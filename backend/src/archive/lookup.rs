//! Reads an archived run back from its file.

use std::io;

use serde::Serialize;
use serde_json::Value;
use shared::id::RunId;
use shared::log::Event;
use shared::review::Review;
use shared::run::{ArchivedRun, Run, Step};

use super::archiver::ArchiveError;
use super::folder::Folder;
use super::piece::{self, ArchiveLine, RowLine, event};
use crate::audit::archive_entry;
use crate::engine;
use crate::store::Store;

/// Everything that an archive contains of a run.
#[derive(Debug, Clone, Serialize)]
pub struct ArchivedContent {
    /// The location of the run in the archive.
    pub archived: ArchivedRun,
    /// The run, as the API shows it.
    pub run: Run,
    /// All visits of nodes, in order.
    pub steps: Vec<Step>,
    /// Its reviews, in the order in which they were asked.
    pub reviews: Vec<Review>,
    /// The notifications that were sent about its reviews.
    pub deliveries: Vec<Value>,
    /// Its log entries, in order.
    pub log: Vec<Event>,
    /// The inputs of the engine, one line per row of the log. With them, the run can be replayed.
    pub inputs: Vec<RowLine>,
}

/// Reads an archived run. Returns `None` if the run is not archived, and an error if the file does not match the
/// record.
pub async fn look_up(store: &Store, folder: &Folder, id: RunId) -> Result<Option<ArchivedContent>, ArchiveError> {
    let Some((archived, archive)) = store.archived_run(id).await? else { return Ok(None) };
    let entry = archive_entry(store, &archive).await?;
    let broken = |why: String| ArchiveError::Broken(format!("run {id} is in archive {}: {why}", archive.number));
    let entry = entry.ok_or_else(|| broken("the audit log no longer records it".to_owned()))?;
    let bytes = folder.read(&entry)?;
    let (mut found, mut log, mut inputs, mut here) = (None, Vec::new(), Vec::new(), false);
    let read = piece::read(&bytes, |line| {
        match line {
            ArchiveLine::Run(run) if run.run == id => (here, found) = (true, Some(run)),
            // The next run begins.
            ArchiveLine::Run(_) if here => return Ok(false),
            ArchiveLine::Entry(_, text) if here => log.push(event(&text)?),
            ArchiveLine::Row(row) if here => inputs.push(row),
            ArchiveLine::Header(_) | ArchiveLine::Run(_) | ArchiveLine::Row(_) | ArchiveLine::Entry(..) => {}
        }
        Ok(true)
    });
    read.map_err(|error: io::Error| broken(error.to_string()))?;
    let run = found.ok_or_else(|| broken("the file does not contain it".to_owned()))?;
    let compiled = store.flow_of(&run.state).await?.ok();
    let shown = engine::shown_run(compiled.as_deref(), &run.state);
    let (steps, reviews, deliveries) = (run.steps, run.reviews, run.deliveries);
    Ok(Some(ArchivedContent { archived, run: shown, steps, reviews, deliveries, log, inputs }))
}
