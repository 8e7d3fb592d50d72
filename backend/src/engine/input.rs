//! The inputs of the engine. An input names what it answers: a result its task and attempt, a decision its review,
//! revision and digest, a timer its task.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::access::{Involvement, Principal};
use shared::decision::{DecisionRequest, ProgramAnswer, Via};
use shared::error::{FlowCode, FlowError};
use shared::feedback::NewFeedback;
use shared::id::{ReviewId, TaskId, Username};
use shared::log::ReviewViewed;
use shared::reassignment::Assignee;
use shared::time::Span;

use super::guardrail_reply::GuardrailReply;
use super::usage::ModelUsage;
use crate::limits::{Exceeded, Size};

/// What happened to a run. The principals in it carry the rights of the transaction in which it is applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// Somebody decides a review, or gives a vote where several people decide.
    Decide {
        /// The review that they decide; it must be pending.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The channel through which it came, for the record.
        via: Via,
        /// The decision or vote.
        request: Box<DecisionRequest>,
        /// The answers of programs that guardrails asked about the decision.
        #[serde(rename = "looked", default, skip_serializing_if = "Vec::is_empty")]
        replies: Vec<GuardrailReply>,
        /// The longest lifetime of its grants by the settings; `None` if the request's own are not longer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        longest_grant_ms: Option<u64>,
    },
    /// A model answered.
    ModelAnswered {
        /// The task that called the model, for an agent's turn or for a judge.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// The model's answer.
        answer: ModelAnswer,
    },
    /// A tool returned.
    ToolReturned {
        /// The task of the tool call, which ends with the result.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// What the tool returned, as JSON: an agent is told it, a tool node writes it.
        #[serde(serialize_with = "shared::user_data::value")]
        result: Value,
    },
    /// A program that was asked as a handler has answered.
    HandlerAnswered {
        /// The task by which the program was asked.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// The digest of the review that the program was shown.
        digest: String,
        /// The program's answer.
        answer: HandlerAnswer,
    },
    /// Programs have answered what guardrails asked.
    GuardrailsAnswered {
        /// The task by which all of these programs were asked.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// The answers, each with the digest of its inquiry.
        #[serde(rename = "looked")]
        replies: Vec<GuardrailReply>,
    },
    /// A program that was asked as a handler calls back with its answer, whatever it responded at first.
    CallBack {
        /// The review that it answers; the program must still be the handler that is asked.
        review: ReviewId,
        /// The task by which it was asked.
        task: TaskId,
        /// The program's answer.
        answer: Box<ProgramAnswer>,
        /// The answers of programs that guardrails asked about the decision.
        #[serde(rename = "looked", default, skip_serializing_if = "Vec::is_empty")]
        replies: Vec<GuardrailReply>,
    },
    /// A call of a model, a tool or a handler failed.
    TaskFailed {
        /// The task of the call: of a model, a tool, a handler, or the programs of guardrails.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// The failure as reported by the worker, and whether another attempt may help.
        failure: TaskFailure,
    },
    /// A call was lost in flight: its worker is gone, and nobody knows whether it happened.
    TaskLost {
        /// The task of the call that was lost.
        task: TaskId,
        /// The attempt of the worker that has found this.
        attempt: u32,
        /// Whether that worker makes the call again. Otherwise it is a tool call that may not be repeated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// A task of the run can never be carried out by this server: the run fails, without its flow being used.
    Fail {
        /// The task that cannot be carried out.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// The error with which the run fails.
        error: FlowError,
    },
    /// The time of a timer has come (a deadline or a sleep).
    Due {
        /// The timer's task.
        task: TaskId,
    },
    /// Somebody's rights have changed: voters are checked again.
    Recount,
    /// Somebody cancels the run.
    Cancel {
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The reason, in the words of the person.
        reason: Option<String>,
    },
    /// Somebody claims a review, for a limited time.
    Claim {
        /// The review that they claim; it must be pending, and not claimed by somebody else.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The channel through which it came, for the record.
        via: Via,
    },
    /// Somebody releases a claim.
    Release {
        /// The review whose claim ends; without a claim, nothing changes.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The channel through which it came, for the record.
        via: Via,
    },
    /// Somebody hands a review to somebody else.
    Delegate {
        /// The review that changes hands; it must be pending.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The channel through which it came, for the record.
        via: Via,
        /// Who gets every vote that `by` has on the review: a reviewer who is not barred from it.
        to: Username,
        /// That user, with the rights that they have in the transaction; `None` if nobody of that name may log in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        person: Option<Principal>,
    },
    /// An admin gives a review to others.
    Reassign {
        /// The review that changes hands; it must be pending.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The channel through which it came, for the record.
        via: Via,
        /// Which of those who may decide it are replaced; `None` for all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<Assignee>,
        /// Who may decide it instead: someone who is not excluded from it.
        to: Assignee,
        /// The reason, in the words of the person.
        reason: String,
    },
    /// Somebody comments on a review.
    Comment {
        /// The review that gets the comment; it must be pending.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The channel through which it came, for the record.
        via: Via,
        /// The comment: plain text.
        text: String,
    },
    /// Somebody withdraws a review: what it asks about must not happen.
    Withdraw {
        /// The review that they take back; it must be pending.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The channel through which it came, for the record.
        via: Via,
        /// The reason, in the words of the person.
        reason: Option<String>,
    },
    /// Somebody gives feedback on an agent of the run.
    Feedback {
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// Whether the person may decide one of the run's reviews, or has decided one.
        involvement: Involvement,
        /// The feedback.
        feedback: NewFeedback,
    },
    /// Somebody opened a review; for the audit only.
    #[serde(rename = "view")]
    Viewed {
        /// The review that they opened, whether pending or not.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// What they were shown, which may have changed since. `None` in older logs: what the review is now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<ReviewViewed>,
    },
}

/// The person of an input, by reference. A macro, so that one list serves shared and mutable references: a variant that
/// is missing in one of them would keep rights that its person no longer has.
macro_rules! person_of {
    ($input:expr) => {
        match $input {
            Self::Decide { by, .. }
            | Self::Feedback { by, .. }
            | Self::Cancel { by, .. }
            | Self::Claim { by, .. }
            | Self::Release { by, .. }
            | Self::Delegate { by, .. }
            | Self::Reassign { by, .. }
            | Self::Comment { by, .. }
            | Self::Withdraw { by, .. }
            | Self::Viewed { by, .. } => Some(by),
            _ => None,
        }
    };
}

impl Input {
    /// Creates a [`Self::CallBack`], before guardrails have asked any program about it.
    pub fn call_back(review: ReviewId, task: TaskId, answer: ProgramAnswer) -> Self {
        Self::CallBack { review, task, answer: Box::new(answer), replies: Vec::new() }
    }

    /// Creates a [`Self::Decide`], before guardrails have asked any program about it.
    pub fn decide(review: ReviewId, by: Principal, via: Via, request: DecisionRequest) -> Self {
        Self::Decide { review, by, via, request: Box::new(request), replies: Vec::new(), longest_grant_ms: None }
    }

    /// Returns the review that the input names.
    pub fn review(&self) -> Option<ReviewId> {
        match self {
            Self::Decide { review, .. }
            | Self::Claim { review, .. }
            | Self::Release { review, .. }
            | Self::Delegate { review, .. }
            | Self::Reassign { review, .. }
            | Self::Comment { review, .. }
            | Self::Withdraw { review, .. }
            | Self::CallBack { review, .. }
            | Self::Viewed { review, .. } => Some(*review),
            _ => None,
        }
    }

    /// Returns the task that the input answers, with the attempt if a worker held one.
    pub fn task(&self) -> Option<(TaskId, Option<u32>)> {
        match self {
            Self::ModelAnswered { task, attempt, .. }
            | Self::ToolReturned { task, attempt, .. }
            | Self::HandlerAnswered { task, attempt, .. }
            | Self::GuardrailsAnswered { task, attempt, .. }
            | Self::TaskFailed { task, attempt, .. }
            | Self::TaskLost { task, attempt, .. }
            | Self::Fail { task, attempt, .. } => Some((*task, Some(*attempt))),
            Self::Due { task } => Some((*task, None)),
            _ => None,
        }
    }

    /// Whether it depends on which users exist, whatever the flow.
    pub fn needs_people(&self) -> bool {
        matches!(self, Self::Recount | Self::Reassign { .. })
    }

    /// Returns the person who acts; `None` for workers, programs and timers.
    pub fn by(&self) -> Option<&Principal> {
        person_of!(self)
    }

    /// Like [`Self::by`], for the store to fill in the rights of its transaction.
    pub fn by_mut(&mut self) -> Option<&mut Principal> {
        person_of!(self)
    }
}

/// The answer of a model in one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// Its text; may be empty beside calls.
    pub text: String,
    /// The tool calls that it asks for, in its order.
    pub calls: Vec<ModelToolCall>,
    /// The number of tokens, input and output together.
    pub tokens: u64,
    /// The cost in US dollars, computed when the answer came; 0 if the price is unknown.
    pub cost_usd: f64,
    /// The duration of the call, in milliseconds.
    pub duration_ms: u64,
}

impl ModelAnswer {
    /// Returns the usage of the call.
    pub fn usage(&self) -> ModelUsage {
        let Self { tokens, cost_usd, duration_ms, .. } = *self;
        ModelUsage { tokens, cost_usd, duration_ms }
    }

    /// Checks its text and its calls against the limits of one value.
    pub fn check_size(&self) -> Result<(), Exceeded> {
        let mut size = Size::default();
        size.text(&self.text)?;
        self.calls.iter().try_for_each(|call| {
            size.text(&call.provider_id)?;
            size.text(&call.tool)?;
            size.value(&call.arguments)
        })
    }
}

/// The answer of a program that was asked as a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum HandlerAnswer {
    /// It decides; the decision is checked like a person's.
    Decides {
        /// Its decision, as it was sent.
        answer: Box<ProgramAnswer>,
    },
    /// It will answer later, with a callback.
    Later,
    /// It leaves the decision to the next handler.
    Passes {
        /// Why it passes on, in words that people read.
        reason: String,
    },
}

/// A tool call as a model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelToolCall {
    /// The provider's id: echoed to the provider, never used to tell calls apart.
    pub provider_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments; whatever the model wrote, checked by the engine.
    #[serde(serialize_with = "shared::user_data::value")]
    pub arguments: Value,
}

/// Why a call failed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskFailure {
    /// The code of the error, such as `MODEL_FAILED`, `TOOL_FAILED` or `HANDLER_FAILED`.
    pub code: FlowCode,
    /// What went wrong, in words for people. If the step fails, it is the message of its error.
    pub message: String,
    /// Whether another attempt may help.
    pub retryable: bool,
    /// Whether the call may have taken effect all the same: it was sent, and no answer says that it was refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncertain: bool,
    /// The minimum delay before another attempt, as asked for by the server that refused the call.
    pub retry_after: Option<Span>,
    /// What a model used for an answer that failed; `None` if it reported nothing, and for other calls.
    pub usage: Option<ModelUsage>,
}

impl TaskFailure {
    /// Creates the failure of a call that certainly had no effect, and for which another attempt does not help.
    pub fn new(code: FlowCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, uncertain: false, retry_after: None, usage: None }
    }
}
