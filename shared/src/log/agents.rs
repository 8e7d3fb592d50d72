//! The data of entries about agents that change their team.

use serde::{Deserialize, Serialize};

use crate::definition::TeamStrategy;
use crate::id::NodeId;

/// An agent created a specialist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecialistMade {
    /// The node of the team.
    pub node: NodeId,
    /// The name of the new agent.
    pub role: String,
    /// The agent that created it.
    pub by: String,
    /// The instructions of the new agent.
    pub instructions: String,
}

/// An agent changed the strategy of its team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyChanged {
    /// The node of the team.
    pub node: NodeId,
    /// The strategy before.
    pub from: TeamStrategy,
    /// The strategy from the next turn on.
    pub to: TeamStrategy,
    /// The number of rounds, for a debate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The agent that changed it.
    pub by: String,
    /// The agent's reason, in its own words.
    pub reason: String,
}
