//! `countersign review reassign`: gives a pending review to another person or role.

use clap::Args;
use shared::id::{ReviewId, Username};
use shared::reassignment::{Assignee, Reassign};

use super::super::exit::Quit;
use super::super::print;
use super::super::remote::ServerArgs;
use super::super::table::print_json;
use super::super::terminal::text;
use super::state;

/// The arguments of `countersign review reassign`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("to").required(true).args(["user", "role"]))]
#[command(group = clap::ArgGroup::new("from").args(["from_user", "from_role"]))]
pub struct ReassignArgs {
    /// Id of the review
    id: ReviewId,
    /// Person who decides it from now on
    #[arg(long)]
    user: Option<Username>,
    /// Role that decides it from now on
    #[arg(long)]
    role: Option<String>,
    /// Replace only this person; without it, everyone who may decide it is replaced
    #[arg(long, value_name = "USER")]
    from_user: Option<Username>,
    /// Replace only this role
    #[arg(long, value_name = "ROLE")]
    from_role: Option<String>,
    /// Reason, for those who see the review
    #[arg(long)]
    reason: String,
    /// Key that makes the command safe to repeat: a repetition returns the first result
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub async fn run(args: ReassignArgs) -> anyhow::Result<()> {
    let assignee = |user: Option<Username>, role: Option<String>| user.map(Assignee::User).or(role.map(Assignee::Role));
    let Some(to) = assignee(args.user, args.role) else { anyhow::bail!("--user or --role: say who decides it") };
    let request = Reassign { from: assignee(args.from_user, args.from_role), to, reason: args.reason };
    let key = args.idempotency_key.as_deref();
    let decided = args.server.client()?.reassign(args.id, &request, key).await.map_err(Quit::from)?;
    if args.server.json {
        print_json(&decided);
    } else if let Some(last) = decided.review.reassignments.last().filter(|_| decided.review.is_pending()) {
        print(&text::line(&format!("reassigned {}", last.change())));
    } else {
        // The votes that still count were enough.
        print(&state(&decided.review));
    }
    Ok(())
}
