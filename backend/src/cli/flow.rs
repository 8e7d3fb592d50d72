//! `countersign flow …`: checking flow files without a server.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Subcommand;

use super::print;
use crate::flow;

/// What can be done with flow files.
#[derive(Debug, Subcommand)]
pub enum FlowCommand {
    /// Prints the JSON Schema of the flow format, for editors that complete and check as you type
    Schema,
    /// Checks flow files, and names every mistake with its line and column
    Check {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// Carries the command out.
pub fn run(command: FlowCommand) -> anyhow::Result<()> {
    match command {
        FlowCommand::Schema => print(&serde_json::to_string_pretty(&flow::schema())?),
        FlowCommand::Check { files } => {
            let mut mistakes = 0;
            for file in files {
                let shown = file.display();
                let source = std::fs::read_to_string(&file).with_context(|| format!("{shown} cannot be read"))?;
                let checked = flow::check(&source);
                mistakes += checked.errors.len();
                for error in &checked.errors {
                    print(&format!("{shown}:{error}"));
                }
                for warning in &checked.warnings {
                    print(&format!("{shown}:{warning} (warning)"));
                }
                if checked.errors.is_empty() {
                    print(&format!("{shown}: ok"));
                }
            }
            if mistakes > 0 {
                bail!("{mistakes} mistakes");
            }
        }
    }
    Ok(())
}
