//! `guardrails`: automatic checks of what was approved, whoever approved it.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::time::Span;

/// The guardrails of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a list of guardrails, or false for none")]
pub enum Guardrails {
    /// `false`: no guardrails, not even those that are on by default. `true` is refused.
    Switch(bool),
    /// These guardrails, in the order of the checks.
    List(Vec<GuardrailSetting>),
}

/// A built-in guardrail by its name, or one with settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected the name of a built-in guardrail, or {name, …}")]
pub enum GuardrailSetting {
    /// A built-in one with its defaults.
    Name(String),
    /// One of the flow's own, or a built-in one with another effect or scope.
    Settings(Box<Guardrail>),
}

impl GuardrailSetting {
    /// Returns the name, which is unique among the guardrails of the flow.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Settings(guardrail) => &guardrail.name,
        }
    }

    /// Returns the settings; `None` for a built-in guardrail with its defaults.
    pub fn settings(&self) -> Option<&Guardrail> {
        match self {
            Self::Name(_) => None,
            Self::Settings(guardrail) => Some(guardrail),
        }
    }
}

/// A guardrail: a built-in one, or one with exactly one of `when`, `pattern` and `webhook`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Guardrail {
    /// The name in vetoes and in the audit log.
    pub name: String,
    /// What it checks; default: everything (`code-safety`: actions).
    pub on: Option<Vec<GuardrailScope>>,
    /// What happens if it finds something; default: block (`pii-redaction` redacts edits and outputs).
    pub effect: Option<Effect>,
    /// CEL that is true if something is wrong; sees `action`, `arguments`, `text`, `context` and `run`.
    pub when: Option<String>,
    /// A regular expression (of the Rust crate `regex`) for text that must not occur.
    pub pattern: Option<String>,
    /// A program that is asked.
    pub webhook: Option<GuardrailWebhook>,
    /// The message to people and agents; default: what was found.
    pub message: Option<String>,
    /// What happens if `when` cannot be evaluated; default: block.
    pub on_error: Option<OnError>,
}

/// A program that is asked whether something is allowed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct GuardrailWebhook {
    /// The `http` or `https` URL for a signed POST; literal, not a template.
    pub url: String,
    /// How long it may take, at most 20 s; default 5 s.
    pub timeout: Option<Span>,
    /// What happens if it does not answer; default: block.
    pub on_error: Option<OnError>,
}

impl GuardrailWebhook {
    /// The highest timeout that a flow may set. It is short because the person who decides waits meanwhile.
    pub const MAX_TIMEOUT: Span = Span::secs(20);

    /// Returns how long the program may take to answer; default 5 s.
    pub fn timeout(&self) -> Span {
        self.timeout.unwrap_or(Span::secs(5))
    }
}

/// What a guardrail checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GuardrailScope {
    /// What is about to happen: approved and edited actions.
    Actions,
    /// What people enter: edits and answers at human nodes, and answers that replace the result of an action.
    Edits,
    /// The output of the run.
    Outputs,
}

/// What a guardrail does if it finds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Effect {
    /// It does not take effect.
    Block,
    /// What was found becomes `[redacted]`, in text values.
    Redact,
    /// It is noted, and takes effect.
    Warn,
}

/// What happens if a guardrail cannot answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OnError {
    /// As if it had found something that it blocks.
    #[default]
    Block,
    /// As if it had found nothing.
    Allow,
}
