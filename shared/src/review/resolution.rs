//! The resolution of a review.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use super::{Action, Review, ReviewKind, ReviewOption, ReviewStatus, Veto};
use crate::decision::{ActionDecision, Decision, Verdict, Via};
use crate::id::{TokenId, Username};
use crate::time::Timestamp;

/// The effect of a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Outcome {
    /// The run continues along `next`.
    Accepted,
    /// The source step runs again.
    Corrected,
    /// The run ends, or goes to `on_reject`.
    Stopped,
    /// The free text is the answer.
    Answered,
    /// Each action has its answer.
    Decided,
    /// The timer has expired.
    Expired,
    /// The review was withdrawn.
    Withdrawn,
}

/// The resolution of a review.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resolution {
    /// The outcome of the review.
    pub status: ReviewStatus,
    /// The effect of the outcome.
    pub outcome: Outcome,
    /// The people who resolved it; empty for a timer and for handlers.
    pub by: Vec<Username>,
    /// The time at which it was resolved.
    pub at: Timestamp,
    /// The channel through which it was resolved.
    pub via: Via,
    /// The token with which a program resolved or withdrew it; `None` if a person did, and in records of older versions.
    /// After a vote, it is that of the newest vote for the outcome.
    pub token: Option<TokenId>,
    /// The decision that was made.
    pub decision: Option<Box<Decision>>,
    /// The reason in words, of a timer, a handler, a cancellation or a withdrawal.
    pub reason: Option<String>,
    /// The vetoes against what was approved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vetoes: Vec<Veto>,
    /// The answer to a question of a tool or over REST: the result of the call. If there is no answer, `reason` says
    /// why.
    #[serde(serialize_with = "crate::user_data::value")]
    pub answer: Option<Value>,
}

impl Outcome {
    /// The outcome of `review` in a word for people: `approved`, `sent back`. A question is answered, not approved; of
    /// several ways to go on, only the flow knows which is an approval.
    pub fn in_words(self, review: &Review) -> &'static str {
        use ReviewKind::{Checkpoint, Clarification, Edit, Escalation, Handoff};
        match (self, review.kind) {
            (Self::Accepted, Clarification | Edit | Escalation | Checkpoint) | (Self::Answered, _) => "answered",
            (Self::Accepted, Handoff) => "taken",
            (Self::Accepted, _) if review.chosen_alternative().is_some() || review.has_several_ways() => "decided",
            (Self::Accepted, _) => "approved",
            (Self::Corrected, _) => "sent back",
            (Self::Stopped, Clarification | Edit | Escalation | Checkpoint | Handoff) => "stopped",
            (Self::Stopped, _) => "rejected",
            (Self::Decided, _) => match review.decided_calls_alike() {
                Some(true) => "approved",
                Some(false) => "rejected",
                None => "decided",
            },
            (Self::Expired, _) => "expired",
            (Self::Withdrawn, _) => "withdrawn",
        }
    }
}

impl Review {
    /// Whether people approved all calls (`true`), or rejected all. `None` if neither, or if no person decided.
    fn decided_calls_alike(&self) -> Option<bool> {
        let decision = self.resolution.as_ref()?.decision.as_deref()?;
        let Verdict::Actions { decisions, .. } = &decision.verdict else { return None };
        let approves = |action: &Action| match decisions.get(&action.id)? {
            ActionDecision::Approve { .. } | ActionDecision::Edit { .. } => Some(true),
            ActionDecision::Reject { .. } => Some(false),
            ActionDecision::Respond { .. } | ActionDecision::Choose { .. } => None,
        };
        let (first, rest) = self.actions.split_first()?;
        approves(first).filter(|first| rest.iter().all(|action| approves(action) == Some(*first)))
    }

    /// Returns the chosen alternative, if any.
    pub fn chosen_alternative(&self) -> Option<&ReviewOption> {
        let Verdict::Choose { option, .. } = &self.resolution.as_ref()?.decision.as_ref()?.verdict else { return None };
        self.options.iter().find(|offered| offered.id == *option && offered.alternative)
    }
}
