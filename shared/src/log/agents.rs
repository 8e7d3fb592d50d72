//! What entries say of agents that change their team.

use serde::{Deserialize, Serialize};

use crate::definition::TeamStrategy;
use crate::id::NodeId;

/// An agent made another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecialistMade {
    /// The node of the team.
    pub node: NodeId,
    /// The name of the new agent.
    pub role: String,
    /// The agent that made it.
    pub by: String,
    /// What it was told.
    pub instructions: String,
}

/// An agent changed how its team works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyChanged {
    /// The node of the team.
    pub node: NodeId,
    /// The strategy before.
    pub from: TeamStrategy,
    /// The strategy from the next turn on.
    pub to: TeamStrategy,
    /// How many rounds a debate has; none where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// The agent that changed it.
    pub by: String,
    /// Why the member wanted the change, in its own words.
    pub reason: String,
}
