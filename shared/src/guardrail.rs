//! What guardrails say of a review: beside it as long as it is pending, and once it is decided.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::definition::Effect;

/// What a guardrail would say of what is asked, or of what somebody is about to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// The guardrail's name: a built-in one, such as `pii-redaction`, or one of the flow's own.
    pub guardrail: String,
    /// The action's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The key of the edited value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Why, in words.
    pub reason: String,
    /// What it would do.
    pub effect: Effect,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guardrail, reason, .. } = self;
        match self.effect {
            Effect::Block => write!(f, "{guardrail} would block this: {reason}"),
            Effect::Redact => write!(f, "{guardrail} would redact this: {reason}"),
            Effect::Warn => write!(f, "{guardrail} warns: {reason}"),
        }
    }
}

/// What does not happen although leave was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Veto {
    /// The guardrail's name: a built-in one, such as `code-safety`, or one of the flow's own.
    pub guardrail: String,
    /// The action's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The key of the edited value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Why, in words.
    pub reason: String,
}

impl fmt::Display for Veto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocked this: {}", self.guardrail, self.reason)
    }
}

/// The answer of `POST /api/v1/reviews/{id}/check`: what guardrails would do with a decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checked {
    /// What would not happen.
    pub vetoes: Vec<Veto>,
    /// What would be changed before it happens, or only noted.
    pub redactions: Vec<Warning>,
}
