//! The questions of a run that are not answered yet. A question is stored beside its subject, which it names, so that
//! judges, gates, human nodes and timers work the same for every subject.

use serde::{Deserialize, Serialize};
use shared::JsonMap;
use shared::decision::ProgramAnswer;
use shared::id::{NodeId, ReviewId, TaskId, Username};
use shared::review::{Advice, Changes};
use shared::run::Step;
use shared::time::Timestamp;

use super::conversation::{Conversation, ToolCall};
use super::guardrail_reply::GuardrailReply;
use crate::flow::guardrail::Inquiry;

/// Something that is asked, until it is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The id of its review, which may not exist yet.
    pub review: ReviewId,
    /// What waits for the answer.
    pub subject: Subject,
    /// The index of the handler that is asked now, from 0.
    #[serde(default)]
    pub handler: usize,
    /// The advice of handlers so far. Once the review is pending, advice is kept there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// Whether its review is pending: people may answer, even while a handler is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
    /// Who is asked now.
    pub asked: Asked,
    /// The timer of the time limit, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<Timer>,
}

impl Question {
    /// Creates a question that nobody has been asked yet.
    pub(super) fn new(review: ReviewId, subject: Subject) -> Self {
        Self { review, subject, handler: 0, advice: Vec::new(), pending: false, asked: Asked::People, timer: None }
    }

    /// Returns the task that asks a handler, or programs for guardrails, while it is due, running or retrying, with the
    /// number of the attempt.
    pub fn task(&self) -> Option<(TaskId, u32)> {
        match &self.asked {
            Asked::Judge { conversation, .. } => conversation.model_task.map(|task| (task, conversation.tries)),
            Asked::Program { task, tries, answers_later: false, .. } => Some((*task, *tries)),
            Asked::Guardrails { task, .. } => Some((*task, 1)),
            Asked::People | Asked::Channel { .. } | Asked::Program { .. } => None,
        }
    }

    /// Whether a branch of the run waits for the answer.
    pub fn blocks(&self) -> bool {
        self.subject.branch().is_some()
    }

    /// Returns the deadline of the handler that is asked. That of people is on the review.
    pub fn until(&self) -> Option<Timestamp> {
        match &self.asked {
            Asked::People | Asked::Guardrails { .. } => None,
            Asked::Judge { until, .. } => *until,
            Asked::Channel { until } | Asked::Program { until, .. } => Some(*until),
        }
    }
}

/// What waits for an answer.
#[serde_with::skip_serializing_none]
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
    /// A question that a call asks people.
    Ask {
        /// The branch that made the call.
        branch: u32,
        /// The id of that call in its step: the answer is its result.
        call: String,
        /// Whether whoever asked was told to wait.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        paused: bool,
    },
    /// The output that somebody writes after taking over an agent's step.
    Takeover {
        /// The branch at its node.
        branch: u32,
        /// The people who took over.
        by: Vec<Username>,
        /// Whether whoever started the run may not write it, as with the question by which the step was taken over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        not_requester: bool,
        /// The node whose deciders may not write it either.
        not_same_as: Option<NodeId>,
    },
    /// A specialist that a judge is asked about, once nothing else holds the call back.
    Specialist {
        /// The branch that made the call.
        branch: u32,
        /// The id of the call that would create the specialist.
        call: String,
    },
    /// Something that an agent has handed over. Nothing waits for it, and it stays when its step and its run are over.
    Handoff {
        /// The visit in which it was handed over.
        step: Box<Step>,
        /// The agent that made the call; `None` for a tool node.
        agent: Option<String>,
        /// The call by which it was handed over.
        call: Box<ToolCall>,
    },
    /// An agent that is about to begin its step.
    Agent {
        /// The branch at its node.
        branch: u32,
    },
    /// The output of a flow that is about to be returned.
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
        /// Why there was no certain answer; `None` if the worker of the call was lost.
        why: Option<String>,
    },
}

impl Subject {
    /// Returns the branch that waits; `None` if nothing does.
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

    /// Returns the ids of the calls that it is about.
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

/// Who is asked at present.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "asked", rename_all = "snake_case")]
pub enum Asked {
    /// People only: no handler is left.
    People,
    /// The people who may decide, in a channel of a chat.
    Channel {
        /// The time at which the next handler is asked.
        until: Timestamp,
    },
    /// A judge: a model that decides if it is confident enough.
    Judge {
        /// The deadline of the judge; `None` if it was asked by a version without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// The conversation with the judge.
        conversation: Box<Conversation>,
        /// The digest of the content that the judge was shown.
        digest: String,
    },
    /// A program: a webhook, or a function of the program that runs the flow.
    Program {
        /// The time of the first attempt; retries do not change it.
        since: Timestamp,
        /// The deadline of the program.
        until: Timestamp,
        /// The task that asks the program. It also identifies a later callback, after the task has ended.
        task: TaskId,
        /// The number of attempts so far, including the current one.
        tries: u32,
        /// Whether it has said that it answers later: then its review is pending.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        answers_later: bool,
    },
    /// Programs that guardrails ask about an approval before it counts. If people could decide before, they still can.
    Guardrails {
        /// The approval. Stored runs have the name `leave`, here and in the tag of [`Approval`].
        #[serde(rename = "leave")]
        approval: Approval,
        /// The task that asks the programs.
        task: TaskId,
        /// What the programs are asked.
        inquiries: Vec<Inquiry>,
        /// The answers of programs in earlier rounds.
        #[serde(rename = "looked", default, skip_serializing_if = "Vec::is_empty")]
        replies: Vec<GuardrailReply>,
    },
}

/// An approval that guardrails ask programs about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "leave", rename_all = "snake_case")]
pub enum Approval {
    /// An `auto` handler.
    Auto,
    /// A judge that was confident enough.
    Judge {
        /// The judge's answer.
        said: Box<Judged>,
        /// The digest of the content that it was shown.
        digest: String,
    },
    /// A program that was asked as a handler.
    Program {
        /// The program's answer.
        said: Box<ProgramAnswer>,
        /// The digest of the content that it was shown.
        digest: String,
    },
    /// The timer of the review, after its deadline.
    Timer,
    /// A grant.
    Grant,
    /// The votes of people, if their outcome became certain without a decision about which programs were asked.
    Votes,
    /// None is needed: the run is about to return an output that no gate holds back.
    End,
}

/// The answer of a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Whether it approves.
    pub approved: bool,
    /// Its confidence, from 0 to 1.
    pub confidence: f64,
    /// Its reasons.
    pub reasoning: String,
    /// The changes with which it approves.
    #[serde(default)]
    pub modifications: JudgedChanges,
}

/// Changes that a judge makes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JudgedChanges {
    /// Changes as in a person's decision.
    #[serde(flatten)]
    pub changes: Changes,
    /// New values for parts of the output under review, by key.
    #[serde(serialize_with = "shared::user_data::members")]
    pub output: JsonMap,
}

/// The timer of a deadline: that of the review, or of the handler that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// The task that is due at the deadline, or at the warning before it.
    pub task: TaskId,
    /// When people are warned that the deadline is near; `None` after the warning, or without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn_at: Option<Timestamp>,
}
