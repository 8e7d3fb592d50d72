//! Runs, as the API shows them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
pub use crate::context::{Context, Part};
use crate::flow_error::{FlowCode, FlowError};
use crate::id::{FlowId, NodeId, ReviewId, RunId, StepId, Username};
use crate::review::Review;
use crate::time::Timestamp;
pub use crate::usage::{AgentCall, AgentToolCall, Usage};

/// The status of a run. It is always derived from the state, never stored beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    /// Work is due, running or retrying.
    Running,
    /// A blocking review is pending, and no work is due, running or retrying.
    WaitingForHuman,
    /// No branch is left.
    Completed,
    /// It ended with an error.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl RunStatus {
    /// The statuses of runs that are over.
    pub const OVER: [Self; 3] = [Self::Completed, Self::Failed, Self::Cancelled];

    /// Whether the run is over.
    pub fn is_over(self) -> bool {
        Self::OVER.contains(&self)
    }
}

/// Why a run or a step failed although nothing is broken: a decision or a deadline stopped it, as the flow says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Ending {
    /// A person rejected something, or a judge or a deadline did so for them.
    Rejected,
    /// Nobody decided in time.
    TimedOut,
}

impl Ending {
    /// Classifies an error; `None` if it is a real failure, or if there is no error.
    pub fn of(error: Option<&FlowError>) -> Option<Self> {
        match error?.code {
            FlowCode::FlowHumanRejected | FlowCode::ToolPermissionDenied => Some(Self::Rejected),
            FlowCode::FlowHumanTimeout => Some(Self::TimedOut),
            _ => None,
        }
    }
}

/// A run without its large parts, for lists and the log.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// A UUIDv7 that the server makes at the launch.
    pub id: RunId,
    /// The id of the flow that it runs, in the version that `version` names.
    pub flow: FlowId,
    /// The flow's title when the run started.
    pub title: String,
    /// What its input is about, in a few words; none if that cannot be told.
    pub topic: Option<String>,
    /// The version of the flow.
    pub version: u32,
    /// The status of the run.
    pub status: RunStatus,
    /// The revision, which increases with every change of the run; folds ignore older or equal ones.
    pub revision: u64,
    /// The person who launched it.
    pub requested_by: Username,
    /// The time of its launch.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
    /// The time at which it ended.
    pub ended_at: Option<Timestamp>,
    /// The number of pending reviews.
    #[serde(default)]
    pub pending_reviews: u32,
    /// The error, if it failed.
    pub error: Option<FlowError>,
}

/// What is still known of a run that was archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArchivedRun {
    /// The id by which `countersign archive show` finds it.
    pub id: RunId,
    /// The id of the flow that it ran.
    pub flow: FlowId,
    /// The person who launched it.
    pub requested_by: Username,
    /// The time at which it ended.
    pub ended_at: Timestamp,
    /// The time at which it was archived.
    pub archived_at: Timestamp,
    /// The name of the file in the folder of archives.
    pub file: String,
}

/// A complete run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// The summary that lists show.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// The input of the run.
    #[serde(serialize_with = "crate::user_data::members")]
    pub input: JsonMap,
    /// The state of the flow, by key.
    #[serde(serialize_with = "crate::user_data::members")]
    pub state: JsonMap,
    /// The states of nested flows in progress, by the visit that called them: `check:2`.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "crate::user_data::members")]
    pub calls: JsonMap,
    /// The flow's output keys, once it has completed.
    #[serde(serialize_with = "crate::user_data::value")]
    pub output: Option<JsonMap>,
    /// The context of the run.
    pub context: Context,
    /// The positions of its branches.
    #[serde(default)]
    pub positions: Vec<Position>,
    /// The agents of its flow and of the flows that it calls, on which feedback can be given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The reason for the cancellation.
    pub cancel_reason: Option<String>,
}

/// The position of a branch of a run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Position {
    /// The node; in a called flow, the calls that lead to it come first: `check:2/review`. `end`: the output waits for
    /// approval.
    pub node: NodeId,
    /// The visit, from 1; 0 if the branch waits to be joined.
    pub visit: u32,
    /// The item of a map that it is, if any.
    pub part: Option<Part>,
    /// The activity of the branch.
    pub activity: Activity,
    /// The review that the branch waits for.
    pub review: Option<ReviewId>,
}

/// The activity of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Activity {
    /// A step runs, or is due.
    Running,
    /// A step failed and is retried.
    Retrying,
    /// A person is asked.
    Waiting,
    /// It waits for other branches.
    Joining,
}

/// The status of a visit of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepStatus {
    /// Its work is due or running, or it waits for other branches: the items of a map, the turns of a team, or a called
    /// flow.
    Running,
    /// It waits for a person.
    Waiting,
    /// It waits for the next attempt.
    Retrying,
    /// It is done.
    Completed,
    /// It failed and is not retried; `error` says why. The run may continue, as the failure policy says.
    Failed,
    /// The run ended while it was in progress.
    Cancelled,
}

/// One visit of a node in a run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The id that log entries have as `step_id`.
    pub id: StepId,
    /// The node, in the form of `Position.node`.
    pub node: NodeId,
    /// The visit, from 1.
    pub visit: u32,
    /// The item of a map that it is, if any.
    pub part: Option<Part>,
    /// The node's kind.
    pub kind: String,
    /// The status of the visit.
    pub status: StepStatus,
    /// The time of its start.
    pub started_at: Timestamp,
    /// The duration of the visit.
    pub duration_ms: Option<u64>,
    /// The number of attempts.
    #[serde(default = "one")]
    pub tries: u32,
    /// The error, if it failed.
    pub error: Option<FlowError>,
    /// A short note: the chosen option, or the tokens used.
    pub note: Option<String>,
}

fn one() -> u32 {
    1
}

/// The answer of `GET /api/v1/runs/{id}/report`: each visit of each node, and all reviews.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The id of the run, as in `GET /api/v1/runs/{id}`.
    pub run_id: RunId,
    /// The id of the flow that it runs.
    pub flow: FlowId,
    /// The version of the flow.
    pub version: u32,
    /// The status of the run.
    pub status: RunStatus,
    /// The output; none until the run has completed.
    #[serde(serialize_with = "crate::user_data::value")]
    pub output: Option<JsonMap>,
    /// The error, if it failed.
    pub error: Option<FlowError>,
    /// The duration, so far or in total.
    pub duration_ms: u64,
    /// Every visit of every node, in the order in which they started.
    pub steps: Vec<Step>,
    /// The reviews, in the order in which they were requested.
    pub reviews: Vec<Review>,
}

/// State keys with their values, as a step writes them.
pub type Writes = serde_json::Map<String, Value>;
