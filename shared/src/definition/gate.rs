//! `gates`: the actions that require approval.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::handler::Handler;
use super::on_timeout::OnTimeout;
use super::policy::Reviewers;
use super::{Alternative, CostSetting, Severity, StakesSetting, Templated};
use crate::time::Span;

/// All gates of a flow.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Gates {
    /// Gates by tool name, or a pattern with `*`. The exact name overrides patterns, and the longest pattern others.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub before_tool: IndexMap<String, GateSetting>,
    /// Gates by agent name or pattern.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub before_agent: IndexMap<String, GateSetting>,
    /// The gate before a new specialist is created.
    pub before_emergent: Option<GateSetting>,
    /// The gate before the run's output is returned.
    pub before_return: Option<GateSetting>,
    /// The gate before a team's strategy changes.
    pub before_strategy_override: Option<GateSetting>,
}

/// `true`, `false`, or a gate with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum GateSetting {
    /// `true`: a gate that allows all four answers; `false`: none.
    Switch(bool),
    /// A gate with its settings.
    Gate(Box<Gate>),
}

/// A gate: when it holds an action back, what reviewers see, and who decides.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Gate {
    /// The allowed answers; reject is always allowed. Default: all four.
    pub allowed_decisions: Option<Vec<ActionKind>>,
    /// CEL on `arguments`: the gate holds a call back only if this is true.
    pub when: Option<String>,
    /// Template of the headline, which sees `arguments`; default: the tool, and the topic of its arguments.
    pub title: Option<String>,
    /// How much is at stake, or a template for it, which sees `arguments`.
    pub severity: Templated<Severity>,
    /// A category to sort reviews by.
    pub category: Option<String>,
    /// Whether the action can be undone.
    pub reversible: Option<bool>,
    /// The consequences of an approval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<String>,
    /// The estimated cost.
    pub estimated_cost: Option<CostSetting>,
    /// The alternatives: sentences, or `{id, description, tradeoffs}`, which can be chosen instead of a call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// The people who may decide.
    #[serde(skip_serializing_if = "Reviewers::is_empty")]
    pub reviewers: Reviewers,
    /// The handlers that resolve it.
    pub handlers: Option<Vec<Handler>>,
    /// How long the review waits.
    pub timeout: Option<Span>,
    /// What happens when the time is up.
    pub on_timeout: Option<OnTimeout>,
    /// `false`: no guardrail checks what this gate approved.
    pub guardrails: Option<bool>,
}

impl Gate {
    /// Returns what is at stake. Its templates may use `arguments`.
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

    /// Returns the allowed answers, in the order approve, edit, reject, respond; reject is always among them.
    pub fn allowed_decisions(&self) -> Vec<ActionKind> {
        ActionKind::ALL
            .iter()
            .copied()
            .filter(|kind| {
                *kind == ActionKind::Reject
                    || self.allowed_decisions.as_ref().is_none_or(|allowed| allowed.contains(kind))
            })
            .collect()
    }
}

/// The four answers to an action.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ActionKind {
    /// Runs as asked.
    Approve,
    /// Runs with new arguments.
    Edit,
    /// Does not run; the agent is told why.
    Reject,
    /// Does not run; the text is the result.
    Respond,
}
