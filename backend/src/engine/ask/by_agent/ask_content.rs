//! What people see of an agent's question, before it becomes the content of a review.

use serde_json::Value;
use shared::definition::{OnTimeout, Reviewers, Stakes};
use shared::review::{Action, Item, ReviewKind, ReviewOption};
use shared::time::Span;

/// How an agent can be relieved of its step; empty if no agent asks.
#[derive(Debug, Default)]
pub(super) struct Relief {
    /// JSON Schema of an answer in place of the agent's.
    pub answer: Option<Value>,
    /// Whether an answer is required: somebody waits for it, and there are no state keys to write instead.
    pub needs_answer: bool,
    /// The other agents, which can take over.
    pub agents: Vec<String>,
}

/// What people see of a question.
#[derive(Debug)]
pub(super) struct AskContent {
    pub kind: ReviewKind,
    /// The text from which its title is made.
    pub subject: String,
    pub prompt: String,
    pub stakes: Stakes,
    pub items: Vec<Item>,
    pub options: Vec<ReviewOption>,
    pub free_text: bool,
    /// The calls that are to be decided one by one; without options.
    pub actions: Vec<Action>,
    pub timeout: Option<Span>,
    pub on_timeout: OnTimeout,
    /// The reviewers that the agent names; `None` for those of its tool.
    pub reviewers: Option<Reviewers>,
}
