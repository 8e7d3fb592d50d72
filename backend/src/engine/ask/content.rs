//! The content of a question before it becomes a review, and who is asked.

use serde_json::{Value, json};
use shared::definition::{Handler, Human, Judge, NodeKind, OnTimeout, Policy, Reviewers, Stakes};
use shared::error::json_type;
use shared::id::NodeId;
use shared::review::{Action, AskedBy, Item, ReviewKind, ReviewOption, Source, Warning};
use shared::time::Span;

use super::gate::gate_of;
use crate::engine::question::{Question, Subject};
use crate::engine::state::RunState;
use crate::flow::Compiled;

/// What is asked.
#[derive(Debug)]
pub(in crate::engine) struct Content {
    pub kind: ReviewKind,
    /// Who asks by itself; none where the flow asks.
    pub asked_by: Option<AskedBy>,
    pub title: String,
    pub prompt: String,
    pub stakes: Stakes,
    pub reviewers: Reviewers,
    /// How long it waits; none: for ever.
    pub timeout: Option<Span>,
    /// What happens then; nothing said: reject.
    pub on_timeout: Option<OnTimeout>,
    pub items: Vec<Item>,
    pub options: Vec<ReviewOption>,
    pub free_text: bool,
    pub source: Option<Source>,
    pub actions: Vec<Action>,
    /// The ids of the actions that a grant may cover.
    pub grantable: Vec<String>,
    pub rules: Rules,
    /// What guardrails would say of it as it stands.
    pub warnings: Vec<Warning>,
}

/// How several decisions become one; by default the first resolves.
#[derive(Debug, Default)]
pub(in crate::engine) struct Rules {
    pub policy: Policy,
    pub deny: Option<u32>,
    pub blind: bool,
}

/// JSON Schema of what may stand in place of a value: another of its type.
pub(super) fn schema_of(value: &Value) -> Value {
    match json_type(value) {
        "null" => json!({}),
        "integer" => json!({ "type": "number" }),
        other => json!({ "type": other }),
    }
}

/// The definition of a human node.
pub(super) fn human<'f>(flow: &'f Compiled, node: &NodeId) -> Option<&'f Human> {
    match &flow.node(node)?.kind {
        NodeKind::Human(human) => Some(human),
        _ => None,
    }
}

/// Who is asked about a subject, in this order: the handlers of its node or gate, else those of its flow's defaults; and
/// people after them.
pub(super) fn handlers<'f>(flow: &'f Compiled, state: &RunState, subject: &Subject) -> &'f [Handler] {
    let Some(step) = state.step_of(subject) else { return &[] };
    let own = match subject {
        Subject::Node { .. } => human(flow, &step.node).and_then(|human| human.handlers.as_deref()),
        Subject::Specialist { .. } => return flow.vetting(&step.node).unwrap_or_default(),
        // What is asked in words, or what became of a lost call, only people can say.
        Subject::Ask { .. } | Subject::Takeover { .. } | Subject::Handoff { .. } | Subject::Lost { .. } => return &[],
        _ => gate_of(flow, state, subject).and_then(|gate| gate.handlers.as_deref()),
    };
    flow.of(&step.node).handlers(own)
}

/// The judge that is asked.
pub(in crate::engine) fn judge_of<'f>(flow: &'f Compiled, state: &RunState, question: &Question) -> Option<&'f Judge> {
    match handlers(flow, state, &question.subject).get(question.handler)? {
        Handler::Judge(judge) => Some(judge),
        _ => None,
    }
}
