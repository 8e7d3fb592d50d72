//! The result of the engine: everything that must be committed together.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shared::access::{Access, Principal};
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
    /// The grants that may cover its calls; empty if the flow has no gates.
    pub grants: Vec<Granted>,
    /// The state that was stored last, perhaps in an older format.
    pub state: RunState,
    /// Its pending reviews, and whichever other review the input names.
    pub reviews: BTreeMap<ReviewId, Review>,
    /// The users and their roles; `None` if the flow does not need them ([`crate::flow::Compiled::needs_people`]).
    pub people: Option<Arc<[Principal]>>,
    /// The newest feedback on its agents, as far as they receive it ([`crate::flow::Compiled::wanted_feedback`]).
    pub feedback: Vec<Feedback>,
}

impl Snapshot {
    /// Creates a snapshot with some reviews of the run, and without grants, people or feedback.
    pub fn new(state: RunState, reviews: impl IntoIterator<Item = Review>) -> Self {
        let reviews = reviews.into_iter().map(|review| (review.id, review)).collect();
        Self { grants: Vec::new(), state, reviews, people: None, feedback: Vec::new() }
    }

    /// Applies the state and the reviews of a transition, for the next input.
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

/// A transition of the run: all of it is committed, or nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The run after it. Its revision is one more than before, or the same if there are only entries.
    pub state: RunState,
    /// Reviews that are new or have changed, whole.
    pub reviews: Vec<Review>,
    /// Steps that are new or have changed, whole.
    pub steps: Vec<Step>,
    /// New tasks, and tasks that are due at another time than before (same id: the retry of a step).
    pub tasks: Vec<Task>,
    /// Tasks that have ended, whether they are done or no longer needed.
    pub ended_tasks: Vec<TaskId>,
    /// Tasks of calls that nothing waits for any more: no worker may claim them. A worker that holds one may still
    /// report its result, once.
    pub abandoned_tasks: Vec<TaskId>,
    /// The log entries, in order.
    pub events: Vec<Event>,
    /// Grants that were given.
    pub given: Vec<Grant>,
    /// Grants that were used: with these alone, a replay gives the same.
    pub used: Vec<Granted>,
    /// The users on whom it depends, of those who existed: with these alone, a replay gives the same. `None` if it
    /// depends on nobody.
    pub people_used: Option<Arc<[Principal]>>,
    /// The feedback that there was, if an agent received some of it.
    pub feedback_used: Vec<Feedback>,
    /// Feedback that was given.
    pub feedback_given: Vec<Feedback>,
    /// The refusal of the input, if deadlines that had passed or lost votes were applied before it. The transition is
    /// committed, and then the sender gets the refusal.
    pub refused: Option<Refusal>,
}

/// Why an input has no effect. Nothing is committed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// It does not exist, or the person may not see it.
    #[error("not found")]
    NotFound,
    /// The person may see it, but not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The review has left `pending`.
    #[error("the review has already been resolved")]
    ReviewResolved(Box<Review>),
    /// The review's revision or digest is not the one that the decision names.
    #[error("the content has changed")]
    RevisionChanged(Box<Review>),
    /// The review is pending, but the program that answers is no longer asked.
    #[error("the time for this program to answer is over")]
    NoLongerAsked(Box<Review>),
    /// Somebody else has a claim that has not run out.
    #[error("someone else has claimed the review")]
    ReviewClaimed(Box<Review>),
    /// Guardrails must ask programs first; then the input is sent again with their answers. It never leaves the store.
    #[error("a guardrail has not been checked")]
    Unasked {
        /// What the programs are asked.
        inquiries: Vec<Inquiry>,
        /// When it is too late for their answers; `None` if there is no deadline.
        until: Option<Timestamp>,
    },
    /// It came in time, and a deadline passed while guardrails asked programs about it.
    #[error("{}", overtaken(*.until, .asked))]
    Overtaken {
        /// The refusal of the input after that.
        by: Box<Refusal>,
        /// The deadline that passed meanwhile.
        until: Timestamp,
        /// The guardrails, each with the host of its program.
        asked: Vec<String>,
    },
    /// The input is not valid.
    #[error("not valid")]
    Invalid(Vec<Mistake>),
    /// The correction is for a step without visits left.
    #[error("{0}")]
    VisitLimit(String),
    /// The input would change nothing.
    #[error("nothing has changed")]
    Unchanged,
    /// The run is over.
    #[error("the run is over")]
    RunOver,
    /// The task is done, has moved on to another attempt, or is no longer needed.
    #[error("the task is over")]
    TaskOver,
}

impl Refusal {
    /// Creates the refusal of an input about which programs must be asked first, without a deadline.
    pub(super) fn unasked(inquiries: Vec<Inquiry>) -> Self {
        Self::Unasked { inquiries, until: None }
    }

    /// Refuses what a person may not do, or may not even know of.
    pub(super) fn unless(access: Access) -> Result<(), Self> {
        match access {
            Access::Allowed => Ok(()),
            Access::Denied(why) => Err(Self::Forbidden(why.to_owned())),
            Access::Hidden => Err(Self::NotFound),
        }
    }

    /// Sets the deadline by which programs are asked. Other refusals stay as they are.
    pub(super) fn in_time(self, until: Option<Timestamp>) -> Self {
        match self {
            Self::Unasked { inquiries, .. } => Self::Unasked { inquiries, until },
            other => other,
        }
    }

    /// Returns the refusal inside an [`Self::Overtaken`]; other refusals stay as they are.
    pub fn met(self) -> Self {
        match self {
            Self::Overtaken { by, .. } => *by,
            other => other,
        }
    }

    /// Returns [`Self::Overtaken`] if the input came in time, but a deadline passed while programs were asked about it.
    /// Other refusals stay as they are.
    pub fn after_asking(self, until: Option<Timestamp>, asked: &[Inquiry]) -> Self {
        let ended_at = match &self {
            Self::ReviewResolved(review) => review.resolution.as_ref().map(|resolution| resolution.at),
            // The question has moved on to someone else.
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

/// Something that a worker executes, or a time that has to come.
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

/// The kind of a task. What a model or tool is told is in the run's state ([`super::Work`]), not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaskKind {
    /// A turn of an agent or of a judge.
    Model {
        /// The turn, from 1.
        turn: u32,
    },
    /// One tool call.
    Tool {
        /// The call's id in the step.
        call: String,
    },
    /// Asking a handler that is a program.
    Ask {
        /// The id of the question's review, which may not exist yet.
        review: ReviewId,
    },
    /// Asking programs for guardrails.
    #[serde(rename = "look")]
    Inquire {
        /// The id of the question's review, which may not exist yet.
        review: ReviewId,
    },
    /// The deadline of a review or of a handler, or the warning before it.
    Deadline {
        /// The id of the question's review, which may not exist yet.
        review: ReviewId,
    },
    /// The end of a `sleep`.
    Wake {
        /// The call's id in the step.
        call: String,
    },
}

impl TaskKind {
    /// Whether a worker calls something outside; otherwise, only its time has to come.
    pub fn is_call(&self) -> bool {
        matches!(self, Self::Model { .. } | Self::Tool { .. } | Self::Ask { .. } | Self::Inquire { .. })
    }
}
