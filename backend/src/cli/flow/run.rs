//! `countersign flow run`: runs a flow in this process, with the person at the terminal, or a script, as its reviewer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use shared::decision::Via;
use shared::definition::Policy;
use shared::error::Mistake;
use shared::id::Username;
use tokio::time::timeout;

use super::super::exit::{Exit, Quit};
use super::super::launch_args::LaunchArgs;
use super::super::terminal::{InputLines, Screen, Terminal, text};
use super::super::{print, serve};
use super::called::Called;
use super::narrate::narrate;
use crate::app;
use crate::config;
use crate::embed::{Options, RunError};
use crate::flow::{self, Here, Reach};

/// How long the shutdown may take once the run is over.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The arguments of `countersign flow run`.
#[derive(Debug, Args)]
#[command(after_long_help = EXITS)]
pub struct RunArgs {
    /// Flow file
    file: PathBuf,
    #[command(flatten)]
    launch: LaunchArgs,
    /// File with one answer per line; `-` is standard input [default: standard input]
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Person who decides; may be repeated, and the first one launches the run [default: the user of this machine]
    #[arg(long = "as", value_name = "NAME")]
    names: Vec<Username>,
    /// Folder of the flow files that this flow may call [default: its own folder]
    #[arg(long, value_name = "FOLDER")]
    flows: Option<PathBuf>,
    /// Settings file, as for `countersign serve`
    #[arg(long, env = "COUNTERSIGN_CONFIG", hide_env_values = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show only questions, not each step
    #[arg(long, short)]
    quiet: bool,
}

const EXITS: &str = "\
Questions and steps go to standard error, and the output of the run goes to standard output as JSON. Nothing is stored.

Exit codes:
  0    the run completed
  1    another error
  2    the command line is invalid
  3    the flow or its input has errors
  4    the run failed
  5    a person stopped the run (FLOW_HUMAN_REJECTED)
  6    the run was cancelled
  7    a person was asked, and there was no valid answer
  130  interrupted (Ctrl+C or a stop signal); the run was cancelled";

/// Runs the flow, and prints its output.
pub async fn run(args: RunArgs) -> anyhow::Result<()> {
    let shown = args.file.display().to_string();
    let source = std::fs::read_to_string(&args.file).map_err(|error| Quit::unread(&args.file, &error))?;
    let draft = flow::read(&source);
    let folder = args.flows.as_deref().or_else(|| args.file.parent()).unwrap_or(Path::new("."));
    let called = Called::of(draft.flow(), folder)?;
    let settings = config::SettingsFile::load(args.config.as_deref())?;
    let reach = Reach { terminal: true, ..app::reach(&settings, true) };
    let checked = draft.check(&Here { library: Some(&called.library()), reach: Some(&reach), ..Here::default() });
    let (Some(flow), true) = (checked.flow, checked.errors.is_empty()) else {
        return Err(Quit::new(Exit::Invalid, listed(&shown, &checked.errors)).into());
    };
    let input = args.launch.input(flow.input.as_ref())?;
    let context = args.launch.context()?;

    let screen = Screen::stderr();
    let answers = match args.answers.as_deref() {
        Some(file) if file.as_os_str() != "-" => InputLines::file(file).map_err(|error| Quit::unread(file, &error))?,
        _ => InputLines::stdin(),
    };
    let terminal = Arc::new(Terminal::on(screen.clone(), answers));
    let names = if args.names.is_empty() { vec![whoever()?] } else { args.names };
    let mut asked = roles(&serde_json::to_value(&flow)?);
    for flow in &called.flows {
        asked.extend(roles(&serde_json::to_value(flow)?));
    }
    let roles: Vec<String> = asked.into_iter().collect();
    let mut options = Options::new().settings(settings);
    if let Some(first) = names.first() {
        options = options.requested_by(first.as_str());
    }
    for name in &names {
        let reviewer = if names.len() > 1 { Arc::new(terminal.of(name.clone())) } else { Arc::clone(&terminal) };
        options = options.person_with(name.as_str(), roles.clone(), Via::Cli, reviewer);
    }

    let countersign = options.start().await?;
    for flow in &called.flows {
        countersign.add(flow).await.map_err(|error| Quit::new(Exit::Invalid, format!("{}: {error}", flow.id)))?;
    }
    let mut interrupted = false;
    let ended = match countersign.launch(&flow, input, context).await {
        Ok(mut running) => {
            let mut stop = std::pin::pin!(serve::stop_signal());
            loop {
                tokio::select! {
                    event = running.next() => match event {
                        Some(event) => {
                            if let Some(line) = narrate(&event).filter(|_| !args.quiet) {
                                screen.say(&line);
                            }
                        }
                        None => break running.finished().await,
                    },
                    () = &mut stop, if !interrupted => {
                        interrupted = true;
                        screen.close();
                        running.cancel(Some("interrupted at the terminal".to_owned())).await?;
                    }
                }
            }
        }
        Err(error) => Err(error),
    };
    screen.close();
    // Nothing is stored, so nothing is lost if the shutdown takes too long.
    let _ = timeout(TIMEOUT, countersign.shutdown()).await;
    match ended {
        Ok(finished) => {
            print(&text::json(&finished.output));
            Ok(())
        }
        Err(error) => Err(quit(error, &shown, interrupted, names.len() < 2).into()),
    }
}

/// Returns the exit code and the message for a run that did not complete. `alone` says whether only one person answers
/// at the terminal.
fn quit(error: RunError, shown: &str, interrupted: bool, alone: bool) -> Quit {
    let message = text::lines(&error.to_string()).join("\n");
    let at = |failure: &shared::error::FlowError| {
        failure.node.as_ref().map(|node| format!(" (at `{node}`)")).unwrap_or_default()
    };
    match error {
        RunError::Rejected { failure, .. } => Quit::new(Exit::Rejected, message + &at(&failure)),
        RunError::Failed { failure, .. } => Quit::new(Exit::Failed, message + &at(&failure)),
        RunError::Cancelled { .. } if interrupted => Quit::new(Exit::Interrupted, message),
        RunError::Cancelled { .. } => Quit::new(Exit::Cancelled, message),
        RunError::Invalid(mistakes) => Quit::new(Exit::Invalid, listed(shown, &mistakes)),
        RunError::Undecided { review, .. } => {
            let needs_others = review.reviewers.not_requester
                || review.reviewers.not_same_as.is_some()
                || review.policy != Policy::default();
            let remedy = if needs_others && alone {
                "\nrepeat `--as NAME` once for each person to answer for several"
            } else {
                ""
            };
            Quit::new(Exit::Unanswered, message + remedy)
        }
        RunError::Store(_) | RunError::Commit(_) => Quit::new(Exit::Error, message),
    }
}

fn listed(file: &str, mistakes: &[Mistake]) -> String {
    let lines = mistakes.iter().map(|mistake| text::line(&format!("{file}:{mistake}")));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns every role and tag that a flow names: at a terminal, each person has all of them.
fn roles(flow: &Value) -> BTreeSet<String> {
    let below: Vec<&Value> = match flow {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    let mut found: BTreeSet<String> = below.into_iter().flat_map(roles).collect();
    // Only the tags of `reviewers`: the flow's own tags and those of its nodes are not for people.
    let lists = [flow.get("roles"), flow.pointer("/reviewers/tags")].into_iter().flatten();
    let listed = lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    let groups = flow.get("groups").and_then(Value::as_object).into_iter().flat_map(|groups| groups.keys());
    let escalated = flow.get("escalate").and_then(Value::as_str);
    let named = listed.chain(groups.map(String::as_str)).chain(escalated);
    found.extend(named.filter(|role| role.parse::<Username>().is_ok()).map(str::to_owned));
    found
}

/// Returns the user of this machine, if that is a valid username; otherwise `terminal`.
fn whoever() -> Result<Username, Quit> {
    let named = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
    let named = named.and_then(|name| name.to_lowercase().parse().ok());
    named
        .map_or_else(|| "terminal".parse(), Ok)
        .map_err(|error: shared::id::InvalidName| Quit::new(Exit::Error, error.to_string()))
}
