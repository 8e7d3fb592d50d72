//! What became of a review.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use super::{Review, ReviewOption, ReviewStatus, Veto};
use crate::decision::{Decision, Verdict, Via};
use crate::id::Username;
use crate::time::Timestamp;

/// What a resolution did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The run goes on.
    Accepted,
    /// The source step runs again.
    Corrected,
    /// The run ends, or goes to `on_reject`.
    Stopped,
    /// The free text is the answer.
    Answered,
    /// Each action has its answer.
    Decided,
    /// The time was up.
    Expired,
    /// It was taken back.
    Withdrawn,
}

/// What became of a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resolution {
    /// How it left `pending`.
    pub status: ReviewStatus,
    /// What that did.
    pub outcome: Outcome,
    /// Who; empty for a timer and for handlers.
    pub by: Vec<Username>,
    /// The time at which it was resolved.
    pub at: Timestamp,
    /// The channel through which it was resolved.
    pub via: Via,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Box<Decision>>,
    /// Why, in words: of a timer, a handler, a cancel or a withdrawal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What does not happen although leave was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vetoes: Vec<Veto>,
    /// What whoever asked by a tool or over REST is answered: the result of the call. None where there is no answer, and
    /// `reason` says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

impl Review {
    /// The alternative that was decided on, where one was: something else than what was asked about.
    pub fn chosen_alternative(&self) -> Option<&ReviewOption> {
        let Verdict::Choose { option, .. } = &self.resolution.as_ref()?.decision.as_ref()?.verdict else { return None };
        self.options.iter().find(|offered| offered.id == *option && offered.alternative)
    }
}
