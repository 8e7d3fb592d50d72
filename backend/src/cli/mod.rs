//! The command line: one file a command.

mod archive;
mod audit;
mod exit;
mod flow;
mod log;
mod remote;
mod review;
mod run;
mod serve;
mod table;
pub mod terminal;
mod user;

pub use exit::{Exit, Quit};

use clap::{CommandFactory, Parser, Subcommand};

use crate::config::ServeArgs;

/// The command line of the program.
#[derive(Debug, Parser)]
#[command(name = "countersign", version, about = "Agent flows that stop for people", arg_required_else_help = true)]
#[command(after_help = EXITS)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXITS: &str = "\
`review`, `run` and `log` talk to a server: COUNTERSIGN_SERVER says where it is, and COUNTERSIGN_TOKEN who is calling.

Exit codes:
  0    done; the run completed
  1    something else went wrong
  2    the command line cannot be read
  3    the flow, the input or the decision has mistakes
  4    the run failed
  5    a person stopped the run
  6    the run was cancelled
  7    somebody was asked, and there was no answer, or none that fits
  8    there is no such thing, or none that you may see
  9    nobody is logged in, or they may not do this
  10   too late, or what was seen has changed
  11   the server cannot be reached, or is too busy
  130  interrupted; the run was cancelled";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the console and the API, and runs flows.
    ///
    /// Each setting is a flag, else an environment variable, else a key of the settings file. Keys of model providers
    /// come from the environment: OPENAI_API_KEY (and OPENAI_BASE_URL for any compatible server), ANTHROPIC_API_KEY
    /// (and ANTHROPIC_BASE_URL), OLLAMA_HOST. Flows see COUNTERSIGN_ENV_NAME as env.NAME, and their tools COUNTERSIGN_SECRET_NAME as secret.NAME.
    /// COUNTERSIGN_ADMIN_PASSWORD sets the password of the user admin on the first start. COUNTERSIGN_LOG says what is
    /// logged to standard error (info, or such as warn,backend::worker=debug), and COUNTERSIGN_LOG_FORMAT=json makes
    /// each line JSON.
    Serve(ServeArgs),
    /// Checks and runs flow files, and prints the schema of their format.
    #[command(subcommand)]
    Flow(flow::FlowCommand),
    /// Proves that the audit log is what it was: verifies its seals, prints their head and their key.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Reads runs that were archived.
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
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
        /// The shell that the script is for.
        shell: clap_complete::Shell,
    },
    /// Adds people, and makes links that log them in.
    #[command(subcommand)]
    User(user::UserCommand),
}

/// How much libraries log of which the messages may have content of calls and rows.
const LIBRARIES: &str = "sqlx=warn,memory_serve=warn,rmcp=error";

impl Cli {
    /// What is logged: what `chosen` says, and where it says nothing, what a server does; other commands speak for
    /// themselves. Libraries that write what they carry stay quiet, unless they are chosen by name.
    pub fn log_filter(&self, chosen: Option<&str>) -> String {
        match chosen {
            Some(chosen) => format!("{LIBRARIES},{chosen}"),
            None if self.is_server() => format!("{LIBRARIES},info"),
            None => "error".to_owned(),
        }
    }

    /// Whether this is the server, whose errors belong into its log.
    pub fn is_server(&self) -> bool {
        matches!(self.command, Command::Serve(_))
    }

    /// Carries the command out.
    pub async fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Serve(args) => serve::run(args).await,
            Command::Flow(command) => Box::pin(flow::run(command)).await,
            Command::Audit(command) => audit::run(command).await,
            Command::Archive(command) => archive::run(command).await,
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
    let _ = is_read(line);
}

/// The same, and whether there is still somebody who reads.
fn is_read(line: &str) -> bool {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

/// Says where a list goes on.
fn more(cursor: Option<&str>) {
    use std::io::Write;
    if let Some(cursor) = cursor {
        let _ = writeln!(std::io::stderr(), "there are more: --cursor {cursor}");
    }
}
