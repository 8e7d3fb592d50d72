//! What is asked before a run goes on. A question stands beside what waits for its answer, and knows it by name: so judges,
//! gates, human nodes and timers are the same whatever that is.

use serde::{Deserialize, Serialize};
use shared::id::{ReviewId, TaskId};
use shared::review::Advice;
use shared::time::Timestamp;

use super::conversation::Conversation;

/// Something that is asked, until it is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The review that is, or will be, on the record of it.
    pub review: ReviewId,
    /// What waits for the answer.
    pub subject: Subject,
    /// The place among its handlers of the one that is asked now, from 0.
    #[serde(default)]
    pub handler: usize,
    /// What the handlers before said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// Who is asked now.
    pub asked: Asked,
    /// When a handler has had its time; that of people is on the review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Its timer, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
}

impl Question {
    /// Whether its review is pending: people may answer.
    pub fn is_pending(&self) -> bool {
        matches!(self.asked, Asked::People)
    }

    /// The call of a handler that is due, running or retrying, with the number of the try.
    pub fn task(&self) -> Option<(TaskId, u32)> {
        match &self.asked {
            Asked::People => None,
            Asked::Judge { conversation, .. } => conversation.model_task.map(|task| (task, conversation.tries)),
        }
    }
}

/// What waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Subject {
    /// A branch at a human node.
    Node {
        /// The branch.
        branch: u32,
    },
    /// Calls that gates hold back.
    Calls {
        /// The branch that made them.
        branch: u32,
        /// Their ids, in the order in which they were made.
        calls: Vec<String>,
    },
    /// What a call asks people by itself.
    Ask {
        /// The branch that made the call.
        branch: u32,
        /// Its id.
        call: String,
    },
    /// An agent's step that is about to begin.
    Agent {
        /// The branch at its node.
        branch: u32,
    },
    /// The output of a flow that is about to be given.
    Output {
        /// The branch that is at the flow's end.
        branch: u32,
    },
    /// A call of which nobody knows whether it took effect.
    Lost {
        /// The branch that made it.
        branch: u32,
        /// Its id.
        call: String,
        /// Why there was no certain answer; none where its worker was lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

impl Subject {
    /// The branch that waits.
    pub fn branch(&self) -> u32 {
        match self {
            Self::Node { branch }
            | Self::Calls { branch, .. }
            | Self::Ask { branch, .. }
            | Self::Agent { branch }
            | Self::Output { branch }
            | Self::Lost { branch, .. } => *branch,
        }
    }

    /// The ids of the calls that it is about.
    pub fn calls(&self) -> &[String] {
        match self {
            Self::Node { .. } | Self::Agent { .. } | Self::Output { .. } => &[],
            Self::Calls { calls, .. } => calls,
            Self::Ask { call, .. } | Self::Lost { call, .. } => std::slice::from_ref(call),
        }
    }
}

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "asked", rename_all = "snake_case")]
pub enum Asked {
    /// People: the review is pending.
    People,
    /// A judge.
    Judge {
        /// What it was shown, and what it said.
        conversation: Box<Conversation>,
        /// The digest of what is asked as the judge was shown it.
        digest: String,
    },
}

/// The task of a time limit: of the review, or of the handler that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// The task.
    pub task: TaskId,
    /// When people are warned that the deadline is near; none where they have been, or are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_at: Option<Timestamp>,
}
