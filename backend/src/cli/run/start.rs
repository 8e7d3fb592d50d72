//! `countersign run start`: starts a run on a server, and waits for its end or its first stop for people if told so.

use std::time::Duration;

use clap::Args;
use shared::api::Launch;
use shared::error::{Code, FlowCode, Problem};
use shared::id::{FlowId, RunId};
use shared::run::{Run, RunStatus};
use shared::time::Span;

use super::super::exit::{Exit, Quit};
use super::super::launch_args::LaunchArgs;
use super::super::remote::{Api, ServerArgs};
use super::super::terminal::text;
use super::super::{print, print_error};
use super::{asked, render};

/// How long one request waits: less than a response may take.
const WAIT: Span = Span(Duration::from_secs(30));
/// The pause before the server is asked again if it could not be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// The arguments of `countersign run start`.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// Id of the flow
    flow: FlowId,
    /// Version of the flow [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    version: Option<u32>,
    #[command(flatten)]
    launch: LaunchArgs,
    /// Wait until the run ends or stops for people; the exit code says which
    #[arg(long)]
    wait: bool,
    /// Key that makes the command safe to repeat: a repetition returns the first run
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(args: StartArgs) -> anyhow::Result<()> {
    let StartArgs { flow, version, launch, wait, idempotency_key, server } = args;
    let api = server.client()?;
    let saved = api.flow(&flow, version).await.map_err(Quit::from)?;
    let (input, context) = (launch.input(saved.input.as_ref())?, launch.context()?);
    let launch = Launch { flow, version, input, context, callback_url: None };
    let run = api.launch(&launch, idempotency_key.as_deref()).await.map_err(Quit::from)?;
    if !wait {
        render(&run, &server);
        return Ok(());
    }
    print_error(&format!("run {} was launched", run.summary.id));
    let run = stopped(&api, run.summary.id).await?;
    render(&run, &server);
    if !server.json {
        match &run.output {
            Some(output) => print(&text::json(output)),
            None => asked(&api.report(run.summary.id).await.map_err(Quit::from)?),
        }
    }
    Ok(ended(&run)?)
}

/// Waits until the run has ended or stopped for people, also across a restart of the server.
async fn stopped(api: &Api, id: RunId) -> Result<Run, Quit> {
    let mut told = false;
    loop {
        match api.wait_for_run(id, WAIT).await {
            Ok(run) if run.summary.status != RunStatus::Running => return Ok(run),
            Ok(_) => told = false,
            Err(problem) if is_passing(&problem) => {
                if !std::mem::replace(&mut told, true) {
                    print_error(&format!("{}; waiting for the server", text::line(&problem.to_string())));
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(problem) => return Err(problem.into()),
        }
    }
}

/// Whether a request may succeed later.
fn is_passing(problem: &Problem) -> bool {
    matches!(problem.code, Code::Unavailable | Code::TooManyRequests)
}

/// Returns the error of a run that has not completed, with its exit code.
fn ended(run: &Run) -> Result<(), Quit> {
    let failure = run.summary.error.as_ref();
    let rejected = failure.is_some_and(|failure| failure.code == FlowCode::FlowHumanRejected);
    let (exit, what) = match run.summary.status {
        RunStatus::Completed | RunStatus::Running => return Ok(()),
        RunStatus::Failed if rejected => (Exit::Rejected, "a person stopped the run"),
        RunStatus::Failed => (Exit::Failed, "the run failed"),
        RunStatus::Cancelled => (Exit::Cancelled, "the run was cancelled"),
        RunStatus::WaitingForHuman => (Exit::Unanswered, "the run waits for people"),
    };
    Err(Quit::new(exit, what))
}
