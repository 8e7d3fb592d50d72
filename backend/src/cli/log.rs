//! `countersign log`: prints what happens on a server, in order and without gaps.

use std::time::Duration;

use clap::Args;
use shared::api::LogQuery;
use shared::error::Code;
use shared::id::RunId;
use shared::log::{Entry, Event, EventData};

use super::exit::Quit;
use super::remote::ServerArgs;
use super::table::time;
use super::terminal::text;
use super::{is_read, print_error};

/// The pause between two reads of the log while there are no new entries.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between attempts while the server cannot be reached; pauses double up to it.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// The arguments of `countersign log`.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Follow new entries, and reconnect if the server cannot be reached
    #[arg(long, short)]
    follow: bool,
    /// Filter by run
    #[arg(long)]
    run: Option<RunId>,
    /// Print only entries after this cursor, which each JSON entry has
    #[arg(long, value_name = "CURSOR", conflicts_with = "new")]
    after: Option<String>,
    /// Print only entries from now on
    #[arg(long, requires = "follow")]
    new: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Runs `countersign log`: prints the entries, with `--json` each as one line of JSON.
pub async fn run(args: LogArgs) -> anyhow::Result<()> {
    let api = args.server.client()?;
    let after = if args.new { Some("end".to_owned()) } else { args.after };
    let mut query = LogQuery { run: args.run, after, limit: Some(200) };
    let mut pause = PAUSE;
    loop {
        let page = match api.log(&query).await {
            Ok(page) => page,
            Err(problem) if args.follow && matches!(problem.code, Code::Unavailable | Code::TooManyRequests) => {
                if pause == PAUSE {
                    print_error(&format!("{}; waiting for the server", text::line(&problem.to_string())));
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
                continue;
            }
            Err(problem) => return Err(Quit::from(problem).into()),
        };
        pause = PAUSE;
        for entry in &page.items {
            let shown = if args.server.json { text::json_line(entry) } else { line(entry) };
            if !is_read(&shown) {
                return Ok(());
            }
        }
        let has_more = page.next_cursor.is_some();
        // Without new entries, the next read begins at the same place.
        let place = page.next_cursor.or_else(|| page.items.last().map(|last| last.cursor.to_string()));
        query.after = place.or(query.after);
        if has_more {
            continue;
        }
        if !args.follow {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn line(entry: &Entry) -> String {
    let event = &entry.event;
    let (node, said) = subject(event);
    let (node, said) = (node.map(|node| text::line(&node)), said.map(|said| text::line(&said)));
    let of = event.review_id.map(|id| id.to_string()).or_else(|| event.run_id.map(|id| id.to_string()));
    let actor = event.author().map(|author| format!("by {author}"));
    let parts = [Some(time(event.at)), Some(format!("{:<18}", event.kind.as_str())), of, node, actor, said];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

/// Returns the node of an event and its most useful detail, such as the tool, the note or the outcome.
fn subject(event: &Event) -> (Option<String>, Option<String>) {
    match event.read() {
        Some(EventData::ModelAnswered(answered)) => return (Some(answered.node.to_string()), None),
        Some(EventData::ToolExecuted(call)) => return (Some(call.node.to_string()), Some(call.tool)),
        _ => {}
    }
    if let Some(step) = event.step() {
        return (Some(step.node.to_string()), step.note.or(step.error.map(|error| error.message)));
    }
    if let Some(review) = event.review() {
        let outcome = review.resolution.as_ref().map(|resolution| resolution.outcome.in_words(&review).to_owned());
        return (review.node.map(|node| node.to_string()), outcome.or(Some(review.title)));
    }
    let run = event.run();
    (None, run.map(|run| run.error.map_or(run.title, |error| error.message)))
}
