//! Flow files that are loaded at the start.

use std::path::{Path, PathBuf};

use shared::access::Principal;

use crate::flow;
use crate::store::{Change, NewFlow, Operation, Store};

/// Saves every flow file of a folder, in the order of names. One whose content is stored already is skipped by the
/// store; one with mistakes is logged with line and column, and keeps no other from being loaded. What is doubtful
/// is logged too; where the people are given, also what they could not decide.
pub async fn load(store: &Store, folder: &Path, people: Option<&[Principal]>) -> std::io::Result<()> {
    for path in files(folder)? {
        let file = path.display().to_string();
        let source = std::fs::read_to_string(&path)?;
        let checked = flow::check_among(&source, people);
        for error in &checked.errors {
            tracing::error!("{file}:{error}");
        }
        for warning in &checked.warnings {
            tracing::warn!("{file}:{warning}");
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
