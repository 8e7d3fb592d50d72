//! Agent flows that stop for human approval, inside a Rust program.
//!
//! A flow is built in Rust or parsed from a file, and reviewers are async functions. If a person stops a run, the
//! result is a typed error.
//!
//! ```
//! use countersign::flow::{Agent, Flow, Human, accept, correct, stop};
//! use countersign::{Choice, Countersign, RunError};
//! use serde_json::json;
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let flow = Flow::new("article")
//!     .node("draft", Agent::new("writer").prompt("Write about the ocean."))
//!     .delegates_to_human("review")
//!     .human(
//!         "review",
//!         Human::new("How would you like to proceed?")
//!             .reviews("draft")
//!             .option(accept("approve", "Looks good, continue"))
//!             .option(correct("shorten", "Needs revision", "Please make it more concise."))
//!             .option(stop("reject", "Reject, stop the flow")),
//!     )
//!     .build()?;
//!
//! let countersign = Countersign::options()
//!     .reviewer(|review| async move {
//!         let draft = review.items[0].value.as_str().unwrap_or_default();
//!         if draft.len() > 100_000 { Choice::option("shorten") } else { Choice::option("reject") }
//!     })
//!     .start()
//!     .await?;
//! match countersign.run(&flow, json!({})).await {
//!     Ok(finished) => println!("{}", finished.output["draft"]),
//!     Err(RunError::Rejected { failure, .. }) => assert_eq!(failure.code.as_str(), "FLOW_HUMAN_REJECTED"),
//!     Err(error) => return Err(error.into()),
//! }
//! countersign.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! `docs/embed.md` explains more: several reviewers, functions as tools, a persistent database, the console.

pub use backend::cli::terminal::Terminal;
pub use backend::config::SettingsFile as Settings;
pub use backend::embed::{
    Choice, Countersign, DecideError, Declined, Finished, Handled, IntoChoice, Options, Reviewer, RunError, Running,
    StartError, TextStream, reviewer_fn,
};
pub use backend::flow::parse;
pub use backend::token_stream::Chunk;
pub use shared::JsonMap;
pub use shared::decision::{ActionDecision, Verdict, Via};
pub use shared::definition::OnTimeout;
pub use shared::error::{FlowCode, Mistake};
pub use shared::id::{ReviewId, RunId, TaskId};
pub use shared::log::{EntryKind, Event};
pub use shared::new_review::{AskedContext, AskedKind, AskedTimeout, NewReview};
pub use shared::review::Review;
pub use shared::run::{Context, Report};
pub use shared::time::Span;

/// Types and functions to build flows in Rust.
pub mod flow {
    pub use backend::flow::builder::{
        Agent, Call, Flow, Human, InvalidFlow, Map, NodeSpec, Router, Set, Team, Tool, accept, alternative, correct,
        function, stop,
    };
    pub use shared::definition;
}
