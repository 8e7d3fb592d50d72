//! `countersign archive …`: reads archived runs back from their files. Works beside a running server.

use clap::Subcommand;
use shared::id::RunId;

use super::exit::{Exit, Quit};
use super::storage_of_server;
use super::table::print_json;
use crate::app;
use crate::archive::{Folder, look_up};
use crate::config::StorageArgs;

/// The commands for archived runs.
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// Print an archived run as JSON: the run, its steps, its reviews and its log entries
    Show {
        /// Id of the run
        run: RunId,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

pub async fn run(command: ArchiveCommand) -> anyhow::Result<()> {
    let ArchiveCommand::Show { run, storage } = command;
    let storage = storage_of_server(&storage)?;
    let folder = Folder::at(storage.archive.clone());
    let store = app::open_to_read(&storage, app::system_clock()).await?;
    let found = look_up(&store, &folder, run).await;
    store.close().await;
    let Some(found) = found? else {
        return Err(Quit::new(Exit::NotFound, format!("run {run} is not archived")).into());
    };
    print_json(&found);
    Ok(())
}
