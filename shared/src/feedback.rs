//! Feedback of people on an agent's work, for the audit log and for the agent's later steps.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::id::{FeedbackId, FlowId, RunId, Username};
use crate::time::Timestamp;

/// The longest content or context, in characters.
pub const MAX_TEXT: usize = 4000;
/// The highest importance.
pub const MAX_IMPORTANCE: u8 = 5;

/// The type of feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FeedbackType {
    /// Something was wrong.
    Correction,
    /// Something was good.
    Praise,
    /// An instruction for later.
    Guidance,
    /// A preference of the person.
    Preference,
    /// Something was bad.
    Complaint,
}

/// The aspect that feedback is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FeedbackAspect {
    /// Whether the result is correct.
    Accuracy,
    /// The style of the text.
    Style,
    /// The time that it took.
    Speed,
    /// The decision of the agent.
    Judgment,
    /// The communication of the agent.
    Communication,
    /// None of the others; the default.
    #[default]
    Other,
}

/// The body of `POST /api/v1/runs/{id}/feedback`, for people (not tokens) who may see the run, whether or not it is
/// over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewFeedback {
    /// The agent: one of the run's flow, or of a flow that it calls.
    pub agent: String,
    /// The type of the feedback.
    #[serde(rename = "type")]
    pub feedback_type: FeedbackType,
    /// The aspect of the feedback.
    #[serde(default)]
    pub aspect: FeedbackAspect,
    /// The content, up to 4000 characters; the agent may read it.
    pub content: String,
    /// The importance, from 1 to 5.
    #[serde(default = "usual")]
    pub importance: u8,
    /// The basis for it, up to 4000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

fn usual() -> u8 {
    3
}

/// Feedback as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Feedback {
    /// A UUIDv7 that the server makes when the feedback is given.
    pub id: FeedbackId,
    /// The run that it is about.
    pub run_id: RunId,
    /// The flow of the agent: that of the run, or the called flow that has the agent.
    pub flow: FlowId,
    /// The name of the agent in that flow.
    pub agent: String,
    /// The type of the feedback.
    #[serde(rename = "type")]
    pub feedback_type: FeedbackType,
    /// The aspect of the feedback.
    pub aspect: FeedbackAspect,
    /// The content: plain text.
    pub content: String,
    /// The importance, from 1 to 5.
    pub importance: u8,
    /// The basis for it: plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The person who gave it.
    pub by: Username,
    /// The time, on the server's clock.
    pub at: Timestamp,
}

/// `GET /api/v1/feedback`: newest first.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct FeedbackQuery {
    /// Only on this agent.
    pub agent: Option<String>,
    /// Only of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub feedback_type: Option<FeedbackType>,
    /// Only feedback that was given at this time or later.
    pub since: Option<Timestamp>,
    /// Only on agents of this flow.
    pub flow: Option<String>,
    /// Only for this run.
    pub run: Option<RunId>,
    /// The most rows of the page.
    pub limit: Option<u32>,
    /// The cursor at which the page begins.
    pub cursor: Option<String>,
}
