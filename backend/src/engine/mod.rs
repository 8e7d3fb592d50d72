//! The engine: what a run does next. Pure: `(flow, snapshot, input, moment) -> transition or refusal`. It never awaits,
//! never reads a clock, never touches a database; the same inputs give the same transition, so a logged run can be
//! replayed and checked.
//!
//! Imports `shared`, `crate::clock` (for [`Moment`]) and `crate::flow` only.

mod input;
mod state;
mod transition;
mod work;

pub use input::{Input, Launch, ModelAnswer, ModelToolCall, TaskFailure};
pub use state::{Branch, Conversation, Message, Phase, RunOutcome, RunState, ToolCall, ToolCallState};
pub use transition::{Refusal, Snapshot, Task, TaskKind, Transition};
pub use work::{ModelRequest, ToolRequest, ToolSpec, Work};

use shared::run::{Run, RunSummary};

use crate::clock::Moment;
use crate::flow::Compiled;

/// Starts a run, and goes as far as it can without anybody.
pub fn launch(_flow: &Compiled, _launch: Launch, _moment: Moment) -> Result<Transition, Refusal> {
    unreachable!("written by its own part")
}

/// Applies an input to a run, and goes as far as it can without anybody.
pub fn apply(_flow: &Compiled, _snapshot: Snapshot, _input: Input, _moment: Moment) -> Result<Transition, Refusal> {
    unreachable!("written by its own part")
}

/// What a worker is to do for a task that is due; none where it is over.
pub fn work(_flow: &Compiled, _state: &RunState, _task: &Task) -> Option<Work> {
    unreachable!("written by its own part")
}

/// The run as lists show it.
pub fn summary(_state: &RunState) -> RunSummary {
    unreachable!("written by its own part")
}

/// The run as the API shows it.
pub fn view(_flow: &Compiled, _state: &RunState) -> Run {
    unreachable!("written by its own part")
}
