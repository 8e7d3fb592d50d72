//! `countersign flow …`: checks and runs flow files without a server, and saves them to one.

mod called;
mod narrate;
mod run;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::exit::{Exit, Quit};
use super::print;
use super::remote::ServerArgs;
use super::table::print_json;
use super::terminal::text;
use crate::flow::{self, Here};

/// The commands for flow files.
#[derive(Debug, Subcommand)]
pub enum FlowCommand {
    /// Print the JSON Schema of the flow format, for editors that complete and check as you type
    Schema,
    /// Check flow files, and report every error with its line and column
    ///
    /// The flows that they call are looked up in the same folder.
    Check {
        /// Flow files to check, in YAML or JSON.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Save a flow file to a server, as a new version of the flow whose id it has
    ///
    /// The same content is saved once. Flows that this one calls must be saved before it.
    Save {
        /// Flow file, in YAML or JSON
        file: PathBuf,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Run a flow in this process, and ask in the terminal
    ///
    /// Questions appear as numbered menus on standard error. Answers are lines of standard input, so a script can pipe
    /// them in ("2\n1\n" chooses 2 at the first question, and 1 at the next). Answer calls that need approval with yes,
    /// no, edit, respond or choose.
    Run(run::RunArgs),
}

pub async fn run(command: FlowCommand) -> anyhow::Result<()> {
    match command {
        FlowCommand::Run(args) => Box::pin(run::run(args)).await?,
        FlowCommand::Schema => print(&serde_json::to_string_pretty(&flow::schema())?),
        FlowCommand::Save { file, server } => save(&file, &server).await?,
        FlowCommand::Check { files } => {
            let mut mistakes = 0;
            for file in files {
                let source = std::fs::read_to_string(&file).map_err(|error| Quit::unread(&file, &error))?;
                let draft = flow::read(&source);
                let folder = file.parent().unwrap_or(Path::new("."));
                let called = called::Called::of(draft.flow(), folder)?;
                let checked = draft.check(&Here { library: Some(&called.library()), ..Here::default() });
                mistakes += checked.errors.len();
                let shown = text::line(&file.display().to_string());
                for error in &checked.errors {
                    print(&format!("{shown}:{}", text::line(&error.to_string())));
                }
                for warning in &checked.warnings {
                    print(&format!("{shown}:{} (warning)", text::line(&warning.to_string())));
                }
                if checked.errors.is_empty() {
                    print(&format!("{shown}: ok"));
                }
            }
            if mistakes > 0 {
                let message = if mistakes == 1 { "1 error".to_owned() } else { format!("{mistakes} errors") };
                return Err(Quit::new(Exit::Invalid, message).into());
            }
        }
    }
    Ok(())
}

/// Saves a flow file. The server checks it, since it knows the people, the called flows and what can be reached; the file
/// is only read here to find the id.
async fn save(file: &Path, server: &ServerArgs) -> anyhow::Result<()> {
    let source = std::fs::read_to_string(file).map_err(|error| Quit::unread(file, &error))?;
    let shown = text::line(&file.display().to_string());
    let draft = flow::read(&source);
    let Some(id) = draft.flow().map(|flow| flow.id.clone()) else {
        let errors = draft.check(&Here::default()).errors;
        let lines: Vec<_> = errors.iter().map(|error| text::line(&format!("{shown}:{error}"))).collect();
        return Err(Quit::new(Exit::Invalid, lines.join("\n")).into());
    };
    let saved = server.client()?.save_flow(&id, &source).await.map_err(Quit::from)?;
    if server.json {
        print_json(&saved);
        return Ok(());
    }
    for warning in &saved.warnings {
        print(&text::line(&format!("{shown}:{warning} (warning)")));
    }
    print(&format!("{shown}: `{}` version {}", saved.id, saved.version));
    Ok(())
}
