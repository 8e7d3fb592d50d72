//! The warnings and vetoes of guardrails about a review.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::definition::Effect;

/// A warning of a guardrail about the content of a review, or about a decision before it is made.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// The guardrail's name: a built-in one, such as `pii-redaction`, or one of the flow's own.
    pub guardrail: String,
    /// The action's id.
    pub action: Option<String>,
    /// The key of the edited value.
    pub key: Option<String>,
    /// The reason in words.
    pub reason: String,
    /// The effect that it would have.
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

/// A veto of a guardrail against something that was approved.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Veto {
    /// The guardrail's name: a built-in one, such as `code-safety`, or one of the flow's own.
    pub guardrail: String,
    /// The action's id.
    pub action: Option<String>,
    /// The key of the edited value.
    pub key: Option<String>,
    /// The reason in words.
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
    /// What would be blocked.
    pub vetoes: Vec<Veto>,
    /// What would be redacted or only noted.
    pub redactions: Vec<Warning>,
}
