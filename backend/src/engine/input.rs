//! The inputs of the engine. An input names what it answers: a result its task and attempt, a decision its review,
//! revision and digest, a timer its task.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::access::{Involvement, Principal};
use shared::decision::{DecisionRequest, ProgramAnswer, Via};
use shared::error::{FlowCode, RunError};
use shared::feedback::{Feedback, NewFeedback};
use shared::id::{FlowId, ReviewId, RunId, TaskId, Username};
use shared::run::Context;
use shared::time::Span;

use super::looked::Looked;
use crate::limits::{Exceeded, Size};

/// The start of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The new run's id.
    pub run: RunId,
    /// The flow to run; that of a run that carries a question is not stored, and its name begins with `question-`.
    pub flow: FlowId,
    /// The version of it.
    pub version: u32,
    /// Checked against the flow's `input` by the engine.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub input: JsonMap,
    /// User, tenant, session and metadata of the run, which templates see as `context`.
    #[serde(default, skip_serializing_if = "Context::is_empty")]
    pub context: Context,
    /// Whether no decision replaces what `context.metadata` says here. Not so in launches that were recorded before
    /// this was the rule: their runs are replayed as they went.
    #[serde(default)]
    pub keeps_metadata: bool,
    /// Who starts it.
    pub requested_by: Username,
    /// The people who exist, where the flow needs them; recorded beside it.
    #[serde(skip)]
    pub people: Option<Arc<[Principal]>>,
    /// The newest feedback on its agents, where they are told it; recorded beside it.
    #[serde(skip)]
    pub feedback: Vec<Feedback>,
}

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
        /// What they said.
        request: Box<DecisionRequest>,
        /// What programs said of it that guardrails ask.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        looked: Vec<Looked>,
    },
    /// A model answered.
    ModelAnswered {
        /// The task that called the model, for an agent's turn or for a judge.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// What it said.
        answer: ModelAnswer,
    },
    /// A tool returned.
    ToolReturned {
        /// The task of the tool call, which ends with the result.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// What the tool returned, as JSON: an agent is told it, a tool node writes it.
        result: Value,
    },
    /// A program that was asked as a handler has answered.
    HandlerAnswered {
        /// The task by which the program was asked.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// The digest of what it was shown.
        digest: String,
        /// What it said.
        answer: HandlerAnswer,
    },
    /// Programs have answered what guardrails asked.
    GuardrailsAnswered {
        /// The task by which all of these programs were asked.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// What they said.
        looked: Vec<Looked>,
    },
    /// A program that was asked as a handler answers by itself, whatever it said when it was asked.
    CallBack {
        /// The review that it answers; the program must still be the handler that is asked.
        review: ReviewId,
        /// The task by which it was asked.
        task: TaskId,
        /// What it says.
        answer: Box<ProgramAnswer>,
        /// What programs said of it that guardrails ask.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        looked: Vec<Looked>,
    },
    /// A call of a model, a tool or a handler failed.
    TaskFailed {
        /// The task of the call: of a model, a tool, a handler, or the programs of guardrails.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// What the worker says of the failure, and whether another try may help.
        failure: TaskFailure,
    },
    /// A call that may not be repeated was lost in flight: its worker is gone, and nobody knows whether it happened.
    TaskLost {
        /// The task of the tool call that was lost.
        task: TaskId,
        /// The attempt that was lost.
        attempt: u32,
    },
    /// A task of the run can never be carried out by this server: the run fails, without a look at its flow.
    Fail {
        /// The task that cannot be carried out.
        task: TaskId,
        /// The attempt that the worker held.
        attempt: u32,
        /// The error that ends the step.
        error: RunError,
    },
    /// The time of a timer has come (a deadline or a sleep).
    Due {
        /// The timer's task.
        task: TaskId,
    },
    /// Somebody's rights have changed: those who may vote are looked at again.
    Recount,
    /// Somebody cancels the run.
    Cancel {
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The reason, in the words of the person.
        reason: Option<String>,
    },
    /// Somebody works on a review; a lease that runs out.
    Claim {
        /// The review that they claim; it must be pending, and not claimed by somebody else.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// The channel through which it came, for the record.
        via: Via,
    },
    /// Somebody no longer does.
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
        /// Them, with the rights of the transaction; none where nobody of that name may log in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        person: Option<Principal>,
    },
    /// Somebody says something beside a review.
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
    /// Somebody takes a review back: what it asks is not to happen.
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
    /// Somebody says how an agent of the run worked.
    Feedback {
        /// The person, with the rights that they have in the transaction.
        by: Principal,
        /// Whether they may decide one of the run's reviews, or have.
        involvement: Involvement,
        /// What they say.
        feedback: NewFeedback,
    },
    /// Somebody opened a review; for the audit only.
    View {
        /// The review that they opened, whether pending or not.
        review: ReviewId,
        /// The person, with the rights that they have in the transaction.
        by: Principal,
    },
}

impl Input {
    /// A program answers by itself, of whom guardrails have asked nothing yet.
    pub fn call_back(review: ReviewId, task: TaskId, answer: ProgramAnswer) -> Self {
        Self::CallBack { review, task, answer: Box::new(answer), looked: Vec::new() }
    }

    /// Somebody decides, of whom guardrails have asked nothing yet.
    pub fn decide(review: ReviewId, by: Principal, via: Via, request: DecisionRequest) -> Self {
        Self::Decide { review, by, via, request: Box::new(request), looked: Vec::new() }
    }

    /// The review that it speaks of.
    pub fn review(&self) -> Option<ReviewId> {
        match self {
            Self::Decide { review, .. }
            | Self::Claim { review, .. }
            | Self::Release { review, .. }
            | Self::Delegate { review, .. }
            | Self::Comment { review, .. }
            | Self::Withdraw { review, .. }
            | Self::CallBack { review, .. }
            | Self::View { review, .. } => Some(*review),
            _ => None,
        }
    }

    /// The task that it answers, with the attempt where a worker held one.
    pub fn task(&self) -> Option<(TaskId, Option<u32>)> {
        match self {
            Self::ModelAnswered { task, attempt, .. }
            | Self::ToolReturned { task, attempt, .. }
            | Self::HandlerAnswered { task, attempt, .. }
            | Self::GuardrailsAnswered { task, attempt, .. }
            | Self::TaskFailed { task, attempt, .. }
            | Self::TaskLost { task, attempt }
            | Self::Fail { task, attempt, .. } => Some((*task, Some(*attempt))),
            Self::Due { task } => Some((*task, None)),
            _ => None,
        }
    }

    /// Who acts; nobody for workers and timers.
    pub fn by(&self) -> Option<&Principal> {
        match self {
            Self::Decide { by, .. }
            | Self::Feedback { by, .. }
            | Self::Cancel { by, .. }
            | Self::Claim { by, .. }
            | Self::Release { by, .. }
            | Self::Delegate { by, .. }
            | Self::Comment { by, .. }
            | Self::Withdraw { by, .. }
            | Self::View { by, .. } => Some(by),
            _ => None,
        }
    }

    /// The same, for the store to put in the rights of its transaction.
    pub fn by_mut(&mut self) -> Option<&mut Principal> {
        match self {
            Self::Decide { by, .. }
            | Self::Feedback { by, .. }
            | Self::Cancel { by, .. }
            | Self::Claim { by, .. }
            | Self::Release { by, .. }
            | Self::Delegate { by, .. }
            | Self::Comment { by, .. }
            | Self::Withdraw { by, .. }
            | Self::View { by, .. } => Some(by),
            _ => None,
        }
    }
}

/// What a model said in one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// Its text; may be empty beside calls.
    pub text: String,
    /// The tools that it wants to call, in its order.
    pub calls: Vec<ModelToolCall>,
    /// Tokens in and out.
    pub tokens: u64,
    /// In US dollars, worked out when it came; 0 where the price is not known.
    pub cost_usd: f64,
    /// How long it took.
    pub duration_ms: u64,
}

impl ModelAnswer {
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

/// What a program said that was asked as a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum HandlerAnswer {
    /// It decides; the decision is checked as a person's is.
    Decides {
        /// Its decision, as it was sent.
        answer: Box<ProgramAnswer>,
    },
    /// It answers later.
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
    pub arguments: Value,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFailure {
    /// `MODEL_FAILED`, `TOOL_FAILED` or `HANDLER_FAILED`.
    pub code: FlowCode,
    /// What went wrong, in words for people; where the step fails, it is the message of its error.
    pub message: String,
    /// Whether trying again could help.
    pub retryable: bool,
    /// Whether the call may have taken effect all the same: it was sent, and no answer says that it was refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncertain: bool,
    /// How long whoever refused the call wants to be left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
}

impl TaskFailure {
    /// A call that certainly had no effect, and that is of no use to try again.
    pub fn new(code: FlowCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, uncertain: false, retry_after: None }
    }
}
