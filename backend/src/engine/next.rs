//! The pending work of a transition: answers that arrived, steps that are over, branches on their way. It is reported
//! here and done in `advance.rs`, so that no node and no review needs to know the consequences.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shared::JsonMap;
use shared::definition::Target;
use shared::error::{FlowCode, FlowError};
use shared::id::{NodeId, Username};
use shared::run::Step;

use super::question::Subject;
use super::ruling::{CallRulings, Findings, Ruling};
use super::usage::Spent;

/// A branch on its way to a node.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    /// The number of the branch. If several branches leave a node, the first keeps the number of the one that entered
    /// it.
    pub branch: u32,
    pub node: NodeId,
    /// A person's correction, for that visit only; `None` for an ordinary arrival. It bypasses `join: all`, since the
    /// step only runs again.
    pub correction: Option<String>,
    /// The nodes without visits left that redirected it.
    pub detours: Vec<NodeId>,
    /// The branch of the map whose item it is: visit limits and joins do not apply. `None` if it is no item.
    pub item_of: Option<u32>,
}

impl Arrival {
    /// Creates an ordinary arrival.
    pub(super) fn at(branch: u32, node: NodeId) -> Self {
        Self { branch, node, correction: None, detours: Vec::new(), item_of: None }
    }
}

/// A step that has ended. Its branch is not in the state until this is processed.
#[derive(Debug)]
pub(super) struct EndedStep {
    pub branch: u32,
    /// The visit that has ended; its status is set when this is processed.
    pub step: Step,
    pub end: StepEnd,
}

#[derive(Debug)]
pub(super) enum StepEnd {
    /// It is completed: it writes these keys, and its branch leaves along `next`.
    Finished { writes: JsonMap },
    /// It is completed, and its branch leaves along some of its edges.
    Chose {
        /// The targets that were chosen, of those that the node's `next` allows.
        targets: Vec<Target>,
    },
    /// It is completed, and its branch goes to a node outside of its `next`.
    LeftFor {
        /// The node, in the same flow.
        node: NodeId,
    },
    /// It is completed, and the step that it corrects runs again.
    Corrects {
        /// The node of that step; `None` if the flow no longer has one.
        node: Option<NodeId>,
        message: String,
    },
    /// It is the end of a flow, whose output is returned.
    Returned { output: JsonMap },
    /// It failed, and its failure policy applies.
    Failed {
        /// The error of the last attempt.
        error: FlowError,
    },
    /// It failed, and its flow with it, whatever its failure policy says.
    Stopped {
        /// The error with which the flow fails.
        error: FlowError,
    },
}

/// The answer to a question, on its way to what waits for it.
#[derive(Debug)]
pub(super) struct Answered {
    /// What waits for the answer.
    pub subject: Subject,
    pub answer: QuestionAnswer,
}

/// The answer to a question, whoever gave it.
#[derive(Debug)]
pub(super) enum QuestionAnswer {
    /// An answer at a human node.
    Node(NodeAnswer),
    /// A decision about calls that gates held back, that create a specialist, or that were lost.
    Calls {
        /// The ruling on each call, by its id.
        rulings: CallRulings,
        /// What guardrails found in them.
        findings: Findings,
        /// Additional instructions to the agent.
        instructions: Option<String>,
    },
    /// A reply to a question that a call asked (the result of the call, or why it has none), and what guardrails found in
    /// the action that it approves.
    Reply(Reply, Findings),
    /// The end of a turn, for its team.
    Turn(Box<TurnEnded>),
    /// The output that a person wrote in place of an agent, by state key.
    Written(JsonMap),
    /// A decision about an action other than a call.
    Action {
        /// The ruling, with the arguments of the action if it happens.
        ruling: Ruling<JsonMap>,
        /// What guardrails found in it.
        findings: Findings,
    },
    /// The question could not be asked, or was withdrawn without a reply: the step fails.
    Failed(FlowError),
    /// Nobody answered in time, and that is an error of the flow.
    TimedOut(FlowError),
}

impl QuestionAnswer {
    /// Returns the findings of guardrails, if the answer is a decision about calls or other actions.
    pub(super) fn findings(&self) -> Option<&Findings> {
        match self {
            Self::Calls { findings, .. } | Self::Action { findings, .. } | Self::Reply(_, findings) => Some(findings),
            Self::Node(_) | Self::Turn(_) | Self::Written(_) | Self::Failed(_) | Self::TimedOut(_) => None,
        }
    }

    /// Returns the result of the call that asked; `None` if no call asked, or if it has no result.
    pub(super) fn reply(&self) -> Option<&Value> {
        match self {
            Self::Reply(Reply::Returns(result) | Reply::TakesOver { result, .. }, _) => Some(result),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct TurnEnded {
    /// The member whose turn it is.
    pub agent: String,
    /// The round, from 1.
    pub round: u32,
    /// Whether it answered for the whole team.
    pub as_lead: bool,
    /// The usage in the turn, by agent: another one may have taken it over.
    pub spent: BTreeMap<String, Spent>,
    /// The usage of agents that worked for them, by agent.
    pub delegated: BTreeMap<String, Spent>,
    /// The state keys that it wrote.
    pub wrote: BTreeSet<String>,
    pub end: TurnEnd,
}

#[derive(Debug)]
pub(super) enum TurnEnd {
    Answered {
        /// The answer as the model wrote it.
        text: String,
        /// The answer as JSON; `None` if the agent has no schema.
        value: Option<Value>,
    },
    /// People or guardrails did not let it begin.
    Refused(FlowError),
    /// It failed, and so does the team's step.
    Failed(FlowError),
}

/// The reply to a question that a call asked.
#[derive(Debug)]
pub(super) enum Reply {
    /// The call returns this.
    Returns(Value),
    /// The call has no result, for this reason.
    Fails(FlowCode, String),
    /// The agent that asked does not continue its step.
    TakesOver {
        /// The result of its call, for the log.
        result: Value,
        /// How its step goes on.
        then: Takeover,
    },
}

/// How the step of an agent that does not continue goes on.
#[derive(Debug)]
pub(super) enum Takeover {
    /// Somebody answers in its place.
    Answers { answer: String },
    /// Somebody writes the output of the step.
    Writes {
        /// The people who took over, and so write.
        by: Vec<Username>,
    },
    /// Another agent answers in its place.
    GivesTo {
        /// The name of that agent, which the flow must have.
        agent: String,
        /// Instructions to that agent.
        instructions: String,
    },
    /// The step fails.
    Stops {
        /// Why the step fails, as the log says it.
        reason: String,
    },
}

#[derive(Debug)]
pub(super) struct NodeAnswer {
    /// The decision as templates and conditions see it: `decision`, and `decisions["<node>"]`.
    pub decision: Value,
    /// A few words for the list of steps.
    pub note: String,
    /// Where the branch goes, and what the node writes.
    pub then: Then,
}

/// What follows from an answer at a human node.
#[derive(Debug)]
pub(super) enum Then {
    /// The branch continues, with these values.
    GoOn {
        /// The values of the decision's edits, by state key.
        edits: JsonMap,
    },
    /// The branch continues, with a text for the node's write keys.
    Write {
        /// The free text, which goes to each of the node's write keys that no edit sets.
        text: String,
        /// The values of the decision's edits, by state key.
        edits: JsonMap,
    },
    /// The source step runs again.
    Correct { message: String },
    /// The flow ends, or goes to `on_reject`.
    Stop {
        /// The reason that was given.
        message: String,
    },
    /// The branch goes to a node outside of its `next`.
    Goto(NodeId),
}
