//! What is at stake with what people decide: as a flow says it, and as they are shown it.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::Templated;

/// How much is at stake.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Severity {
    /// A mistake costs little.
    Low,
    /// The severity where nothing is said.
    #[default]
    Medium,
    /// A mistake costs much.
    High,
    /// Never decided in a batch.
    Critical,
}

/// An estimated cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Cost {
    /// In units of the currency, not in cents.
    pub amount: f64,
    /// ISO 4217, such as `EUR`.
    pub currency: String,
}

/// What is at stake, the same for human nodes and gates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stakes {
    /// How much is at stake.
    #[serde(default)]
    pub severity: Severity,
    /// A word of the flow's author, to sort reviews by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Whether what follows can be undone; unknown where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversible: Option<bool>,
    /// What follows from an acceptance, in words.
    #[serde(default)]
    pub consequences: Vec<String>,
    /// What it may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<Cost>,
    /// What could be done instead.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
}

impl Stakes {
    /// What can be chosen instead.
    pub fn choices(&self) -> impl Iterator<Item = &AlternativeChoice> {
        self.alternatives.iter().filter_map(Alternative::choice)
    }
}

/// What could be done instead: a sentence that people read, or something that they can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a sentence, or {id, description, tradeoffs}")]
pub enum Alternative {
    /// A sentence that people read but cannot choose.
    Sentence(String),
    /// What can be chosen.
    Choice(AlternativeChoice),
}

/// An alternative that people can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct AlternativeChoice {
    /// What a decision names.
    pub id: String,
    /// What would be done.
    pub description: String,
    /// What speaks for it, and against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tradeoffs: Option<String>,
}

impl AlternativeChoice {
    /// The same with what speaks for it, and against it.
    pub fn tradeoffs(mut self, tradeoffs: impl Into<String>) -> Self {
        self.tradeoffs = Some(tradeoffs.into());
        self
    }
}

impl From<AlternativeChoice> for Alternative {
    fn from(choice: AlternativeChoice) -> Self {
        Self::Choice(choice)
    }
}

impl From<&str> for Alternative {
    fn from(sentence: &str) -> Self {
        Self::Sentence(sentence.to_owned())
    }
}

impl From<String> for Alternative {
    fn from(sentence: String) -> Self {
        Self::Sentence(sentence)
    }
}

impl Alternative {
    /// What can be chosen; none of a sentence.
    pub fn choice(&self) -> Option<&AlternativeChoice> {
        match self {
            Self::Sentence(_) => None,
            Self::Choice(choice) => Some(choice),
        }
    }
}

/// As people read it: `Send a voucher (Slower)`.
impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sentence(sentence) => f.write_str(sentence),
            Self::Choice(choice) => choice.fmt(f),
        }
    }
}

impl fmt::Display for AlternativeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)?;
        self.tradeoffs.as_ref().map_or(Ok(()), |tradeoffs| write!(f, " ({tradeoffs})"))
    }
}

/// What it may cost, as a flow says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct CostSetting {
    /// How much; or a template that gives the number.
    pub amount: Templated<f64>,
    /// ISO 4217, such as `EUR`.
    pub currency: String,
}

/// What is at stake, as a human node or a gate says it: every text may be a template.
#[derive(Debug, Clone, Copy)]
pub struct StakesSetting<'a> {
    /// How much is at stake.
    pub severity: &'a Templated<Severity>,
    /// A word to sort reviews by.
    pub category: Option<&'a str>,
    /// Whether what follows can be undone.
    pub reversible: Option<bool>,
    /// What follows from it.
    pub consequences: &'a [String],
    /// What it may cost.
    pub estimated_cost: Option<&'a CostSetting>,
    /// What could be done instead.
    pub alternatives: &'a [Alternative],
}
