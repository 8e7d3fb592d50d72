//! Runs as the API shows them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use crate::JsonMap;
pub use crate::context::{Context, Part};
use crate::flow_error::RunError;
use crate::id::{FlowId, NodeId, ReviewId, RunId, StepId, Username};
use crate::review::Review;
use crate::time::Timestamp;
pub use crate::usage::{AgentCall, AgentToolCall, Usage};

/// Where a run stands. Always derived from its state, never set beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    /// Something is due, running or retrying.
    Running,
    /// A blocking review is pending, and nothing is due, running or retrying.
    WaitingForHuman,
    /// No branch is left.
    Completed,
    /// It ended with an error.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl RunStatus {
    /// Whether nothing more will happen.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A run without what may be large: in lists and in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// A UUIDv7 that the server makes at the launch.
    pub id: RunId,
    /// The id of the flow that it runs, in the version that `version` names.
    pub flow: FlowId,
    /// The flow's title when the run started.
    pub title: String,
    /// The version of the flow.
    pub version: u32,
    /// Where it stands.
    pub status: RunStatus,
    /// Raised by every change of the run; folds ignore older or equal ones.
    pub revision: u64,
    /// Who started it.
    pub requested_by: Username,
    /// The time of its launch.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How many of its reviews are pending.
    #[serde(default)]
    pub pending_reviews: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

/// A run that was written to a file and removed from the database: what can still be said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArchivedRun {
    /// The id by which `countersign archive show` finds it.
    pub id: RunId,
    /// The id of the flow that it ran.
    pub flow: FlowId,
    /// Who started it.
    pub requested_by: Username,
    /// When it ended.
    pub ended_at: Timestamp,
    /// When it was archived.
    pub archived_at: Timestamp,
    /// The name of the file in the folder of archives.
    pub file: String,
}

/// A run, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// What lists show of it.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// What it was started with.
    pub input: JsonMap,
    /// The state of the flow, by key.
    pub state: JsonMap,
    /// The states of nested flows that are under way, by the visit that called: `check:2`.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub calls: JsonMap,
    /// The flow's output keys, once it has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<JsonMap>,
    /// For whom it goes.
    pub context: Context,
    /// Where its branches stand.
    #[serde(default)]
    pub positions: Vec<Position>,
    /// The agents of its flow and of those that it calls: on these feedback can be given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Why it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<String>,
}

/// Where one branch of a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Position {
    /// The node; in a called flow, the calls that lead to it come first: `check:2/review`. `end`: the output waits for
    /// approval.
    pub node: NodeId,
    /// The visit, from 1; 0 where the branch waits to be joined.
    pub visit: u32,
    /// Which item of a map it is, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// What it does there.
    pub activity: Activity,
    /// The review that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewId>,
}

/// What a branch does where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Activity {
    /// A step runs, or is due.
    Running,
    /// A step failed and is tried again.
    Retrying,
    /// A person is asked.
    Waiting,
    /// Other branches are waited for.
    Joining,
}

/// How one visit of a node went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StepStatus {
    /// Its work is due or running, or it waits for other branches: the items of a map, the turns of a team, or a called
    /// flow.
    Running,
    /// It waits for a person.
    Waiting,
    /// It waits for the next try.
    Retrying,
    /// It is done.
    Completed,
    /// It failed and is not tried again; `error` says why. The run may go on, as the failure policy says.
    Failed,
    /// The run ended while it was under way.
    Cancelled,
}

/// One visit of a node in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The id that log entries have as `step_id`.
    pub id: StepId,
    /// The node, in the form of `Position.node`.
    pub node: NodeId,
    /// The visit, from 1.
    pub visit: u32,
    /// Which item of a map it is, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The node's kind.
    pub kind: String,
    /// How it went.
    pub status: StepStatus,
    /// When it started.
    pub started_at: Timestamp,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How often it was tried.
    #[serde(default = "one")]
    pub tries: u32,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// What it did, in a few words: the option chosen, the tokens used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

fn one() -> u32 {
    1
}

/// The answer of `GET /api/v1/runs/{id}/report`: what each visit of each node did, and what was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The id of the run, as in `GET /api/v1/runs/{id}`.
    pub run_id: RunId,
    /// The id of the flow that it runs.
    pub flow: FlowId,
    /// The version of it.
    pub version: u32,
    /// Where it stands.
    pub status: RunStatus,
    /// What it gave out; none until it has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<JsonMap>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// How long it took, or has taken so far.
    pub duration_ms: u64,
    /// Every visit of every node, in the order in which they started.
    pub steps: Vec<Step>,
    /// Its reviews, in the order in which they were asked.
    pub reviews: Vec<Review>,
}

/// A value of the state with its key, as steps write them.
pub type Writes = serde_json::Map<String, Value>;
