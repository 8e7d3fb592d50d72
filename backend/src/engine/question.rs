//! The questions that must be answered before a run continues. A question is stored beside its subject, which it names:
//! so judges, gates, human nodes and timers work the same for every subject.

use serde::{Deserialize, Serialize};
use shared::JsonMap;
use shared::decision::ProgramAnswer;
use shared::id::{NodeId, ReviewId, TaskId, Username};
use shared::review::{Advice, Changes};
use shared::run::Step;
use shared::time::Timestamp;

use super::conversation::{Conversation, ToolCall};
use super::looked::Looked;
use crate::flow::guardrail::Inquiry;

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
    /// What handlers said that is on no review yet: once it is pending, it stands there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// Whether its review is pending: people may answer, whoever else is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// Who is asked now.
    pub asked: Asked,
    /// Its timer, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
}

impl Question {
    /// The call of a handler that is due, running or retrying, with the number of the try.
    pub fn task(&self) -> Option<(TaskId, u32)> {
        match &self.asked {
            Asked::Judge { conversation, .. } => conversation.model_task.map(|task| (task, conversation.tries)),
            Asked::Program { task, tries, answers_later: false, .. } => Some((*task, *tries)),
            Asked::Guardrails { task, .. } => Some((*task, 1)),
            Asked::People | Asked::Channel { .. } | Asked::Program { .. } => None,
        }
    }

    /// Whether the run goes no further without the answer.
    pub fn blocks(&self) -> bool {
        self.subject.branch().is_some()
    }

    /// When the handler that is asked has had its time. That of people is on the review.
    pub fn until(&self) -> Option<Timestamp> {
        match &self.asked {
            Asked::People | Asked::Guardrails { .. } => None,
            Asked::Judge { until, .. } => *until,
            Asked::Channel { until } | Asked::Program { until, .. } => Some(*until),
        }
    }
}

/// What waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Subject {
    /// A branch at a human node.
    Node {
        /// The number of the branch that waits there.
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
        /// The id of that call in its step: the answer is its result.
        call: String,
        /// It was told to wait.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        paused: bool,
    },
    /// What somebody writes who takes over an agent's step.
    Takeover {
        /// The branch at its node.
        branch: u32,
        /// Who takes over.
        by: Vec<Username>,
        /// It is not for the one who started the run, as the question was not by which it was taken over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        not_requester: bool,
        /// Nor for those who decided at this node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_same_as: Option<NodeId>,
    },
    /// A specialist that a judge is asked about, once nothing else holds it back.
    Specialist {
        /// The branch that made the call.
        branch: u32,
        /// The id of the call that would make the specialist.
        call: String,
    },
    /// Something that an agent has handed over. Nothing waits for it, and it stays when its step and its run are over.
    Handoff {
        /// The visit in which it was handed over.
        step: Box<Step>,
        /// Whose call it was; none of a tool node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The call by which it was handed over.
        call: Box<ToolCall>,
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
        /// The id of that call in its step.
        call: String,
        /// Why there was no certain answer; none where its worker was lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

impl Subject {
    /// The branch that waits; none where nothing does.
    pub fn branch(&self) -> Option<u32> {
        match self {
            Self::Node { branch }
            | Self::Calls { branch, .. }
            | Self::Ask { branch, .. }
            | Self::Takeover { branch, .. }
            | Self::Specialist { branch, .. }
            | Self::Agent { branch }
            | Self::Output { branch }
            | Self::Lost { branch, .. } => Some(*branch),
            Self::Handoff { .. } => None,
        }
    }

    /// The ids of the calls that it is about.
    pub fn calls(&self) -> &[String] {
        match self {
            Self::Node { .. }
            | Self::Takeover { .. }
            | Self::Agent { .. }
            | Self::Output { .. }
            | Self::Handoff { .. } => &[],
            Self::Calls { calls, .. } => calls,
            Self::Ask { call, .. } | Self::Specialist { call, .. } | Self::Lost { call, .. } => {
                std::slice::from_ref(call)
            }
        }
    }
}

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "asked", rename_all = "snake_case")]
pub enum Asked {
    /// People, and nobody else any more.
    People,
    /// Whoever may decide, in a channel of a chat.
    Channel {
        /// When they have had their time, and the next is asked.
        until: Timestamp,
    },
    /// A judge: a model that decides where it is sure enough.
    Judge {
        /// When it has had its time; none where it was asked by a version that had no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// What it was shown, and what it said.
        conversation: Box<Conversation>,
        /// The digest of what is asked as the judge was shown it.
        digest: String,
    },
    /// A program: a webhook, or a function of the program that runs the flow.
    Program {
        /// When it was asked first; further tries do not change it.
        since: Timestamp,
        /// When it has had its time.
        until: Timestamp,
        /// Its task. It names this asking also when the task is over, and the program answers later.
        task: TaskId,
        /// How often it has been tried, this try included.
        tries: u32,
        /// It has said that it answers later: its review is pending.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        answers_later: bool,
    },
    /// It is approved, and guardrails ask programs about that before it counts. People may decide meanwhile where
    /// they could before.
    Guardrails {
        /// Who approves. Runs are stored with the name `leave`, here and in the tag of [`Approval`].
        #[serde(rename = "leave")]
        approval: Approval,
        /// The task of asking.
        task: TaskId,
        /// What is asked.
        inquiries: Vec<Inquiry>,
        /// What programs said of it in earlier rounds.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        looked: Vec<Looked>,
    },
}

/// Who approves while guardrails ask about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "leave", rename_all = "snake_case")]
pub enum Approval {
    /// An `auto` handler.
    Auto,
    /// A judge that was sure enough.
    Judge {
        /// What it said.
        said: Box<Judged>,
        /// The digest of what it was shown.
        digest: String,
    },
    /// A program that was asked as a handler.
    Program {
        /// What it said.
        said: Box<ProgramAnswer>,
        /// The digest of what it was shown.
        digest: String,
    },
    /// The time in which people could decide is over.
    Timer,
    /// Somebody allowed such calls before.
    Grant,
    /// Nobody has to: the run is at its end, and its output is to be given.
    End,
}

/// What a judge says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Whether it is accepted.
    pub approved: bool,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// Why it says so.
    pub reasoning: String,
    /// What it would change.
    #[serde(default)]
    pub modifications: JudgedChanges,
}

/// What a judge would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JudgedChanges {
    /// As a person would say it.
    #[serde(flatten)]
    pub changes: Changes,
    /// Some of the values under review, by key.
    pub output: JsonMap,
}

/// The task of a time limit: of the review, or of the handler that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// The task that is due at the time limit, or at the warning before it.
    pub task: TaskId,
    /// When people are warned that the deadline is near; none where they have been, or are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_at: Option<Timestamp>,
}
