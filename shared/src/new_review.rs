//! A question that a program asks without a flow: the body of `POST /api/v1/reviews`.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::JsonMap;
use crate::definition::{Builtin, OnTimeout, Policy, Reviewers};
use crate::review::ReviewKind;
use crate::run::Context;
use crate::time::Span;

/// `POST /api/v1/reviews`: a question without a run of a flow. In addition to the members listed here, it has the
/// parameters of the corresponding builtin tool: `request_approval`, `review_calls`, `ask_human`, `request_edit`,
/// `escalate`, `checkpoint` or `handoff`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewReview {
    /// The kind of question, which determines the parameters.
    pub kind: AskedKind,
    /// A headline; default: the first sentence of the question.
    pub title: Option<String>,
    /// Who may decide; default: everyone with the system role reviewer.
    #[serde(default, skip_serializing_if = "Reviewers::is_empty")]
    pub reviewers: Reviewers,
    /// Tags that those who are asked by role also need: the same as `reviewers.tags`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How several decisions become one; default: the first resolves.
    #[serde(default, skip_serializing_if = "Policy::is_first")]
    pub policy: Policy,
    /// How long it waits; default: for ever.
    pub timeout: Option<Span>,
    /// What happens then; default: the default of the corresponding tool.
    pub on_timeout: Option<AskedTimeout>,
    /// The context of the question; for a clarification, what the person should know to answer.
    pub context: Option<AskedContext>,
    /// The URL to which the answer is also posted.
    pub callback_url: Option<String>,
    /// The parameters of the tool.
    #[serde(flatten)]
    pub parameters: JsonMap,
}

/// The kinds of questions without a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskedKind {
    /// Approval to do something.
    Approval,
    /// A decision on each of several calls that the program makes itself.
    ToolCalls,
    /// An answer to a question.
    Clarification,
    /// Edits of a draft.
    Edit,
    /// Help with a problem.
    Escalation,
    /// Whether to continue.
    Checkpoint,
    /// A handoff of the work.
    Handoff,
}

impl AskedKind {
    /// Returns the corresponding builtin tool of agents.
    pub fn builtin(self) -> Builtin {
        match self {
            Self::Approval => Builtin::RequestApproval,
            Self::ToolCalls => Builtin::ReviewCalls,
            Self::Clarification => Builtin::AskHuman,
            Self::Edit => Builtin::RequestEdit,
            Self::Escalation => Builtin::Escalate,
            Self::Checkpoint => Builtin::Checkpoint,
            Self::Handoff => Builtin::Handoff,
        }
    }

    /// Returns the kind of the review.
    pub fn of_review(self) -> ReviewKind {
        match self {
            Self::Approval => ReviewKind::Approval,
            Self::ToolCalls => ReviewKind::ToolCalls,
            Self::Clarification => ReviewKind::Clarification,
            Self::Edit => ReviewKind::Edit,
            Self::Escalation => ReviewKind::Escalation,
            Self::Checkpoint => ReviewKind::Checkpoint,
            Self::Handoff => ReviewKind::Handoff,
        }
    }
}

/// What happens if no one answers in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskedTimeout {
    /// It counts as rejected.
    Reject,
    /// It counts as approved; a draft stays as it is.
    Approve,
    /// There is no answer.
    Error,
}

impl From<AskedTimeout> for OnTimeout {
    fn from(timeout: AskedTimeout) -> Self {
        match timeout {
            AskedTimeout::Reject => Self::Reject,
            AskedTimeout::Approve => Self::Approve,
            AskedTimeout::Error => Self::Error,
        }
    }
}

/// The context of a question: as of a run, or what the person should know to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a text, or an object with some of user, tenant, session and metadata")]
pub enum AskedContext {
    /// The parameter `context` of `ask_human`.
    Background(String),
    /// A context like that of a run.
    Whom(Context),
}

impl NewReview {
    /// Returns the context of the review; empty if `context` is missing or a text.
    pub fn whom(&self) -> Context {
        match &self.context {
            Some(AskedContext::Whom(context)) => context.clone(),
            _ => Context::default(),
        }
    }

    /// Returns the reviewers, with `tags` added to their tags.
    pub fn who(&self) -> Reviewers {
        let Self { reviewers, tags, .. } = self;
        let more = tags.iter().filter(|tag| !reviewers.tags.contains(tag));
        Reviewers { tags: reviewers.tags.iter().chain(more).cloned().collect(), ..reviewers.clone() }
    }

    /// Returns the arguments of the corresponding builtin tool: the parameters, the timeout, and `context` if it is a
    /// text.
    pub fn arguments(&self) -> JsonMap {
        let mut arguments = self.parameters.clone();
        arguments.extend(self.timeout.map(|timeout| ("timeout".to_owned(), timeout.to_string().into())));
        if let Some(AskedContext::Background(text)) = &self.context {
            arguments.insert("context".to_owned(), text.as_str().into());
        }
        arguments
    }
}
