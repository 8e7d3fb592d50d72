//! `guardrails`: automatic checks after leave was given, whoever gave it.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::time::Span;

/// Which guardrails a flow has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a list of guardrails, or false for none")]
pub enum Guardrails {
    /// `false`: no guardrails, not even those that are on by default. `true` is refused.
    Switch(bool),
    /// These, in the order in which they are asked.
    List(Vec<GuardrailSetting>),
}

/// A built-in guardrail by its name, or one with settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected the name of a built-in guardrail, or {name, …}")]
pub enum GuardrailSetting {
    /// A built-in one, as it is.
    Name(String),
    /// One of the flow's own, or a built-in one with another effect or place.
    Settings(Box<Guardrail>),
}

impl GuardrailSetting {
    /// The name, unique among the guardrails of the flow.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Settings(guardrail) => &guardrail.name,
        }
    }

    /// Its settings; none of a built-in one as it is.
    pub fn settings(&self) -> Option<&Guardrail> {
        match self {
            Self::Name(_) => None,
            Self::Settings(guardrail) => Some(guardrail),
        }
    }
}

/// One guardrail. It is a built-in one, or has exactly one of `when`, `pattern` and `webhook`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Guardrail {
    /// What it is called in vetoes and on the record.
    pub name: String,
    /// Where it looks; default: everywhere (`code-safety`: at actions).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<GuardrailScope>>,
    /// What happens where it finds something; default: block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// CEL that holds where something is wrong; sees `action`, `arguments`, `text`, `context` and `run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// A regular expression (of the Rust crate `regex`) of what must not be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Another program that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<GuardrailWebhook>,
    /// What people and agents are told; default: what was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What happens where `when` cannot be answered; default: block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
}

/// Another program that is asked whether something may happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct GuardrailWebhook {
    /// The `http` or `https` URL that is sent a signed POST; written out, not a template.
    pub url: String,
    /// How long it may take, at most 20 s; default 5 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What happens where it does not answer; default: block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
}

impl GuardrailWebhook {
    /// The longest time that one may take: whoever decides waits for it.
    pub const MAX_TIMEOUT: Span = Span::secs(20);

    /// How long it may take.
    pub fn timeout(&self) -> Span {
        self.timeout.unwrap_or(Span::secs(5))
    }
}

/// Where a guardrail looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GuardrailScope {
    /// At what is about to happen: approved and edited actions.
    Actions,
    /// At what people put in: edits and answers at human nodes, and answers in the place of an action's result.
    Edits,
    /// At the output of the run.
    Outputs,
}

/// What a guardrail does where it finds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Effect {
    /// It does not happen.
    Block,
    /// What was found becomes `[redacted]`, in text values.
    Redact,
    /// It is noted, and happens.
    Warn,
}

/// What happens where a guardrail cannot answer.
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
