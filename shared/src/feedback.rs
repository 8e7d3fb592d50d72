//! Feedback: what people say of how an agent worked, for the record and for its next steps.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::id::{FeedbackId, FlowId, RunId, Username};
use crate::time::Timestamp;

/// The longest content or context, in characters.
pub const MAX_TEXT: usize = 4000;
/// The highest importance.
pub const MAX_IMPORTANCE: u8 = 5;

/// What feedback does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FeedbackType {
    /// Something was wrong.
    Correction,
    /// Something was good.
    Praise,
    /// How something is to be done.
    Guidance,
    /// How somebody would like it.
    Preference,
    /// Something was bad.
    Complaint,
}

/// What feedback is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FeedbackAspect {
    /// Whether it is right.
    Accuracy,
    /// How it is written.
    Style,
    /// How long it took.
    Speed,
    /// What was decided.
    Judgment,
    /// How it was told.
    Communication,
    /// None of the others; the default.
    #[default]
    Other,
}

/// The body of `POST /api/v1/runs/{id}/feedback`, for those who may see the run, whether or not it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct NewFeedback {
    /// The agent: one of the run's flow, or of a flow that it calls.
    pub agent: String,
    /// What it does.
    #[serde(rename = "type")]
    pub feedback_type: FeedbackType,
    /// What it is about.
    #[serde(default)]
    pub aspect: FeedbackAspect,
    /// What is said, in up to 4000 characters; an agent may read it.
    pub content: String,
    /// How much it matters, from 1 to 5.
    #[serde(default = "usual")]
    pub importance: u8,
    /// What it rests on, in up to 4000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

fn usual() -> u8 {
    3
}

/// Feedback on the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Feedback {
    /// A UUIDv7 that the server makes when the feedback is given.
    pub id: FeedbackId,
    /// The run of which it was given.
    pub run_id: RunId,
    /// The flow of the agent: the run's, or the called one that has the agent.
    pub flow: FlowId,
    /// The name that the agent has in that flow.
    pub agent: String,
    /// What it does.
    #[serde(rename = "type")]
    pub feedback_type: FeedbackType,
    /// What it is about.
    pub aspect: FeedbackAspect,
    /// What is said: plain text.
    pub content: String,
    /// How much it matters, from 1 to 5.
    pub importance: u8,
    /// What it rests on: plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The person who gave it.
    pub by: Username,
    /// The time, on the server's clock.
    pub at: Timestamp,
}

/// As an agent reads it: `correction (accuracy, importance 4 of 5): The date was wrong.`
impl fmt::Display for Feedback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, aspect) = (self.feedback_type.as_str(), self.aspect.as_str());
        write!(f, "{what} ({aspect}, importance {} of {MAX_IMPORTANCE}): {}", self.importance, self.content)?;
        match &self.context {
            Some(context) => write!(f, " [{context}]"),
            None => Ok(()),
        }
    }
}

/// `GET /api/v1/feedback`: newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct FeedbackQuery {
    /// On this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub feedback_type: Option<FeedbackType>,
    /// Only feedback that was given at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// On agents of this flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// How many rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Where the page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}
