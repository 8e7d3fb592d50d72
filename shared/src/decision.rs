//! Decisions on reviews.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
use crate::definition::ActionKind;
use crate::grant::Remember;
use crate::id::{GrantId, TokenId, Username};
use crate::request::Request;
use crate::time::Timestamp;

/// The channel of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Via {
    /// A person, in the console or over the API; over the API, perhaps a program with a token of theirs.
    Human,
    /// A timer that expired.
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
    /// The run itself: it ended, or continued without an answer.
    Run,
}

/// The content of a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Verdict {
    /// Chooses one of the options of a review that has no actions.
    Choose {
        /// The `id` of one of the review's `options`.
        option: String,
        /// The values of the option's fields.
        #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
        #[serde(serialize_with = "crate::user_data::value")]
        fields: JsonMap,
    },
    /// Free text: a correction if there are options, otherwise the answer; on actions, it rejects them all.
    Text {
        /// At most 100,000 bytes, and not blank.
        text: String,
    },
    /// An answer to each action.
    Actions {
        /// The answers by action id, one for every action.
        decisions: BTreeMap<String, ActionDecision>,
        /// Additional instructions for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
}

/// An answer to one action.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ActionDecision {
    /// Runs as asked.
    Approve {
        /// Also approves later calls of the tool.
        remember: Option<Remember>,
    },
    /// Runs with these arguments.
    Edit {
        /// All arguments, not only the changed ones.
        #[serde(serialize_with = "crate::user_data::value")]
        arguments: JsonMap,
    },
    /// Does not run; the agent is told so.
    Reject {
        /// The reviewer's reason, which the agent is told.
        message: Option<String>,
    },
    /// Does not run; this is the result.
    Respond {
        /// The result of the call, in at most 100,000 bytes; guardrails may redact or block it.
        message: String,
    },
    /// Does not run; the result says that this alternative was chosen, and its text. Gates that offer one accept it.
    Choose {
        /// The `id` of an alternative in the action's `stakes`, or in those of the review if the action has none.
        alternative: String,
        /// An additional message.
        message: Option<String>,
    },
}

impl ActionDecision {
    /// An approval without a grant.
    pub const APPROVE: Self = Self::Approve { remember: None };

    /// Returns which of the four answers this is; a chosen alternative counts as a response.
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
    /// The revision that the decider saw.
    pub revision: u32,
    /// The digest that the decider saw.
    pub digest: String,
    /// The decision itself.
    pub verdict: Verdict,
    /// Changed values of editable items.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::members")]
    pub edits: JsonMap,
    /// A comment for the audit log, and for the source step of a correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Metadata for the context of all later steps.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::members")]
    pub metadata: JsonMap,
}

/// The answer of a program that was asked as a handler: a whole decision (`verdict` and its companions), or yes or no
/// (`approved`).
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct ProgramAnswer {
    /// The revision that the program saw. Required if it answers later.
    pub revision: Option<u32>,
    /// The digest that the program saw. Required if it answers later.
    pub digest: Option<String>,
    /// The decision itself.
    pub verdict: Option<Verdict>,
    /// Changed values of editable items; with `verdict`.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::members")]
    pub edits: JsonMap,
    /// A comment for the audit log, and for the source step of a correction; with `verdict`.
    pub comment: Option<String>,
    /// Metadata for the context of all later steps; with `verdict`.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::members")]
    pub metadata: JsonMap,
    /// Yes or no, instead of `verdict`: the first option that accepts or stops, or the same answer to every action.
    pub approved: Option<bool>,
    /// The reason; with `approved`.
    pub reason: Option<String>,
    /// Changes before it takes effect; with `approved: true`.
    pub modifications: Option<Modifications>,
}

impl ProgramAnswer {
    /// Returns the comment, or else the reason, trimmed; `None` if it is missing or blank.
    pub fn words(&self) -> Option<&str> {
        [&self.comment, &self.reason].into_iter().flatten().map(|words| words.trim()).find(|words| !words.is_empty())
    }
}

/// Changes by a program to what it approves.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Modifications {
    /// Arguments of the only action, which override its own.
    #[serde(default, rename = "toolArgs", skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "crate::user_data::value")]
    pub tool_args: Option<JsonMap>,
    /// Values of editable items.
    #[serde(serialize_with = "crate::user_data::value")]
    pub output: Option<JsonMap>,
    /// Additional instructions for the agent.
    pub instructions: Option<String>,
}

/// What a voter saw whose vote changed the content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown {
    /// The revision that the decider saw.
    pub revision: u32,
    /// The digest that the decider saw.
    pub digest: String,
    /// The values that the edits replaced, by key.
    #[serde(serialize_with = "crate::user_data::members")]
    pub values: JsonMap,
}

/// A recorded decision.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// The person who decided.
    pub by: Username,
    /// The person on whose behalf it was decided: the one who delegated the review, or an absent colleague.
    pub on_behalf_of: Option<Username>,
    /// The time of the decision, on the server's clock.
    pub at: Timestamp,
    /// The channel of the decision.
    pub via: Via,
    /// The token with which a program decided in the person's name; `None` if they decided themselves, and in records of
    /// older versions.
    pub token: Option<TokenId>,
    /// The revision that the decider saw; for a vote with changes, the revision with these changes (see `shown`).
    pub revision: u32,
    /// The digest of that revision.
    pub digest: String,
    /// What the voter was shown, if their vote changed the content.
    pub shown: Option<Box<Shown>>,
    /// `sha256:` over the canonical JSON (RFC 8785) of the [`DecisionRequest`] as it was sent, without members that are
    /// null, empty or the default.
    pub sent: Option<String>,
    /// The decision itself.
    pub verdict: Verdict,
    /// The new values of the edited items, by state key; missing if there are none.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::members")]
    pub edits: JsonMap,
    /// A comment for the audit log; with a correction, the step that runs again is told it too.
    pub comment: Option<String>,
    /// Metadata for the context.
    #[serde(default)]
    #[serde(serialize_with = "crate::user_data::members")]
    pub metadata: JsonMap,
    /// The grant that made the decision without asking; `by` gave it.
    pub grant: Option<GrantId>,
    /// The requests of the calls whose arguments it changes, by action id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Request>,
}
