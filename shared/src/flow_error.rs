//! What ends a run, a step or the saving of a flow badly, in codes that are part of the flow format.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::id::NodeId;

/// What ends a run, a step or the saving of a flow badly. The list is part of the flow format.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum FlowCode {
    /// The flow is not valid.
    FlowInvalid,
    /// Output would be passed on before the person who may still correct it has approved it.
    FlowInvalidDelegation,
    /// A key that this version does not support. This one supports all that there are.
    FlowUnsupported,
    /// A person stopped the run.
    FlowHumanRejected,
    /// Nobody answered in time, and the flow says that this is an error.
    FlowHumanTimeout,
    /// A node was visited more often than it may be.
    FlowVisitLimit,
    /// No edge could be taken where one was expected.
    FlowNoMatchingEdge,
    /// A condition or template could not be evaluated.
    FlowCondition,
    /// A person refused a tool call.
    ToolPermissionDenied,
    /// A tool failed.
    ToolFailed,
    /// A model failed.
    ModelFailed,
    /// A guardrail vetoed what was approved.
    GuardrailBlocked,
    /// An agent used more than its budget.
    BudgetExceeded,
    /// What is stored of it cannot be read.
    RecordUnreadable,
    /// The stored flow of a run cannot be read by this version of the server.
    FlowUnreadable,
    /// The server failed while it worked out what a run does next.
    EngineFailed,
    /// The server ended again and again while it carried out a task.
    TaskAbandoned,
    /// A webhook or a function that was asked as a handler could not answer.
    HandlerFailed,
}

impl std::fmt::Display for FlowCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a run or a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{code}: {message}")]
pub struct RunError {
    /// What kind of failure.
    pub code: FlowCode,
    /// What happened, for people.
    pub message: String,
    /// The node at which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
}
