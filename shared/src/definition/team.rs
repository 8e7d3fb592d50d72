//! `team`: several agents that work on one step.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::Judge;

/// Several agents that work together.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Team {
    /// The names of its members, at least two.
    pub agents: Vec<String>,
    /// The agent that reads all answers and gives the team's answer (parallel, debate), or calls the members as tools
    /// (router). Default: the last of `agents`. It takes no turn as a member.
    pub lead: Option<String>,
    /// How the members work together.
    #[serde(default)]
    pub strategy: TeamStrategy,
    /// The number of rounds of a debate, from 1 to 20; default 3.
    pub rounds: Option<u32>,
    /// Template of the task; default: the readable keys.
    pub prompt: Option<String>,
    /// Whether members may create specialists.
    pub emergent: Option<TeamEmergent>,
}

impl Team {
    /// The most rounds of a debate.
    pub const MAX_ROUNDS: u32 = 20;
    /// The default number of rounds of a debate.
    pub const DEFAULT_ROUNDS: u32 = 3;

    /// Returns the lead: the agent that `lead` names, or else the last of `agents`. A sequential team has no use for
    /// it.
    pub fn lead(&self) -> &str {
        self.lead.as_deref().or(self.agents.last().map(String::as_str)).unwrap_or_default()
    }

    /// Returns the agent whose answer is the team's: the last member of a sequential team, otherwise the lead.
    pub fn answers(&self) -> &str {
        match self.strategy {
            TeamStrategy::Sequential => self.agents.last().map(String::as_str).unwrap_or_default(),
            TeamStrategy::Parallel | TeamStrategy::Router | TeamStrategy::Debate => self.lead(),
        }
    }

    /// Returns all agents of the team, each once.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let lead = self.lead.as_ref().filter(|lead| !self.agents.contains(lead));
        self.agents.iter().chain(lead).map(String::as_str)
    }

    /// Whether its members may create specialists.
    pub fn is_emergent(&self) -> bool {
        self.emergent.as_ref().is_some_and(|emergent| emergent.enabled)
    }
}

/// How a team works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TeamStrategy {
    /// One after another, each reading the previous answer; the last answer is the team's.
    #[default]
    Sequential,
    /// All at once; then the lead reads all answers and answers.
    Parallel,
    /// The lead calls the members as tools, and answers.
    Router,
    /// In rounds, each reading everything said so far; then the lead answers.
    Debate,
}

/// Whether members of a team may create specialists.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct TeamEmergent {
    /// Whether this is allowed.
    pub enabled: bool,
    /// The most specialists of one step; default 5.
    pub max: Option<u32>,
    /// Whether a reason is required.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_justification: bool,
    /// A judge that is asked about each specialist, after the gate; if it does not approve, the specialist is not
    /// created.
    pub judge: Option<Judge>,
}

impl TeamEmergent {
    /// The most specialists of one step.
    pub fn max(&self) -> u32 {
        self.max.unwrap_or(5)
    }
}
