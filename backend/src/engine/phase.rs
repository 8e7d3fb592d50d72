//! The phases of a branch at its node.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::id::{NodeId, TaskId};
use shared::run::{Activity, Step};

use super::conversation::{Conversation, ToolCall, ToolCallState};
use super::question::Question;
use super::team::TeamWork;

/// One branch: where it stands, and what it does there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// The node that it stands at, or waits to enter.
    pub node: NodeId,
    /// The phase of the branch.
    pub phase: Phase,
}

/// What a branch does at its node. Each variant carries what belongs to it and nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a run has few branches, and they stay where they are")]
pub enum Phase {
    /// Waits for the other branches that can still reach the node (`join: all`).
    Joining {
        /// The order of arrival: if all branches of a frame wait, the earliest group continues.
        arrived: u32,
    },
    /// An agent (or a router's agent) works.
    Agent {
        /// The visit of the agent, router or team node that it works in.
        step: Step,
        /// The conversation so far.
        conversation: Conversation,
    },
    /// A tool node's call.
    Tool {
        /// The visit of the tool node.
        step: Step,
        /// The one call that the node makes, and how far it is.
        call: ToolCall,
        /// A person's correction, for this visit only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correction: Option<String>,
        /// The state keys that the agent which the node calls has written.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        wrote: BTreeSet<String>,
    },
    /// A human node waits for the answer to its question.
    Human {
        /// The visit of the human node, which ends with the answer.
        step: Step,
    },
    /// A map waits for its items, each of which is a branch of its own at the mapped node.
    Map {
        /// The visit of the map, which ends with its last item.
        step: Step,
        /// The visit of the mapped node that has the first item; the others follow in order.
        first: u32,
        /// The list as it was when the map began.
        #[serde(serialize_with = "shared::user_data::value")]
        items: Vec<Value>,
        /// The results of the completed items, each with its index in the list, from 0.
        #[serde(serialize_with = "shared::user_data::numbered")]
        results: Vec<(u32, Value)>,
    },
    /// A team works: each turn under way is a branch of its own.
    Team {
        /// The visit of the team node, which its members share.
        step: Step,
        /// The contributions so far, and whose turn is next.
        team: Box<TeamWork>,
    },
    /// A flow is at its end, and its output waits for approval.
    Returning {
        /// The visit of the flow's end.
        step: Step,
    },
    /// A flow node waits for the end of the flow that it called, whose branches are branches of the run.
    Flow {
        /// The visit of the flow node; its node and number name the frame of the called flow.
        step: Step,
    },
}

/// The visit of a phase, by reference. A macro, so that one list serves shared and mutable references.
macro_rules! step_of {
    ($phase:expr) => {
        match $phase {
            Self::Joining { .. } => None,
            Self::Agent { step, .. }
            | Self::Tool { step, .. }
            | Self::Human { step, .. }
            | Self::Map { step, .. }
            | Self::Team { step, .. }
            | Self::Returning { step }
            | Self::Flow { step } => Some(step),
        }
    };
}

impl Phase {
    /// Creates the phase of a tool node's call.
    pub(super) fn tool(step: Step, call: ToolCall, correction: Option<String>) -> Self {
        Self::Tool { step, call, correction, wrote: BTreeSet::new() }
    }

    /// Returns the visit; `None` while the branch waits at a join.
    pub fn step(&self) -> Option<&Step> {
        step_of!(self)
    }

    /// Returns the visit like [`Self::step`], to change it.
    pub fn step_mut(&mut self) -> Option<&mut Step> {
        step_of!(self)
    }

    /// Whether it waits for the end of this frame.
    pub fn calls_frame(&self, frame: &str) -> bool {
        matches!(self, Self::Flow { step } if step.node.call(step.visit) == frame)
    }

    /// Returns the tasks of calls and sleeps that are due, running or retrying, with the number of the attempt.
    pub fn tasks(&self) -> Vec<(TaskId, u32)> {
        fn due(call: &ToolCall) -> Option<(TaskId, u32)> {
            match call.state {
                ToolCallState::Due { task, tries } => Some((task, tries)),
                _ => None,
            }
        }
        let model = self.conversation().and_then(|own| own.model_task.map(|task| (task, own.tries)));
        model.into_iter().chain(self.calls().iter().filter_map(due)).collect()
    }

    /// Returns what the branch does while these questions are open.
    pub(super) fn activity(&self, asked: &[&Question]) -> Activity {
        let tasks = || self.tasks().into_iter().chain(asked.iter().filter_map(|question| question.task()));
        match self {
            Self::Joining { .. } | Self::Map { .. } | Self::Team { .. } | Self::Flow { .. } => Activity::Joining,
            _ if asked.is_empty() && self.tasks().is_empty() && self.delegates() => Activity::Joining,
            _ if tasks().any(|(_, tries)| tries > 1) => Activity::Retrying,
            _ if tasks().next().is_none() && asked.iter().any(|question| question.pending) => Activity::Waiting,
            _ => Activity::Running,
        }
    }

    /// Returns the conversation, if an agent works.
    pub fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::Agent { conversation, .. } => Some(conversation),
            _ => None,
        }
    }

    /// Returns the progress of the team, if one works.
    pub(super) fn team(&self) -> Option<&TeamWork> {
        match self {
            Self::Team { team, .. } => Some(team),
            _ => None,
        }
    }

    /// Whether a task is the model call of the turn that is under way.
    pub(super) fn calls_model(&self, task: TaskId) -> bool {
        self.conversation().is_some_and(|own| own.model_task == Some(task))
    }

    /// Whether agents work on its calls.
    pub fn delegates(&self) -> bool {
        self.calls().iter().any(|call| call.state == ToolCallState::Delegated)
    }

    /// Returns the branch that waits for the result, if this one works for another.
    pub fn works_for(&self) -> Option<u32> {
        self.conversation().and_then(Conversation::works_for)
    }

    /// Returns the tool calls, whatever their state.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Self::Agent { conversation, .. } => &conversation.calls,
            Self::Tool { call, .. } => std::slice::from_ref(call),
            _ => &[],
        }
    }

    /// Returns the tool calls like [`Self::calls`], to change them.
    pub fn calls_mut(&mut self) -> &mut [ToolCall] {
        match self {
            Self::Agent { conversation, .. } => conversation.calls.as_mut_slice(),
            Self::Tool { call, .. } => std::slice::from_mut(call),
            _ => &mut [],
        }
    }
}

/// Whether a call is due, running or retrying as this task.
pub(super) fn is_due(call: &ToolCall, task: TaskId) -> bool {
    matches!(call.state, ToolCallState::Due { task: due, .. } if due == task)
}
