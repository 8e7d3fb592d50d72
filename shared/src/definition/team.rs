//! `team`: several agents that work on one step.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::Judge;

/// Several agents that work together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Team {
    /// The names of its members, at least two.
    pub agents: Vec<String>,
    /// Who hears all answers and gives that of the team (parallel, debate), or calls the members as tools (router). Default:
    /// the last of `agents`. It takes no turn as a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// How they work.
    #[serde(default)]
    pub strategy: TeamStrategy,
    /// How many rounds a debate has, from 1 to 20; default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Template of what they are asked; default: the readable keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Whether members may make new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emergent: Option<TeamEmergent>,
}

impl Team {
    /// The most rounds of a debate.
    pub const MAX_ROUNDS: u32 = 20;
    /// How many rounds a debate has where nobody says.
    pub const DEFAULT_ROUNDS: u32 = 3;

    /// Who gives the answer of the team, where the strategy has somebody who does.
    pub fn lead(&self) -> &str {
        self.lead.as_deref().or(self.agents.last().map(String::as_str)).unwrap_or_default()
    }

    /// Whose answer the team's is: the lead's, or that of the last in a row.
    pub fn answers(&self) -> &str {
        match self.strategy {
            TeamStrategy::Sequential => self.agents.last().map(String::as_str).unwrap_or_default(),
            TeamStrategy::Parallel | TeamStrategy::Router | TeamStrategy::Debate => self.lead(),
        }
    }

    /// All agents that it names, each once.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let lead = self.lead.as_ref().filter(|lead| !self.agents.contains(lead));
        self.agents.iter().chain(lead).map(String::as_str)
    }

    /// Whether its members may make new ones.
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
    /// One after another, each hearing the answer before; the last answer is the team's.
    #[default]
    Sequential,
    /// All at once; then the lead hears them all, and answers.
    Parallel,
    /// The lead calls the members as tools, and answers.
    Router,
    /// In rounds, each hearing all that was said; then the lead answers.
    Debate,
}

/// Whether a team may grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct TeamEmergent {
    /// Whether it may.
    pub enabled: bool,
    /// The most specialists of one step; default 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Whether one is made only with a reason.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_justification: bool,
    /// A model that is asked about each, after the gate; what it does not approve is not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<Judge>,
}

impl TeamEmergent {
    /// The most specialists of one step.
    pub fn max(&self) -> u32 {
        self.max.unwrap_or(5)
    }
}
