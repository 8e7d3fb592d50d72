//! The command line, with one file for each command.

mod archive;
mod audit;
mod exit;
mod flow;
mod launch_args;
mod log;
mod remote;
mod review;
mod run;
mod serve;
mod table;
pub mod terminal;
mod user;

pub use exit::{Exit, Quit};

use anyhow::bail;
use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::config::{ServeArgs, Storage, StorageArgs};
use crate::store::Store;
use terminal::text;

/// The command line of the program.
#[derive(Debug, Parser)]
#[command(name = "countersign", version, about = "Agent flows that stop for human approval")]
#[command(arg_required_else_help = true, after_help = EXITS)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXITS: &str = "\
`review`, `run`, `log` and `flow save` use a server: COUNTERSIGN_SERVER is its URL, and COUNTERSIGN_TOKEN is your token.

Exit codes:
  0    success; the run completed
  1    another error
  2    the command line is invalid
  3    the flow, the input or the decision has errors
  4    the run failed
  5    a person stopped the run
  6    the run was cancelled
  7    a person was asked, and there was no valid answer (yet)
  8    not found, or not visible to you
  9    not logged in, or not allowed
  10   too late, or the content has changed
  11   the server cannot be reached or is too busy
  130  interrupted (Ctrl+C or a stop signal); the run was cancelled";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the console and the API, and run flows.
    ///
    /// Settings come from flags, then environment variables, then the settings file. The keys of model providers come
    /// from the environment: OPENAI_API_KEY (and OPENAI_BASE_URL for any compatible server), ANTHROPIC_API_KEY (and
    /// ANTHROPIC_BASE_URL), OLLAMA_HOST. Flows see COUNTERSIGN_ENV_NAME as env.NAME, and their tools see
    /// COUNTERSIGN_SECRET_NAME as secret.NAME. COUNTERSIGN_ADMIN_PASSWORD sets the password of the user admin on the
    /// first start. COUNTERSIGN_HOSTS_NAME limits where a secret may be sent. COUNTERSIGN_SMTP_PASSWORD,
    /// COUNTERSIGN_SLACK_TOKEN, COUNTERSIGN_SLACK_SIGNING_SECRET, COUNTERSIGN_WEBHOOK_SECRET_NAME, COUNTERSIGN_HANDLER_SECRET,
    /// COUNTERSIGN_CALLBACK_SECRET, COUNTERSIGN_OIDC_SECRET and COUNTERSIGN_METRICS_TOKEN are the secrets of what the
    /// settings file sets up. COUNTERSIGN_LOG sets what is logged to standard error (for example info, or
    /// warn,backend::worker=debug), and COUNTERSIGN_LOG_FORMAT=json makes each line JSON.
    Serve(ServeArgs),
    /// Check and run flow files, save them to a server, and print the schema of their format.
    #[command(subcommand)]
    Flow(flow::FlowCommand),
    /// Verify the audit log, and print its newest seal and its public key.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Read archived runs.
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// List, show and decide reviews on a server.
    #[command(subcommand)]
    Review(review::ReviewCommand),
    /// Launch, list, show and cancel runs on a server.
    #[command(subcommand)]
    Run(run::RunCommand),
    /// Print the log of a server, in order.
    Log(log::LogArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Add and manage users, and create login links.
    #[command(subcommand)]
    User(user::UserCommand),
}

/// Log filter directives that limit libraries whose messages may contain the content of calls and rows, or the URL of an
/// MCP server.
const LIBRARIES: &str = "sqlx=warn,memory_serve=warn,rmcp=off";

impl Cli {
    /// Returns the log filter: `chosen`, the value of COUNTERSIGN_LOG, if it is set, otherwise `info` for the server and
    /// `error` for other commands. Libraries that log the content that they carry stay quiet, unless `chosen` names them.
    /// The error says why `chosen` is not a filter.
    pub fn log_filter(&self, chosen: Option<&str>) -> Result<String, String> {
        match chosen.map(str::trim).filter(|chosen| !chosen.is_empty()) {
            Some(chosen) => match EnvFilter::try_new(chosen) {
                Ok(_) => Ok(format!("{LIBRARIES},{chosen}")),
                Err(error) => Err(format!(
                    "COUNTERSIGN_LOG is {chosen:?}: {error}; expected a level, such as info, or levels of modules, such \
                     as warn,backend::worker=debug"
                )),
            },
            None if self.is_server() => Ok(format!("{LIBRARIES},info")),
            None => Ok("error,rmcp=off".to_owned()),
        }
    }

    /// Whether the command is `serve`, whose errors belong in the log of the server.
    pub fn is_server(&self) -> bool {
        matches!(self.command, Command::Serve(_))
    }

    /// Runs the command. The error may be a [`Quit`] with an exit code.
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

/// Resolves where a server stores its data. Fails if no server has created the database yet, so that a command in the
/// wrong folder creates nothing.
fn storage_of_server(args: &StorageArgs) -> anyhow::Result<Storage> {
    let (storage, _) = Storage::resolve(args)?;
    if !Store::may_exist(&storage.database) {
        bail!(
            "there is no database at {}; start a server first, or name its folder (--data) or its settings (--config)",
            storage.database
        );
    }
    Ok(storage)
}

/// Prints a line to standard output, harmless for a terminal. A closed pipe is not an error.
pub(crate) fn print(line: &str) {
    let _ = is_read(line);
}

/// Prints the error of a command to standard error, harmless for a terminal: it may quote files and servers. If nobody
/// reads the output any more, that is not an error.
pub fn print_error(message: &str) {
    let _ = write_to(&mut std::io::stderr().lock(), message);
}

/// Prints a line like `print`, and returns whether standard output is still open.
fn is_read(line: &str) -> bool {
    write_to(&mut std::io::stdout().lock(), line).is_ok()
}

/// Prints to standard error the cursor at which a list continues, if it does.
fn more(cursor: Option<&str>) {
    if let Some(cursor) = cursor {
        print_error(&format!("more results: --cursor {cursor}"));
    }
}

/// Writes lines in which nothing can move the cursor, or colour, hide or reverse text.
fn write_to(out: &mut dyn std::io::Write, lines: &str) -> std::io::Result<()> {
    writeln!(out, "{}", text::lines(lines).join("\n"))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_printed_controls_the_terminal() {
        let mut out = Vec::new();
        write_to(&mut out, "a.yaml:1:2\u{1b}[2J\r: \u{202e}x\n\tb").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a.yaml:1:2‹U+001B›[2J‹U+000D›: ‹RLO›x\n\tb\n");
    }

    #[test]
    fn libraries_that_log_addresses_of_servers_stay_quiet() {
        for (command, chosen) in [("serve", None), ("serve", Some("debug")), ("audit key", None)] {
            let cli = Cli::try_parse_from(["countersign"].into_iter().chain(command.split(' '))).unwrap();
            let filter = cli.log_filter(chosen).unwrap();
            assert!(filter.split(',').any(|directive| directive == "rmcp=off"), "{command}");
        }
    }

    #[test]
    fn a_log_filter_that_cannot_be_read_is_refused() {
        let cli = Cli::try_parse_from(["countersign", "serve"]).unwrap();
        assert_eq!(cli.log_filter(Some(" ")), cli.log_filter(None), "an empty variable is not set");
        let error = cli.log_filter(Some("warn,backend=loud")).unwrap_err();
        assert!(error.contains("COUNTERSIGN_LOG") && error.contains("warn,backend::worker=debug"), "{error}");
    }
}
