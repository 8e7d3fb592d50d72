//! The result of the engine: everything that must be committed together.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shared::access::Principal;
use shared::error::Mistake;
use shared::feedback::Feedback;
use shared::grant::Grant;
use shared::id::{NodeId, ReviewId, RunId, StepId, TaskId};
use shared::log::Event;
use shared::review::Review;
use shared::run::Step;
use shared::time::Timestamp;

use super::state::RunState;
use crate::flow::guardrail::Inquiry;
use crate::flow::host_of;

/// A run as the store read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The grants that may count for its calls; none where the flow has no gates.
    pub grants: Vec<Granted>,
    /// The state that was stored last, perhaps in an older format.
    pub state: RunState,
    /// Its pending reviews, and whichever other review the input names.
    pub reviews: BTreeMap<ReviewId, Review>,
    /// The people who exist, with their roles; none where the flow does not need them
    /// ([`crate::flow::Compiled::needs_people`]).
    pub people: Option<Arc<[Principal]>>,
    /// The newest feedback on its agents, as far as they are told it ([`crate::flow::Compiled::wanted_feedback`]).
    pub feedback: Vec<Feedback>,
}

impl Snapshot {
    /// A run with these of its reviews, and nothing beside it.
    pub fn new(state: RunState, reviews: impl IntoIterator<Item = Review>) -> Self {
        let reviews = reviews.into_iter().map(|review| (review.id, review)).collect();
        Self { grants: Vec::new(), state, reviews, people: None, feedback: Vec::new() }
    }

    /// The run as it is after a transition with this state and these reviews, for the next input.
    pub fn fold(&mut self, state: RunState, reviews: Vec<Review>) {
        self.state = state;
        self.reviews.extend(reviews.into_iter().map(|review| (review.id, review)));
    }
}

/// A grant with the rights that its giver has now: it allows no more than they could.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Granted {
    /// The grant, as the decision gave it.
    pub grant: Grant,
    /// Who gave it, with the rights that they have in this transaction.
    pub giver: Principal,
}

/// A step of the engine: all of it is committed, or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The run after it; its revision is one more than before.
    pub state: RunState,
    /// Reviews that are new or have changed, whole.
    pub reviews: Vec<Review>,
    /// Steps that are new or have changed, whole.
    pub steps: Vec<Step>,
    /// New tasks, and tasks that are due at another time than before (same id: the retry of a step).
    pub tasks: Vec<Task>,
    /// Tasks that are over, whether done or of no use any more.
    pub ended_tasks: Vec<TaskId>,
    /// Calls whose run is over: nobody takes them up any more. What somebody says who has one is heard, once.
    pub abandoned_tasks: Vec<TaskId>,
    /// What the log tells, in order.
    pub events: Vec<Event>,
    /// Grants that were given.
    pub given: Vec<Grant>,
    /// Grants that were used: with these alone, a replay gives the same.
    pub used: Vec<Granted>,
    /// Whether it rests on the people who exist: a replay needs them then.
    pub people_asked: bool,
    /// Whether an agent was told feedback.
    pub feedback_told: bool,
    /// Feedback that was given.
    pub feedback_given: Vec<Feedback>,
    /// The answer to whoever sent the input, where it came too late: a deadline that had passed was applied first.
    /// The transition is to be committed, and then the refusal answered.
    pub refused: Option<Refusal>,
}

/// Why an input has no effect. Nothing is committed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Not there, or not to be seen.
    #[error("not found")]
    NotFound,
    /// Seen, but not allowed.
    #[error("{0}")]
    Forbidden(String),
    /// The review has left `pending`.
    #[error("the review has already been resolved")]
    ReviewResolved(Box<Review>),
    /// The content is not what the decision names.
    #[error("the content has changed")]
    RevisionChanged(Box<Review>),
    /// The review is pending, but whoever answers is not asked any more.
    #[error("the time for this program to answer is over")]
    NoLongerAsked(Box<Review>),
    /// Somebody else has a claim that has not run out.
    #[error("someone else has claimed the review")]
    ReviewClaimed(Box<Review>),
    /// Guardrails ask programs about it first; then it is to be sent again with what they say. It never leaves the
    /// store.
    #[error("a guardrail has not been checked")]
    Unasked {
        /// What is asked.
        inquiries: Vec<Inquiry>,
        /// When it is too late, whatever they say; none where it can wait.
        until: Option<Timestamp>,
    },
    /// It came in time, and a deadline passed while guardrails asked programs about it.
    #[error("{}", overtaken(*.until, .asked))]
    Overtaken {
        /// What it met then.
        by: Box<Refusal>,
        /// The deadline that passed meanwhile.
        until: Timestamp,
        /// The guardrails, each with the host of its program.
        asked: Vec<String>,
    },
    /// What was said does not fit.
    #[error("not valid")]
    Invalid(Vec<Mistake>),
    /// A correction of a step without visits left.
    #[error("{0}")]
    VisitLimit(String),
    /// Nothing follows from it.
    #[error("nothing has changed")]
    Unchanged,
    /// The run is over.
    #[error("the run is over")]
    RunOver,
    /// The task is done, has moved on to another attempt, or is of no use any more.
    #[error("the task is over")]
    TaskOver,
}

impl Refusal {
    /// What programs are to be asked, for as long as it takes.
    pub(super) fn unasked(inquiries: Vec<Inquiry>) -> Self {
        Self::Unasked { inquiries, until: None }
    }

    /// The same refusal; what programs are asked, they are asked until then.
    pub(super) fn in_time(self, until: Option<Timestamp>) -> Self {
        match self {
            Self::Unasked { inquiries, .. } => Self::Unasked { inquiries, until },
            other => other,
        }
    }

    /// What it met in the end.
    pub fn met(self) -> Self {
        match self {
            Self::Overtaken { by, .. } => *by,
            other => other,
        }
    }

    /// The same refusal of what came in time, where that is over because a deadline has passed while these were asked.
    pub fn after_asking(self, until: Option<Timestamp>, asked: &[Inquiry]) -> Self {
        let ended_at = match &self {
            Self::ReviewResolved(review) => review.resolution.as_ref().map(|resolution| resolution.at),
            // It waits for others by now.
            Self::NoLongerAsked(_) => until,
            _ => None,
        };
        let Some(until) = until.filter(|until| ended_at.is_some_and(|at| at >= *until)) else { return self };
        let mut names: Vec<String> = Vec::new();
        for Inquiry { guardrail, webhook, .. } in asked {
            let host = host_of(&webhook.url).unwrap_or_else(|| "webhook".to_owned());
            let name = format!("`{guardrail}` ({host})");
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Self::Overtaken { by: Box::new(self), until, asked: names }
    }
}

fn overtaken(until: Timestamp, asked: &[String]) -> String {
    let asked = asked.join(", ");
    format!("this came before the deadline {until}, which passed while guardrails were checked: {asked}")
}

/// Something that a worker does, or that happens at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The task's id, which stays the same when the task is tried again or moved.
    pub id: TaskId,
    /// The run whose state says what is to be done.
    pub run: RunId,
    /// The visit of a node that the task belongs to.
    pub step: StepId,
    /// The step's node, for logs.
    pub node: NodeId,
    /// What is to be done.
    pub kind: TaskKind,
    /// When it is due: no worker claims it earlier.
    pub due_at: Timestamp,
    /// Whether it may be done again after its worker was lost.
    pub repeatable: bool,
}

/// What a task is. What a model or tool is to be told is in the run's state ([`super::Work`]), not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskKind {
    /// The next turn of an agent's step.
    Model {
        /// The turn, from 1.
        turn: u32,
    },
    /// One tool call.
    Tool {
        /// The call's id in the step.
        call: String,
    },
    /// What a handler is asked that is a program.
    Ask {
        /// The review that is, or will be, on the record of it.
        review: ReviewId,
    },
    /// What programs are asked by guardrails.
    Look {
        /// The review that is, or will be, on the record of it.
        review: ReviewId,
    },
    /// A review's deadline.
    Deadline {
        /// The review that is, or will be, on the record of what has the deadline.
        review: ReviewId,
    },
    /// The end of a `sleep`.
    Wake {
        /// The call's id in the step.
        call: String,
    },
}

impl TaskKind {
    /// Whether a worker calls something outside; else the time alone is the answer.
    pub fn is_call(&self) -> bool {
        matches!(self, Self::Model { .. } | Self::Tool { .. } | Self::Ask { .. } | Self::Look { .. })
    }
}
