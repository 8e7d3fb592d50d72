//! `on_timeout`: what happens when nobody has decided in time.

use serde::Serialize;
use serde_json::Value;

use crate::id::NodeId;
use crate::read::{Fields, FromJson, place_of, read_fields, read_on_the_web};
use crate::time::Span;

/// What happens when the time is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// Acts as stop; on actions, rejects them.
    Reject,
    /// Acts as the first accept option; on actions, approves them.
    Approve,
    /// The run fails with `FLOW_HUMAN_TIMEOUT`.
    Error,
    /// Goes on along `next` with a decision whose option is null.
    Follow,
    /// Goes to this node.
    #[serde(untagged)]
    Goto {
        /// The node.
        goto: NodeId,
    },
    /// Adds a role and moves the deadline.
    #[serde(untagged)]
    Escalate(Escalate),
}

/// Adds a role and moves the deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(not(target_family = "wasm"), derive(serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Escalate {
    /// The role that may decide too.
    pub escalate: String,
    /// How much longer it waits.
    pub extend: Span,
    /// What happens then.
    pub then: Box<OnTimeout>,
}

read_fields!(Escalate { need escalate, need extend, need then, });

impl FromJson for OnTimeout {
    fn from_json(value: Value) -> serde_json::Result<Self> {
        const WORDS: [OnTimeout; 4] = [OnTimeout::Reject, OnTimeout::Approve, OnTimeout::Error, OnTimeout::Follow];
        if value.is_object() {
            let mut fields = Fields::of(value)?;
            return match fields.may("goto")? {
                Some(goto) => Ok(Self::Goto { goto }),
                None => fields.rest("escalate").map(Self::Escalate),
            };
        }
        place_of(&value, &["reject", "approve", "error", "follow"]).map(|place| WORDS[place].clone())
    }
}

read_on_the_web!(OnTimeout);

impl OnTimeout {
    /// The most escalations in a row.
    pub const MAX_ESCALATIONS: usize = 10;

    /// The escalations that come first, in order.
    pub fn escalations(&self) -> impl Iterator<Item = &Escalate> {
        std::iter::successors(self.escalation(), |before| before.then.escalation())
    }

    /// What happens when nobody is left to escalate to.
    pub fn last(&self) -> &Self {
        self.escalations().last().map_or(self, |last| &last.then)
    }

    /// The same for calls that wait for leave: a call runs or does not, so what sends a branch on rejects.
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
