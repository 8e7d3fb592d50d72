//! The command line: one file a command.

mod audit;
mod exit;
mod flow;
mod log;
mod remote;
mod review;
mod run;
mod serve;
mod table;
mod terminal;
mod user;

pub use exit::{Exit, Quit};

use clap::{CommandFactory, Parser, Subcommand};

use crate::config::ServeArgs;

/// Agent flows that stop for people.
#[derive(Debug, Parser)]
#[command(name = "countersign", version, about, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the console and the API, and runs flows.
    ///
    /// Each setting is a flag, else an environment variable, else a key of the settings file. Keys of model providers
    /// come from the environment: OPENAI_API_KEY (and OPENAI_BASE_URL for any compatible server), ANTHROPIC_API_KEY,
    /// OLLAMA_HOST. Flows see COUNTERSIGN_ENV_NAME as env.NAME, and their tools COUNTERSIGN_SECRET_NAME as secret.NAME.
    /// COUNTERSIGN_ADMIN_PASSWORD sets the password of the user admin on the first start.
    Serve(ServeArgs),
    /// Checks and runs flow files, and prints the schema of their format.
    #[command(subcommand)]
    Flow(flow::FlowCommand),
    /// Proves that the record is what it was: verifies its seals, prints their head and their key.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Lists, shows and decides reviews of a server.
    #[command(subcommand)]
    Review(review::ReviewCommand),
    /// Lists, shows and cancels runs of a server.
    #[command(subcommand)]
    Run(run::RunCommand),
    /// Prints the log of a server: what was committed, in order.
    Log(log::LogArgs),
    /// Prints a script with which a shell completes commands, flags and their values.
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Adds people, and makes links that log them in.
    #[command(subcommand)]
    User(user::UserCommand),
}

impl Cli {
    /// What is logged where nothing else is said: a server tells what it does, other commands speak for themselves.
    pub fn log_filter(&self) -> &'static str {
        if matches!(self.command, Command::Serve(_)) { "info,sqlx=warn" } else { "error" }
    }

    /// Carries the command out.
    pub async fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Serve(args) => serve::run(args).await,
            Command::Flow(command) => flow::run(command).await,
            Command::Audit(command) => audit::run(command).await,
            Command::Review(command) => review::run(command).await,
            Command::Run(command) => run::run(command).await,
            Command::Log(args) => log::run(args).await,
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "countersign", &mut script);
                print(String::from_utf8_lossy(&script).trim_end());
                Ok(())
            }
            Command::User(command) => user::run(command).await,
        }
    }
}

/// Prints a line for people or programs to read. A reader that has gone away is no failure.
pub(crate) fn print(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Says where a list goes on.
fn more(cursor: Option<&str>) {
    use std::io::Write;
    if let Some(cursor) = cursor {
        let _ = writeln!(std::io::stderr(), "there are more: --cursor {cursor}");
    }
}
