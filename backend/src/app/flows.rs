//! Flow files that are loaded at the start.

use std::path::{Path, PathBuf};

use crate::flow;
use crate::store::{Change, NewFlow, Operation, Store};

/// Saves every flow file of a folder, in the order of names. One whose content is stored already is skipped by the
/// store; one with mistakes is logged with line and column, and keeps no other from being loaded.
pub async fn load(store: &Store, folder: &Path) -> std::io::Result<()> {
    for path in files(folder)? {
        let file = path.display().to_string();
        let source = std::fs::read_to_string(&path)?;
        let checked = flow::check(&source);
        for error in &checked.errors {
            tracing::error!("{file}:{error}");
        }
        let Some(flow) = checked.flow.filter(|_| checked.errors.is_empty()) else { continue };
        let digest = flow::digest(&source);
        let operation = Operation::SaveFlow(Box::new(NewFlow { flow, source, digest }));
        if let Err(error) = store.commit(Change::by_server(operation)).await {
            tracing::error!(%error, "{file} could not be saved");
        }
    }
    Ok(())
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
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
