//! `on_timeout`: what happens if no one decides in time.

use serde::{Deserialize, Serialize};

use crate::id::NodeId;
use crate::time::Span;

/// What happens when the time is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// Acts as stop; on actions, rejects them.
    Reject,
    /// Acts as the first accept option; on actions, approves them.
    Approve,
    /// The run fails with `FLOW_HUMAN_TIMEOUT`.
    Error,
    /// Continues along `next` with a decision whose option is null.
    Follow,
    /// Goes to this node.
    #[serde(untagged)]
    Goto {
        /// The node of the same flow at which the branch continues. Waiting calls are rejected instead.
        goto: NodeId,
    },
    /// Adds a role and moves the deadline.
    #[serde(untagged)]
    Escalate(Escalate),
}

/// Adds a role and moves the deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Escalate {
    /// The role that may also decide.
    pub escalate: String,
    /// The additional time to wait.
    pub extend: Span,
    /// What happens after that time.
    pub then: Box<OnTimeout>,
}

impl OnTimeout {
    /// The most escalations in a row.
    pub const MAX_ESCALATIONS: usize = 10;

    /// Returns the escalations, in the order in which they happen.
    pub fn escalations(&self) -> impl Iterator<Item = &Escalate> {
        std::iter::successors(self.escalation(), |before| before.then.escalation())
    }

    /// Returns what happens after the last escalation.
    pub fn last(&self) -> &Self {
        self.escalations().last().map_or(self, |last| &last.then)
    }

    /// Returns the same timeout action for calls that wait for approval. A call can only run or not run, so an action
    /// that sends the branch on becomes a rejection.
    pub fn for_calls(&self) -> Self {
        match self {
            Self::Follow | Self::Goto { .. } => Self::Reject,
            Self::Escalate(next) => Self::Escalate(Escalate { then: Box::new(next.then.for_calls()), ..next.clone() }),
            other => other.clone(),
        }
    }

    fn escalation(&self) -> Option<&Escalate> {
        match self {
            Self::Escalate(next) => Some(next),
            _ => None,
        }
    }
}
