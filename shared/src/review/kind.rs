//! The kinds of reviews, and who asks on its own initiative.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The kind of a review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewKind {
    /// A question of a human node.
    #[default]
    Approval,
    /// Gated calls of one agent turn, or a gated tool node.
    ToolCalls,
    /// An agent that is about to run.
    Agent,
    /// A specialist that is about to be created.
    Emergent,
    /// An output that is about to be returned.
    Output,
    /// A strategy that is about to change.
    StrategyOverride,
    /// A question of an agent.
    Clarification,
    /// A draft to edit.
    Edit,
    /// An agent that gives up.
    Escalation,
    /// A report of progress.
    Checkpoint,
    /// A handoff of work, which does not block.
    Handoff,
}

/// Who asks on its own initiative, and continues with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AskedBy {
    /// An agent, which gets the answer.
    Agent,
    /// A step that calls a tool that asks: the answer is its result.
    Step,
    /// A program, over the API.
    Program,
}

impl ReviewKind {
    /// Whether the run waits for reviews of this kind. After a handoff, it continues.
    pub fn blocks(self) -> bool {
        self != Self::Handoff
    }
}
