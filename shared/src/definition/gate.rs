//! `gates`: what requires approval before it happens.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::handler::Handler;
use super::on_timeout::OnTimeout;
use super::policy::Reviewers;
use super::{Alternative, CostSetting, Severity, StakesSetting, Templated};
use crate::time::Span;

/// All gates of a flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Gates {
    /// By tool name, or a pattern with `*`. The exact name wins over a pattern, the longest pattern over others.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub before_tool: IndexMap<String, GateSetting>,
    /// By agent name.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub before_agent: IndexMap<String, GateSetting>,
    /// Before a new specialist is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_emergent: Option<GateSetting>,
    /// Before the run's output is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_return: Option<GateSetting>,
    /// Before a team's strategy changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_strategy_override: Option<GateSetting>,
}

impl Gates {
    /// Whether nothing is gated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
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

/// A gate: when it holds an action back, what reviewers are shown, and who decides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Gate {
    /// The answers that it takes; reject is always one of them. Default: all four.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_decisions: Option<Vec<ActionKind>>,
    /// CEL on `arguments`: the gate closes only where this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Template of the headline, which sees `arguments`; none: the tool, and what its arguments are about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How much is at stake; or a template that says so, which sees `arguments`.
    pub severity: Templated<Severity>,
    /// A word to sort reviews by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Whether the action can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reversible: Option<bool>,
    /// What follows from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<String>,
    /// What it may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<CostSetting>,
    /// What could be done instead: sentences, or `{id, description, tradeoffs}`, which can be chosen in place of a call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// Who may decide.
    #[serde(skip_serializing_if = "Reviewers::is_empty")]
    pub reviewers: Reviewers,
    /// Who resolves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handlers: Option<Vec<Handler>>,
    /// How long it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What happens then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// `false`: no guardrail looks at what this gate let pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<bool>,
}

impl Gate {
    /// What is at stake; its templates see `arguments`.
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

    /// The answers that it takes, in the order approve, edit, reject, respond; reject is always among them.
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
