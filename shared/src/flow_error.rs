//! The error codes of runs, steps and flow files, which are part of the flow format.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::id::NodeId;

/// The error code of a run, a step or a flow file. The list is part of the flow format.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum FlowCode {
    /// The flow is not valid.
    FlowInvalid,
    /// Output would be passed on before the person who can still correct it has approved it.
    FlowInvalidDelegation,
    /// A key that this version does not support. This version supports all keys.
    FlowUnsupported,
    /// A person stopped the run.
    FlowHumanRejected,
    /// No one answered in time, and the flow treats this as an error.
    FlowHumanTimeout,
    /// A node was visited more often than allowed.
    FlowVisitLimit,
    /// No edge applied.
    FlowNoMatchingEdge,
    /// A condition or template could not be evaluated.
    FlowCondition,
    /// A person rejected a tool call.
    ToolPermissionDenied,
    /// A tool failed.
    ToolFailed,
    /// A model failed.
    ModelFailed,
    /// A guardrail vetoed what was approved.
    GuardrailBlocked,
    /// An agent used more than its budget.
    BudgetExceeded,
    /// The stored data cannot be read.
    RecordUnreadable,
    /// The stored flow of a run cannot be read by this version of the server.
    FlowUnreadable,
    /// The server failed while it computed the next step of a run.
    EngineFailed,
    /// The server repeatedly ended while it ran a task.
    TaskAbandoned,
    /// A webhook or a function that was asked as a handler could not answer.
    HandlerFailed,
}

/// Why a run or a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RunError"))]
#[error("{code}: {message}")]
pub struct FlowError {
    /// The kind of failure.
    pub code: FlowCode,
    /// What happened, for people.
    pub message: String,
    /// The node at which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
}
