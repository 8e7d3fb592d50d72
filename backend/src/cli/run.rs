//! `countersign run …`: starts, lists, shows and cancels runs on a server.

mod filter;
mod start;

use clap::Subcommand;
use shared::api::{Reason, RunQuery};
use shared::id::RunId;
use shared::run::{Report, Run};

use super::exit::Quit;
use super::remote::ServerArgs;
use super::table::{print_json, print_table, time};
use super::terminal::text;
use super::{more, print};

/// The commands for runs.
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// Launch a run of a flow that is saved on the server
    ///
    /// With --wait, the command waits until the run ends or stops for people, and its exit code says which: 0 if the run
    /// completed, 4 if it failed, 5 if a person stopped it, 6 if it was cancelled, 7 if it waits for people. Interrupting
    /// the command ends only the wait.
    Start(start::StartArgs),
    /// List runs, newest first
    List {
        #[command(flatten)]
        filter: filter::RunFilter,
        /// Maximum number of runs, up to 200
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Cursor at which an earlier list ended
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show a run: its status, and what each visit of each node did
    Show {
        /// Id of the run
        id: RunId,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Cancel a run
    Cancel {
        /// Id of the run
        id: RunId,
        /// Reason, which is shown to reviewers and written to the audit log
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
}

pub async fn run(command: RunCommand) -> anyhow::Result<()> {
    match command {
        RunCommand::Start(args) => start::run(args).await?,
        RunCommand::List { filter, limit, cursor, server } => {
            let mut query = RunQuery { limit: Some(limit), cursor, ..filter.query() };
            let api = server.client()?;
            let mut page = api.runs(&query).await.map_err(Quit::from)?;
            // A page may be empty although another one follows.
            while page.items.is_empty() && page.next_cursor.is_some() {
                query.cursor = page.next_cursor;
                page = api.runs(&query).await.map_err(Quit::from)?;
            }
            if server.json {
                print_json(&page);
                return Ok(());
            }
            let row = |run: &shared::run::RunSummary| {
                let topic = run.topic.as_ref().map(|topic| format!(" · {topic}")).unwrap_or_default();
                let error = run.error.as_ref().map(|error| format!("{}: ", error.code)).unwrap_or_default();
                [
                    run.id.to_string(),
                    run.status.as_str().to_owned(),
                    run.flow.to_string(),
                    run.requested_by.to_string(),
                    time(run.created_at),
                    error + &run.title + &topic,
                ]
            };
            let rows: Vec<_> = page.items.iter().map(row).collect();
            print_table(["RUN", "STATUS", "FLOW", "BY", "STARTED", "TITLE"], &rows);
            more(page.next_cursor.as_deref());
        }
        RunCommand::Show { id, server } => {
            let api = server.client()?;
            let run = api.run(id).await.map_err(Quit::from)?;
            let report = api.report(id).await.map_err(Quit::from)?;
            if server.json {
                print_json(&serde_json::json!({ "run": run, "report": report }));
                return Ok(());
            }
            head(&run);
            let row = |step: &shared::run::Step| {
                let took = step.duration_ms.map(|took| format!("{took} ms")).unwrap_or_default();
                let error = step.error.as_ref().map(ToString::to_string);
                [
                    step.node.to_string(),
                    step.visit.to_string(),
                    step.kind.clone(),
                    step.status.as_str().to_owned(),
                    took,
                    error.or_else(|| step.note.clone()).unwrap_or_default(),
                ]
            };
            print("");
            let rows: Vec<_> = report.steps.iter().map(row).collect();
            print_table(["NODE", "VISIT", "KIND", "STATUS", "TOOK", "NOTE"], &rows);
            asked(&report);
            for (key, value) in run.output.as_ref().unwrap_or(&run.state) {
                print(&format!("\n{key}:\n{}", text::barred(&text::value(value)).trim_end()));
            }
        }
        RunCommand::Cancel { id, reason, server } => {
            let cancelled = server.client()?.cancel(id, &Reason { reason }, None).await;
            render(&cancelled.map_err(Quit::from)?, &server);
        }
    }
    Ok(())
}

fn render(run: &Run, server: &ServerArgs) {
    if server.json { print_json(run) } else { head(run) }
}

/// Prints the reviews that a run waits for.
fn asked(report: &Report) {
    for review in report.reviews.iter().filter(|review| review.is_pending()) {
        print(&format!("waiting for review {} ({})", review.id, text::line(&review.title)));
    }
}

fn head(run: &Run) {
    let summary = &run.summary;
    let why = summary.error.as_ref().map(|error| format!(": {error}"));
    let why = why.or_else(|| run.cancel_reason.as_ref().map(|reason| format!(": {reason}"))).unwrap_or_default();
    print(&text::line(&format!("run {} of `{}` version {}", summary.id, summary.flow, summary.version)));
    print(&text::line(&format!("{}{why}", summary.status.as_str())));
    print(&format!("launched by {} at {}", summary.requested_by, time(summary.created_at)));
}
