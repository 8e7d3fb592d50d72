//! The content of a question before it becomes a review, and who is asked.

pub(super) mod calls;
pub(super) mod node;
mod stakes;
pub(super) mod subject;
pub(super) mod title;

use serde_json::{Value, json};
use shared::definition::{Handler, Human, Judge, OnTimeout, Policy, Reviewers, Stakes};
use shared::error::json_type;
use shared::id::NodeId;
use shared::review::{Action, AskedBy, Item, ReviewKind, ReviewOption, Source, Warning};
use shared::time::Span;

use super::gates::gate_of;
use crate::engine::question::{Question, Subject};
use crate::engine::state::RunState;
use crate::flow::Compiled;

/// The content of a question, before it becomes a review.
#[derive(Debug, Default)]
pub(in crate::engine) struct Content {
    pub kind: ReviewKind,
    /// Who asks on their own initiative; `None` if the flow asks.
    pub asked_by: Option<AskedBy>,
    pub title: String,
    pub prompt: String,
    pub stakes: Stakes,
    pub reviewers: Reviewers,
    /// How long the review waits for people; `None` if it has no time limit.
    pub timeout: Option<Span>,
    /// What happens after that time; `None` means rejection.
    pub on_timeout: Option<OnTimeout>,
    pub items: Vec<Item>,
    pub options: Vec<ReviewOption>,
    pub free_text: bool,
    pub source: Option<Source>,
    pub actions: Vec<Action>,
    /// The ids of the actions that a grant may cover.
    pub grantable: Vec<String>,
    pub rules: Rules,
    /// What guardrails would find in the content as it stands.
    pub warnings: Vec<Warning>,
}

/// How several decisions become one. By default, the first one resolves the review.
#[derive(Debug, Default)]
pub(in crate::engine) struct Rules {
    pub policy: Policy,
    pub deny: Option<u32>,
    pub blind: bool,
}

/// Returns a JSON Schema of what may replace a value: another value of its type.
pub(super) fn schema_of(value: &Value) -> Value {
    match json_type(value) {
        "null" => json!({}),
        "integer" => json!({ "type": "number" }),
        other => json!({ "type": other }),
    }
}

/// Returns the definition of a human node; `None` if the node is no such node.
pub(super) fn human<'f>(flow: &'f Compiled, node: &NodeId) -> Option<&'f Human> {
    flow.node(node)?.kind.human()
}

/// Returns the handlers that are asked about a subject before people, in order: those of its node or gate, or else the
/// defaults of its flow.
pub(super) fn handlers<'f>(flow: &'f Compiled, state: &RunState, subject: &Subject) -> &'f [Handler] {
    let Some(step) = state.step_of(subject) else { return &[] };
    let own = match subject {
        Subject::Node { .. } => human(flow, &step.node).and_then(|human| human.handlers.as_deref()),
        Subject::Specialist { .. } => return flow.vetting(&step.node).unwrap_or_default(),
        // Only people can answer in words, and say what became of a lost call.
        Subject::Ask { .. } | Subject::Takeover { .. } | Subject::Handoff { .. } | Subject::Lost { .. } => return &[],
        _ => gate_of(flow, state, subject).and_then(|gate| gate.handlers.as_deref()),
    };
    flow.of(&step.node).handlers(own)
}

/// Returns the judge that a question asks; `None` if it asks no judge.
pub(in crate::engine) fn judge_of<'f>(flow: &'f Compiled, state: &RunState, question: &Question) -> Option<&'f Judge> {
    match handlers(flow, state, &question.subject).get(question.handler)? {
        Handler::Judge(judge) => Some(judge),
        _ => None,
    }
}
