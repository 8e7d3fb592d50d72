//! The filter of `countersign run list`.

use clap::Args;
use shared::api::RunQuery;
use shared::person_filter::PersonFilter;
use shared::run::{Ending, RunStatus};
use shared::time::Timestamp;

use super::super::table::parse_word;

/// The arguments that select runs; a run must match each of them.
#[derive(Debug, Args)]
pub struct RunFilter {
    /// Filter by status: running, waiting_for_human, completed, failed, cancelled
    #[arg(long, value_parser = parse_word::<RunStatus>)]
    status: Option<RunStatus>,
    /// Filter failed runs by what stopped them: rejected, timed_out
    #[arg(long, value_parser = parse_word::<Ending>)]
    ending: Option<Ending>,
    /// Filter by flow
    #[arg(long)]
    flow: Option<String>,
    /// Filter by the person who launched the run: me, or a username
    #[arg(long)]
    by: Option<PersonFilter>,
    /// Only runs launched at this time or later: 2026-11-20T12:00:00Z
    #[arg(long)]
    after: Option<Timestamp>,
    /// Only runs launched before this time
    #[arg(long)]
    before: Option<Timestamp>,
    /// Search for words in the flow's id and title, the topic, who launched the run, and its id
    #[arg(long, short)]
    query: Option<String>,
}

impl RunFilter {
    /// Returns the query for the selected runs.
    pub fn query(self) -> RunQuery {
        let Self { status, ending, flow, by, after, before, query } = self;
        RunQuery {
            status,
            ending,
            flow,
            q: query,
            requested_by: by,
            started_after: after,
            started_before: before,
            ..RunQuery::default()
        }
    }
}
