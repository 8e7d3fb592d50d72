//! Loads flow files when the server starts.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use shared::access::Principal;
use shared::id::FlowId;

use crate::flow::{self, Here, Library, ParsedFlow, Reach, calls};
use crate::store::{self, Change, NewFlow, Operation, Store};

struct FlowFile {
    name: String,
    source: String,
    draft: ParsedFlow,
}

impl FlowFile {
    fn id(&self) -> Option<&FlowId> {
        self.draft.flow().map(|flow| &flow.id)
    }
}

/// Saves every flow file of a folder, in the order of names, but called flows before their callers. A file whose
/// content was stored before is skipped, even if other content was saved since. Errors are logged with line and column
/// and do not keep other files from being loaded. Warnings are logged too; with `people`, also those about what these
/// people could not decide.
pub async fn load(store: &Store, folder: &Path, people: Option<&[Principal]>, reach: &Reach) -> anyhow::Result<()> {
    let unread = |error| anyhow!("the flows in {} cannot be read: {error}", folder.display());
    let mut waiting = Vec::new();
    for path in files(folder).map_err(unread)? {
        let source = std::fs::read_to_string(&path).map_err(unread)?;
        waiting.push(FlowFile { name: path.display().to_string(), draft: flow::read(&source), source });
    }
    while !waiting.is_empty() {
        // If all wait for each other, the errors of the first one report the circle.
        let next = (0..waiting.len()).find(|at| is_ready(&waiting[*at], &waiting)).unwrap_or(0);
        save(store, waiting.remove(next), people, reach).await?;
    }
    Ok(())
}

/// Whether a flow calls none of the flows that are still to be saved.
fn is_ready(file: &FlowFile, waiting: &[FlowFile]) -> bool {
    let Some(flow) = file.draft.flow() else { return true };
    calls(flow).all(|(_, call)| call.id == flow.id || waiting.iter().all(|other| other.id() != Some(&call.id)))
}

async fn save(store: &Store, file: FlowFile, people: Option<&[Principal]>, reach: &Reach) -> Result<(), store::Error> {
    let FlowFile { name, source, draft } = file;
    let digest = flow::digest(&source);
    if let Some(flow) = draft.flow()
        && store.is_superseded(&flow.id, &digest).await?
    {
        tracing::info!("{name} was not loaded: `{}` has since been saved with different content", flow.id);
        return Ok(());
    }
    let library = match draft.flow() {
        Some(flow) => store.library(flow).await?,
        None => Library::default(),
    };
    let checked = draft.check(&Here { people, library: Some(&library), reach: Some(reach) });
    for error in &checked.errors {
        tracing::error!("{name}:{error}");
    }
    for warning in &checked.warnings {
        tracing::warn!("{name}:{warning}");
    }
    let Some(flow) = checked.flow.filter(|_| checked.errors.is_empty()) else { return Ok(()) };
    let operation = Operation::SaveFlow(Box::new(NewFlow { flow, source, digest }));
    if let Err(error) = store.commit(Change::by_server(operation)).await {
        tracing::error!(%error, "{name} could not be saved");
    }
    Ok(())
}

/// Lists the flow files of a folder, in the order of names.
pub fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
