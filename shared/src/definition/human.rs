//! `human`: a node at which a person is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use super::choice::{ChoiceKind, HumanOption};
use super::handler::Handler;
use super::on_timeout::OnTimeout;
use super::policy::{Policy, Reviewers, Validator};
use super::{Alternative, CostSetting, Severity, StakesSetting, Templated};
use crate::id::NodeId;
use crate::time::Span;

/// A node at which a person is asked.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Human {
    /// Template of the headline; none: the question's first sentence.
    pub title: Option<String>,
    /// Template of the question; with `prompt_key`, the fallback.
    pub prompt: Option<String>,
    /// A state key, then a key of `context.metadata`, that holds the question.
    pub prompt_key: Option<String>,
    /// The values to show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub review_keys: Vec<ReviewKey>,
    /// The values that people may edit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edit_keys: Vec<EditKey>,
    /// The options to choose from. Without options, free text is the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<HumanOption>,
    /// A state key with the options, instead of `options`: a list of `{id, label, kind, description}`, or of texts.
    pub options_key: Option<String>,
    /// `false`: only the listed options can be chosen.
    pub allow_free_text: Option<bool>,
    /// How much is at stake, or a template for it.
    pub severity: Templated<Severity>,
    /// A category to sort reviews by.
    pub category: Option<String>,
    /// Whether the consequences can be undone.
    pub reversible: Option<bool>,
    /// The consequences of an acceptance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<String>,
    /// The estimated cost.
    pub estimated_cost: Option<CostSetting>,
    /// The alternatives: sentences, or `{id, description, tradeoffs}`, which are offered with the options.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// The people who may decide; default: everyone with the system role reviewer.
    #[serde(skip_serializing_if = "Reviewers::is_empty")]
    pub reviewers: Reviewers,
    /// How several decisions become one resolution.
    #[serde(skip_serializing_if = "Policy::is_first")]
    pub policy: Policy,
    /// The number of negative votes that ends it.
    pub deny: Option<u32>,
    /// Whether votes are secret until the resolution.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blind: bool,
    /// The step that a correction runs again, if it is not clear.
    pub corrects: Option<NodeId>,
    /// The conditions that a response must meet.
    pub validator: Option<Validator>,
    /// How long it waits; default: for ever.
    pub timeout: Option<Span>,
    /// What happens when the time is up.
    pub on_timeout: Option<OnTimeout>,
    /// The handlers that resolve it.
    pub handlers: Option<Vec<Handler>>,
    /// The node to which a stop leads, instead of ending the run.
    pub on_reject: Option<NodeId>,
    /// `false`: no guardrail checks what people enter here.
    pub guardrails: Option<bool>,
}

impl Human {
    /// Whether there are options, from the flow or a state key.
    pub fn has_options(&self) -> bool {
        !self.options.is_empty() || self.options_key.is_some()
    }

    /// Whether an option of this kind may be offered. The options of `options_key` are known only when the run is there.
    pub fn may_offer(&self, kind: ChoiceKind) -> bool {
        self.options_key.is_some() || self.options.iter().any(|option| option.kind == kind)
    }

    /// Returns what is at stake. Its templates may use the same values as the prompt.
    pub fn stakes(&self) -> StakesSetting<'_> {
        StakesSetting {
            severity: &self.severity,
            category: self.category.as_deref(),
            reversible: self.reversible,
            consequences: &self.consequences,
            estimated_cost: self.estimated_cost.as_ref(),
            alternatives: &self.alternatives,
        }
    }
}

/// The format in which a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ContentType {
    /// Prose with markup.
    Markdown,
    /// Plain text, shown without interpreting markup.
    Text,
    /// Source code or other preformatted text, shown with line numbers.
    Code,
    /// Any JSON value.
    Json,
    /// A list of objects.
    Table,
    /// A picture, by address.
    Image,
}

/// A key to show: its name, or an object with details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "RawReviewKey", into = "RawReviewKey")]
#[cfg_attr(feature = "schema", schemars(with = "RawReviewKey"))]
pub struct ReviewKey {
    /// The state key.
    pub key: String,
    /// The format in which it is shown; default: guessed.
    pub content_type: Option<ContentType>,
    /// The label that people read instead of the key.
    pub label: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ReviewKey"))]
#[serde(untagged, expecting = "expected a state key, or {key, type, label}")]
enum RawReviewKey {
    Key(String),
    Full(RawReviewKeyFull),
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(rename = "ReviewKeySettings"))]
struct RawReviewKeyFull {
    /// The state key.
    key: String,
    /// The format in which it is shown; default: guessed.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    content_type: Option<ContentType>,
    /// The label that people read instead of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
}

impl From<RawReviewKey> for ReviewKey {
    fn from(raw: RawReviewKey) -> Self {
        match raw {
            RawReviewKey::Key(key) => Self { key, content_type: None, label: None },
            RawReviewKey::Full(full) => Self { key: full.key, content_type: full.content_type, label: full.label },
        }
    }
}

impl From<ReviewKey> for RawReviewKey {
    fn from(key: ReviewKey) -> Self {
        match key {
            ReviewKey { key, content_type: None, label: None } => Self::Key(key),
            ReviewKey { key, content_type, label } => Self::Full(RawReviewKeyFull { key, content_type, label }),
        }
    }
}

/// An editable key: its name, or an object with the schema of its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "RawEditKey", into = "RawEditKey")]
#[cfg_attr(feature = "schema", schemars(with = "RawEditKey"))]
pub struct EditKey {
    /// The state key.
    pub key: String,
    /// JSON Schema of the value; default: its current type.
    pub schema: Option<Value>,
    /// The format in which it is shown; default: guessed.
    pub content_type: Option<ContentType>,
    /// The label that people read instead of the key.
    pub label: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EditKey"))]
#[serde(untagged, expecting = "expected a state key, or {key, schema, type, label}")]
enum RawEditKey {
    Key(String),
    Full(RawEditKeyFull),
}

#[serde_with::skip_serializing_none]
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(rename = "EditKeySettings"))]
struct RawEditKeyFull {
    /// The state key.
    key: String,
    /// JSON Schema of the value; default: its current type.
    schema: Option<Value>,
    /// The format in which it is shown; default: guessed.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    content_type: Option<ContentType>,
    /// The label that people read instead of the key.
    label: Option<String>,
}

impl From<RawEditKey> for EditKey {
    fn from(raw: RawEditKey) -> Self {
        match raw {
            RawEditKey::Key(key) => Self { key, schema: None, content_type: None, label: None },
            RawEditKey::Full(full) => {
                Self { key: full.key, schema: full.schema, content_type: full.content_type, label: full.label }
            }
        }
    }
}

impl From<EditKey> for RawEditKey {
    fn from(key: EditKey) -> Self {
        match key {
            EditKey { key, schema: None, content_type: None, label: None } => Self::Key(key),
            EditKey { key, schema, content_type, label } => {
                Self::Full(RawEditKeyFull { key, schema, content_type, label })
            }
        }
    }
}
