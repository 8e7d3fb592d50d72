//! What is at stake with a decision: as a flow describes it, and as people see it.

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
    /// The default severity.
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
    /// The amount in units of the currency, not in cents.
    pub amount: f64,
    /// The currency by ISO 4217, such as `EUR`.
    pub currency: String,
}

/// What is at stake, the same for human nodes and gates.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stakes {
    /// How much is at stake.
    #[serde(default)]
    pub severity: Severity,
    /// A category chosen by the flow's author, to sort reviews by.
    pub category: Option<String>,
    /// Whether the consequences can be undone; missing: unknown.
    pub reversible: Option<bool>,
    /// The consequences of an acceptance, in words.
    #[serde(default)]
    pub consequences: Vec<String>,
    /// The estimated cost.
    pub estimated_cost: Option<Cost>,
    /// The alternatives to it.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
}

impl Stakes {
    /// Returns the alternatives that can be chosen.
    pub fn choices(&self) -> impl Iterator<Item = &AlternativeChoice> {
        self.alternatives.iter().filter_map(Alternative::choice)
    }
}

/// An alternative: a sentence that people read, or one that they can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a sentence, or {id, description, tradeoffs}")]
pub enum Alternative {
    /// A sentence that people read but cannot choose.
    Sentence(String),
    /// An alternative that can be chosen.
    Choice(AlternativeChoice),
}

/// An alternative that people can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct AlternativeChoice {
    /// The id that a decision names.
    pub id: String,
    /// A description of what would be done.
    pub description: String,
    /// The advantages and disadvantages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tradeoffs: Option<String>,
}

impl AlternativeChoice {
    /// Adds the advantages and disadvantages.
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
    /// Returns the choice; `None` for a sentence.
    pub fn choice(&self) -> Option<&AlternativeChoice> {
        match self {
            Self::Sentence(_) => None,
            Self::Choice(choice) => Some(choice),
        }
    }
}

/// Formats it for people: `Send a voucher (Slower)`.
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

/// An estimated cost in a flow file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct CostSetting {
    /// The amount, or a template for it.
    pub amount: Templated<f64>,
    /// The currency by ISO 4217, such as `EUR`.
    pub currency: String,
}

/// What is at stake, in a human node or a gate: every text may be a template.
#[derive(Debug, Clone, Copy)]
pub struct StakesSetting<'a> {
    /// How much is at stake.
    pub severity: &'a Templated<Severity>,
    /// A category to sort reviews by.
    pub category: Option<&'a str>,
    /// Whether the consequences can be undone.
    pub reversible: Option<bool>,
    /// The consequences of an acceptance.
    pub consequences: &'a [String],
    /// The estimated cost.
    pub estimated_cost: Option<&'a CostSetting>,
    /// The alternatives to it.
    pub alternatives: &'a [Alternative],
}
