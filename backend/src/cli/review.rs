//! `countersign review …`: lists, shows, decides and reassigns reviews on a server.

mod decide;
mod reassign;

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use shared::api::ReviewQuery;
use shared::author::Author;
use shared::definition::Severity;
use shared::id::ReviewId;
use shared::inbox::{Assigned, Due, ReviewOrder};
use shared::person_filter::PersonFilter;
use shared::review::{Review, ReviewKind, ReviewStatus};
use shared::time::Span;

use super::exit::Quit;
use super::remote::ServerArgs;
use super::table::{parse_word, print_json, print_table, time};
use super::terminal::{self, text};
use super::{more, print};

/// The commands for reviews.
#[derive(Debug, Subcommand)]
pub enum ReviewCommand {
    /// List the reviews that you may see, newest first
    List(ListArgs),
    /// Show a review: the question, the content and the outcome
    Show {
        /// Id of the review
        id: ReviewId,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Decide a review, on exactly the content that is shown
    ///
    /// Without a decision on the command line, the command asks in the terminal, like `flow run`. The decision names
    /// the revision and the digest that were just shown. Use --revision and --digest to pin what you saw earlier: the
    /// decision is refused if the content has changed since.
    Decide(decide::DecideArgs),
    /// Give a pending review to another person or role; for admins
    Reassign(reassign::ReassignArgs),
}

/// The arguments of `countersign review list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Filter by status: pending, resolved, expired, withdrawn, or all [default: pending; with --decided-by, all]
    #[arg(long)]
    status: Option<String>,
    /// Only reviews that you may decide
    #[arg(long)]
    mine: bool,
    /// Filter by kind: approval, tool_calls, …
    #[arg(long, value_parser = parse_word::<ReviewKind>)]
    kind: Option<ReviewKind>,
    /// Filter by role
    #[arg(long)]
    role: Option<String>,
    /// Filter by severity: low, medium, high, critical
    #[arg(long, value_parser = parse_word::<Severity>)]
    severity: Option<Severity>,
    /// Filter by flow
    #[arg(long)]
    flow: Option<String>,
    /// Filter by tag that reviewers need
    #[arg(long)]
    tag: Option<String>,
    /// Filter by latest deadline: 30m, 2026-11-20T12:00:00Z, or none for reviews without one
    #[arg(long)]
    due: Option<Due>,
    /// Only reviews whose consequences cannot be undone
    #[arg(long)]
    irreversible: bool,
    /// Filter by minimum age: 2h
    #[arg(long)]
    age: Option<Span>,
    /// Filter by assignment: me, claimed, unclaimed
    #[arg(long, value_parser = parse_word::<Assigned>, conflicts_with = "mine")]
    assigned: Option<Assigned>,
    /// Only reviews that you decided, newest decision first: me; admins can name other people
    #[arg(long, conflicts_with_all = ["mine", "assigned"])]
    decided_by: Option<PersonFilter>,
    /// Search for words in the content
    #[arg(long, short)]
    query: Option<String>,
    /// Maximum number of reviews, up to 200
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Order: newest, or urgency (only pending reviews: the soonest deadline first, then the highest severity)
    #[arg(long, value_parser = parse_word::<ReviewOrder>)]
    order: Option<ReviewOrder>,
    /// Cursor at which an earlier list in the same order ended
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(command: ReviewCommand) -> anyhow::Result<()> {
    match command {
        ReviewCommand::List(args) => {
            let default = if args.decided_by.is_some() { "all" } else { "pending" };
            let status =
                match args.status.as_deref().unwrap_or(default) {
                    "all" => None,
                    word => Some(parse_word::<ReviewStatus>(word).map_err(|error| {
                        Quit::new(super::Exit::Invalid, format!("--status {word}: {error}, or all"))
                    })?),
                };
            let mut query = ReviewQuery {
                status,
                kind: args.kind,
                role: args.role,
                severity: args.severity,
                flow: args.flow,
                tag: args.tag,
                due: args.due,
                irreversible: args.irreversible.then_some(true),
                age: args.age,
                q: args.query,
                assigned: if args.mine { Some(Assigned::Me) } else { args.assigned },
                decided_by: args.decided_by,
                order: args.order,
                limit: Some(args.limit),
                cursor: args.cursor,
                ..ReviewQuery::default()
            };
            let api = args.server.client()?;
            let mut page = api.reviews(&query).await.map_err(Quit::from)?;
            // A page may be empty although another one follows.
            while page.items.is_empty() && page.next_cursor.is_some() {
                query.cursor = page.next_cursor;
                page = api.reviews(&query).await.map_err(Quit::from)?;
            }
            if args.server.json {
                print_json(&page);
                return Ok(());
            }
            let rows: Vec<_> = page.items.iter().map(row).collect();
            print_table(["REVIEW", "STATUS", "KIND", "SEVERITY", "FLOW", "ASKED", "UNTIL", "TITLE"], &rows);
            more(page.next_cursor.as_deref());
        }
        ReviewCommand::Show { id, server } => {
            let review = server.client()?.review(id).await.map_err(Quit::from)?;
            if server.json {
                print_json(&review);
            } else {
                print(render(&review).trim_end());
            }
        }
        ReviewCommand::Decide(args) => decide::run(args).await?,
        ReviewCommand::Reassign(args) => reassign::run(args).await?,
    }
    Ok(())
}

fn row(review: &Review) -> [String; 8] {
    [
        review.id.to_string(),
        review.status.as_str().to_owned(),
        review.kind.as_str().to_owned(),
        review.stakes.severity.as_str().to_owned(),
        review.flow.as_ref().map(ToString::to_string).unwrap_or_default(),
        time(review.created_at),
        review.expires_at.map(time).unwrap_or_default(),
        review.title.clone(),
    ]
}

/// Renders a review for people: its id and digest, the question, and the answers.
fn render(review: &Review) -> String {
    let mut all = format!(
        "review {}, revision {}, {}\n{} · asked for {} at {}\n{}",
        review.id,
        review.revision,
        review.digest,
        text::line(&review.title),
        review.requested_by,
        time(review.created_at),
        terminal::render(review),
    );
    if let Some(used) = review.usage.summary() {
        let _ = writeln!(all, " usage so far: {used}");
    }
    for action in &review.actions {
        let _ = writeln!(all, " action {}: {}", action.id, text::line(&action.name));
    }
    for option in &review.options {
        let _ = writeln!(
            all,
            " option {}: {} ({})",
            text::line(&option.id),
            text::line(&option.label),
            option.kind.as_str()
        );
        for more in option.description.iter().chain(&option.message) {
            all.push_str(&text::barred(more));
        }
    }
    for reassignment in &review.reassignments {
        let _ = writeln!(all, " {}", text::line(&reassignment.to_string()));
    }
    for comment in &review.comments {
        let _ =
            write!(all, " {} said at {}:\n{}", Author::from(comment), time(comment.at), text::barred(&comment.text));
    }
    for decision in &review.decisions {
        let verdict = text::line(&serde_json::to_string(&decision.verdict).unwrap_or_default());
        let (by, via) = (Author::from(decision), decision.via.as_str());
        let _ = writeln!(all, " {by} decided at {} via {via}: {verdict}", time(decision.at));
    }
    all + " " + &state(review) + "\n"
}

/// Describes the status of a review in one line, with the outcome, the people and the reason if it is over.
fn state(review: &Review) -> String {
    match &review.resolution {
        None => review.status.as_str().to_owned(),
        Some(resolution) => {
            let by: Vec<String> = resolution.authors(&review.decisions).iter().map(ToString::to_string).collect();
            let by = if by.is_empty() { String::new() } else { format!(" by {}", by.join(", ")) };
            let reason = resolution.reason.as_ref().map(|reason| format!(": {}", text::line(reason)));
            let reason = reason.unwrap_or_default();
            format!(
                "{}: {}{by} at {}{reason}",
                review.status.as_str(),
                resolution.outcome.in_words(review),
                time(resolution.at)
            )
        }
    }
}
