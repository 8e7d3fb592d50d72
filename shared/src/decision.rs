//! What a reviewer says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
use crate::definition::ActionKind;
use crate::grant::Remember;
use crate::id::{GrantId, Username};
use crate::request::Request;
use crate::time::Timestamp;

/// Through what a decision came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Via {
    /// A person, in the console or over the API.
    Human,
    /// The time was up.
    Timeout,
    /// An automatic handler, a function of the embedding program, or a grant.
    Auto,
    /// A judge: a model that a flow asks as a handler, and that was confident enough to decide.
    Judge,
    /// A program that a flow asks as a webhook, whether it answered at once or later.
    Webhook,
    /// A person in Slack, by a button of a message or a reaction to it.
    Slack,
    /// A person at a terminal: `countersign review` with a token, or a flow that `countersign flow run` runs.
    Cli,
    /// The run itself: it ended, or went on without an answer.
    Run,
}

/// What a decision says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Verdict {
    /// Chooses one of the options of a review that has no actions.
    Choose {
        /// The `id` of one of the review's `options`.
        option: String,
        /// What goes with it.
        #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
        fields: JsonMap,
    },
    /// Free text: a correction beside options, the answer where there are none; on actions: rejects them all.
    Text {
        /// At most 100,000 bytes, and not blank.
        text: String,
    },
    /// An answer to each action.
    Actions {
        /// By action id; none may be left out.
        decisions: BTreeMap<String, ActionDecision>,
        /// What the agent is told beside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
}

/// An answer to one action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ActionDecision {
    /// Runs as asked.
    Approve {
        /// Later calls of the tool do so too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<Remember>,
    },
    /// Runs with these arguments.
    Edit {
        /// All of them, not only those that differ.
        arguments: JsonMap,
    },
    /// Does not run; the agent is told.
    Reject {
        /// What the reviewer gives as the reason; an agent is told it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Does not run; this is the result.
    Respond {
        /// The result of the call, in at most 100,000 bytes; guardrails may redact or block it.
        message: String,
    },
    /// Does not run; that this alternative was chosen, and what it says, is the result. Every gate takes it that offers one.
    Choose {
        /// The `id` of an alternative in the action's `stakes`, or in the review's where the action has none.
        alternative: String,
        /// What is said beside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

impl ActionDecision {
    /// Runs as asked, and nothing more.
    pub const APPROVE: Self = Self::Approve { remember: None };

    /// Which of the four it is; an alternative that is chosen counts as a response.
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Approve { .. } => ActionKind::Approve,
            Self::Edit { .. } => ActionKind::Edit,
            Self::Reject { .. } => ActionKind::Reject,
            Self::Respond { .. } | Self::Choose { .. } => ActionKind::Respond,
        }
    }
}

/// The body of `POST /api/v1/reviews/{id}/decisions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct DecisionRequest {
    /// The revision that was seen.
    pub revision: u32,
    /// The digest that was seen.
    pub digest: String,
    /// What is said.
    pub verdict: Verdict,
    /// Changed values of editable items.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub edits: JsonMap,
    /// A remark for the record, and for the source step of a correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Goes into the context of all later steps.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub metadata: JsonMap,
}

/// What a program answers that was asked as a handler: a whole decision (`verdict`, with what goes beside it), or yes or no
/// (`approved`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct ProgramAnswer {
    /// The revision that was seen. Needed where it answers later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// The digest that was seen. Needed where it answers later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Changed values of editable items; beside `verdict`.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub edits: JsonMap,
    /// A remark for the record, and for the source step of a correction; beside `verdict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Goes into the context of all later steps; beside `verdict`.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub metadata: JsonMap,
    /// Yes or no, in the place of `verdict`: the first option that accepts or a stop, or the same to every action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// Why; beside `approved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is changed before it happens; beside `approved: true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifications: Option<Modifications>,
}

impl ProgramAnswer {
    /// Why, in its words.
    pub fn words(&self) -> Option<&str> {
        self.comment.as_deref().or(self.reason.as_deref()).map(str::trim).filter(|words| !words.is_empty())
    }
}

/// What a program changes of what it approves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Modifications {
    /// Arguments of the one action, laid over those that it has.
    #[serde(default, rename = "toolArgs", skip_serializing_if = "Option::is_none")]
    pub tool_args: Option<JsonMap>,
    /// Values of editable items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<JsonMap>,
    /// What the agent is told beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// What somebody saw who changed it by their vote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown {
    /// The revision that was seen.
    pub revision: u32,
    /// The digest that was seen.
    pub digest: String,
    /// The values in whose place the edits stand, by key.
    pub values: JsonMap,
}

/// A decision on the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// The person who decided.
    pub by: Username,
    /// The person on whose behalf it was decided: whoever delegated the review, or an absent colleague.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<Username>,
    /// The time of the decision, on the server's clock.
    pub at: Timestamp,
    /// The channel through which it came.
    pub via: Via,
    /// The revision that was seen; of a vote with changes the one that has them, on which it stands (see `shown`).
    pub revision: u32,
    /// The digest of that revision.
    pub digest: String,
    /// What was shown to whoever voted with changes, which the review shows since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Box<Shown>>,
    /// `sha256:` over the canonical JSON (RFC 8785) of the [`DecisionRequest`] as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    /// What was said.
    pub verdict: Verdict,
    /// The new values of the items that were edited, by state key; missing where none was.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub edits: JsonMap,
    /// A remark for the record; with a correction, the step that runs again is told it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What goes into the context.
    #[serde(default)]
    pub metadata: JsonMap,
    /// The grant by which it was made without asking; `by` gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// What the calls send whose arguments it changes, by the action's id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Request>,
}
