//! The pending work of a transition: answers that arrived, steps that are over, branches on their way. It is reported
//! here and done in `advance.rs`, so that no node and no review needs to know the consequences.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shared::JsonMap;
use shared::definition::Target;
use shared::error::{FlowCode, RunError};
use shared::id::{NodeId, Username};
use shared::run::Step;

use super::question::Subject;
use super::ruling::{CallRulings, Findings, Ruling};
use super::spent::Spent;

/// A branch on its way to a node.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    /// The number of the branch; of several that leave a node, the first keeps the number of the one that came.
    pub branch: u32,
    /// Where it goes.
    pub node: NodeId,
    /// What a person wants done differently there, in that visit only. A correction goes past `join: all`: the step
    /// runs again, nothing new has come together.
    pub correction: Option<String>,
    /// The nodes without visits left that sent it on.
    pub detours: Vec<NodeId>,
    /// The map whose item it is: neither visits nor a join hold it back.
    pub item_of: Option<u32>,
}

impl Arrival {
    /// A branch that simply goes on.
    pub(super) fn at(branch: u32, node: NodeId) -> Self {
        Self { branch, node, correction: None, detours: Vec::new(), item_of: None }
    }
}

/// A step that is over, with its branch, which is nowhere until this is carried out.
#[derive(Debug)]
pub(super) struct EndedStep {
    pub branch: u32,
    /// The visit that is over; its status is set when this is carried out.
    pub step: Step,
    /// What came of it.
    pub end: StepEnd,
}

/// How a step ended.
#[derive(Debug)]
pub(super) enum StepEnd {
    /// It is done: it writes these keys, and its branch leaves along `next`.
    Finished {
        /// The state keys.
        writes: JsonMap,
    },
    /// It is done, and its branch leaves along these of its edges.
    Chose {
        /// The targets that were chosen, of those that the node's `next` allows.
        targets: Vec<Target>,
    },
    /// It is done, and its branch goes to a node that is not its `next`.
    LeftFor {
        /// The node, beside its own.
        node: NodeId,
    },
    /// It is done, and a step before is to run again.
    Corrects {
        /// The node of that step; none where there is none any more.
        node: Option<NodeId>,
        /// What is to be different.
        message: String,
    },
    /// A flow has ended, and this is given of it.
    Returned {
        /// By state key.
        output: JsonMap,
    },
    /// It failed: its failure policy says what happens.
    Failed {
        /// The error of the last try.
        error: RunError,
    },
    /// It failed, and its flow with it, whatever its failure policy says.
    Stopped {
        /// The error with which the flow fails.
        error: RunError,
    },
}

/// The answer to a question, on its way to what waits for it.
#[derive(Debug)]
pub(super) struct Answered {
    /// What waits for it.
    pub subject: Subject,
    pub answer: QuestionAnswer,
}

/// What came of a question, whoever answered it.
#[derive(Debug)]
pub(super) enum QuestionAnswer {
    /// At a human node.
    Node(NodeAnswer),
    /// About calls that gates held back, that make a specialist, or that were lost.
    Calls {
        /// What becomes of each.
        rulings: CallRulings,
        /// What guardrails found in them.
        findings: Findings,
        /// What the agent is told beside.
        instructions: Option<String>,
    },
    /// To what a call asked by itself: its result, or why it has none.
    Reply(Reply),
    /// To a team: what came of a turn.
    Turn(Box<TurnEnded>),
    /// What an agent was to write, by state key.
    Written(JsonMap),
    /// About an action that is no call.
    Action {
        /// What becomes of it: it happens with these arguments, or it does not.
        ruling: Ruling<JsonMap>,
        /// What guardrails found in it.
        findings: Findings,
    },
    /// It could not be asked: the step fails.
    Failed(RunError),
    /// Nobody answered in time, and that is an error of the flow.
    TimedOut(RunError),
}

impl QuestionAnswer {
    /// What guardrails found in what it is about, where they have looked at it.
    pub(super) fn findings(&self) -> Option<&Findings> {
        match self {
            Self::Calls { findings, .. } | Self::Action { findings, .. } => Some(findings),
            Self::Node(_) | Self::Reply(_) | Self::Turn(_) | Self::Written(_) | Self::Failed(_) | Self::TimedOut(_) => {
                None
            }
        }
    }

    /// What whoever asked by a call is told; none where it is no such question, or has no answer.
    pub(super) fn reply(&self) -> Option<&Value> {
        match self {
            Self::Reply(Reply::Returns(result) | Reply::TakesOver { result, .. }) => Some(result),
            _ => None,
        }
    }
}

/// A turn of a team that is over.
#[derive(Debug)]
pub(super) struct TurnEnded {
    /// The member whose turn it is.
    pub agent: String,
    /// The round, from 1.
    pub round: u32,
    /// Whether it answered for all.
    pub as_lead: bool,
    /// What was used in it, by agent: another one may have taken it over.
    pub spent: BTreeMap<String, Spent>,
    /// The state keys that it wrote.
    pub wrote: BTreeSet<String>,
    /// How it ended.
    pub end: TurnEnd,
}

/// How a turn of a team ended.
#[derive(Debug)]
pub(super) enum TurnEnd {
    /// With an answer.
    Answered {
        /// The answer as the model wrote it.
        text: String,
        /// The same as JSON, where the agent answers in JSON.
        value: Option<Value>,
    },
    /// People or guardrails did not let it begin.
    Refused(RunError),
    /// It failed, and so does the team's step.
    Failed(RunError),
}

/// What came of what a call asked by itself.
#[derive(Debug)]
pub(super) enum Reply {
    /// The call returns this.
    Returns(Value),
    /// It has no result, for this reason.
    Fails(FlowCode, String),
    /// The agent that asked does not go on.
    TakesOver {
        /// What is told of its call.
        result: Value,
        /// What becomes of its step.
        then: Takeover,
    },
}

/// What becomes of the step of an agent that does not go on.
#[derive(Debug)]
pub(super) enum Takeover {
    /// Somebody answers in its place.
    Answers {
        /// What they say.
        answer: String,
    },
    /// Somebody writes what it was to write.
    Writes {
        /// Who took over, and so writes.
        by: Vec<Username>,
    },
    /// Another agent answers in its place.
    GivesTo {
        /// The name of that agent, which the flow must have.
        agent: String,
        /// What it is told.
        instructions: String,
    },
    /// The step fails.
    Stops {
        /// Why the step fails, as the log says it.
        reason: String,
    },
}

/// The answer at a human node.
#[derive(Debug)]
pub(super) struct NodeAnswer {
    /// What flows see of it: `decision`, and `decisions["<node>"]`.
    pub decision: Value,
    /// In a few words, for the list of steps.
    pub note: Option<String>,
    /// Where the branch goes, and what the node writes.
    pub then: Then,
}

/// What follows from an answer at a human node.
#[derive(Debug)]
pub(super) enum Then {
    /// It goes on, with these values.
    GoOn {
        /// The values of the decision's edits, by state key.
        edits: JsonMap,
    },
    /// It goes on, with a text for the node's keys.
    Write {
        /// The free text, which goes to each of the node's write keys that no edit sets.
        text: String,
        /// The edits beside.
        edits: JsonMap,
    },
    /// The step before runs again.
    Correct {
        /// What is to be different.
        message: String,
    },
    /// The flow ends, or goes to `on_reject`.
    Stop {
        /// The reason that was given.
        message: String,
    },
    /// It goes to a node that is not its `next`.
    Goto(NodeId),
}
