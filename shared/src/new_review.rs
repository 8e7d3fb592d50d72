//! What a program asks people without a flow: the body of `POST /api/v1/reviews`.

use serde::{Deserialize, Serialize};

use crate::JsonMap;
use crate::definition::{Builtin, OnTimeout, Policy, Reviewers};
use crate::review::ReviewKind;
use crate::run::Context;
use crate::time::Span;

/// `POST /api/v1/reviews`: a question that no run of a flow asks. Beside what is listed here it has the parameters of the
/// builtin tool that asks the same for an agent: of `request_approval`, `ask_human`, `request_edit`, `escalate`,
/// `checkpoint` or `handoff`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewReview {
    /// What is asked, and so which parameters there are.
    pub kind: AskedKind,
    /// A headline; default: the first sentence of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Who may decide; default: everyone with the system role reviewer.
    #[serde(default, skip_serializing_if = "Reviewers::is_empty")]
    pub reviewers: Reviewers,
    /// What those who are asked by role must have besides: the same as `reviewers.tags`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How several decisions become one; default: the first resolves.
    #[serde(default, skip_serializing_if = "Policy::is_first")]
    pub policy: Policy,
    /// How long it waits; default: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What happens then; default: as the tool of that kind does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<AskedTimeout>,
    /// For whom it is asked; or, of a clarification, what somebody should know to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<AskedContext>,
    /// Where the answer is posted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// The parameters of the tool.
    #[serde(flatten)]
    pub parameters: JsonMap,
}

/// What can be asked without a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AskedKind {
    /// For leave to do something.
    Approval,
    /// To be told something.
    Clarification,
    /// To have a draft edited.
    Edit,
    /// To be helped out.
    Escalation,
    /// Whether to go on.
    Checkpoint,
    /// That somebody takes it over.
    Handoff,
}

impl AskedKind {
    /// The tool by which an agent asks the same.
    pub fn builtin(self) -> Builtin {
        match self {
            Self::Approval => Builtin::RequestApproval,
            Self::Clarification => Builtin::AskHuman,
            Self::Edit => Builtin::RequestEdit,
            Self::Escalation => Builtin::Escalate,
            Self::Checkpoint => Builtin::Checkpoint,
            Self::Handoff => Builtin::Handoff,
        }
    }

    /// The kind of its review.
    pub fn of_review(self) -> ReviewKind {
        match self {
            Self::Approval => ReviewKind::Approval,
            Self::Clarification => ReviewKind::Clarification,
            Self::Edit => ReviewKind::Edit,
            Self::Escalation => ReviewKind::Escalation,
            Self::Checkpoint => ReviewKind::Checkpoint,
            Self::Handoff => ReviewKind::Handoff,
        }
    }
}

/// What happens when nobody has answered in time.
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

/// For whom something is asked, or what somebody should know to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a text, or an object with some of user, tenant, session and metadata")]
pub enum AskedContext {
    /// The parameter `context` of `ask_human`.
    Background(String),
    /// As of a run.
    Whom(Context),
}

impl NewReview {
    /// For whom it is asked.
    pub fn whom(&self) -> Context {
        match &self.context {
            Some(AskedContext::Whom(context)) => context.clone(),
            _ => Context::default(),
        }
    }

    /// Who may decide, with the tags that stand beside.
    pub fn who(&self) -> Reviewers {
        let Self { reviewers, tags, .. } = self;
        let more = tags.iter().filter(|tag| !reviewers.tags.contains(tag));
        Reviewers { tags: reviewers.tags.iter().chain(more).cloned().collect(), ..reviewers.clone() }
    }

    /// What the tool is called with.
    pub fn arguments(&self) -> JsonMap {
        let mut arguments = self.parameters.clone();
        if let Some(timeout) = self.timeout {
            arguments.insert("timeout".to_owned(), timeout.to_string().into());
        }
        if let Some(AskedContext::Background(text)) = &self.context {
            arguments.insert("context".to_owned(), text.as_str().into());
        }
        arguments
    }
}
