//! What kinds of reviews there are, and who asks by itself.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// What a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReviewKind {
    /// A human node.
    Approval,
    /// Gated calls of one agent turn, or a gated tool node.
    ToolCalls,
    /// An agent is about to run.
    Agent,
    /// A specialist is about to be made.
    Emergent,
    /// The output is about to be given.
    Output,
    /// A strategy is about to change.
    StrategyOverride,
    /// An agent asks.
    Clarification,
    /// A draft is to be edited.
    Edit,
    /// An agent gives up.
    Escalation,
    /// Progress is shown.
    Checkpoint,
    /// Somebody is told; does not block.
    Handoff,
}

/// Who asks by itself, and goes on with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AskedBy {
    /// An agent, which is told the answer.
    Agent,
    /// A step that calls a tool which asks: the answer is its result.
    Step,
    /// A program, over the API.
    Program,
}

impl ReviewKind {
    /// Whether a run waits for it. A hand-over tells somebody, and the run goes on.
    pub fn blocks(self) -> bool {
        self != Self::Handoff
    }
}
