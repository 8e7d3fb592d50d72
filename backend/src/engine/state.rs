//! The state of a run: everything that the engine needs to continue, and nothing that can be derived from it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::author::Author;
use shared::error::FlowError;
use shared::id::{FlowId, NodeId, ReviewId, RunId, TaskId, TokenId, Username};
use shared::run::{Activity, AgentCall, Context, Step};
use shared::time::Timestamp;

use super::carrier;
use super::conversation::{CallingAgent, Conversation, ToolCall};
use super::phase::{Branch, Phase};
use super::question::{Question, Subject};

/// A run's state, as it is stored.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The number of this format; a server never claims or commits a newer one.
    pub format: u32,
    /// The run's id, which people see unless the run only carries a question ([`RunState::shown_id`]).
    pub id: RunId,
    /// The flow that runs. If the run only carries a question, its flow is not stored.
    pub flow: FlowId,
    /// The flow's title when the run started.
    pub title: String,
    /// What the input is about, as lists show it. It is kept, since lists are read without large values.
    pub topic: Option<String>,
    /// The flow's version.
    pub version: u32,
    /// The number of transitions so far.
    pub revision: u64,
    /// The user who started the run.
    pub requested_by: Username,
    /// The token with which they started it; `None` for a session, and for runs of older versions.
    pub token: Option<TokenId>,
    /// The time of the launch.
    pub created_at: Timestamp,
    /// The time of the last transition.
    pub updated_at: Timestamp,
    /// The input of the run, with defaults.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "shared::user_data::members")]
    pub input: JsonMap,
    /// User, tenant and session that the launch gave, and metadata, to which decisions add.
    #[serde(default, skip_serializing_if = "shared::is_default")]
    pub context: Context,
    /// The keys of `context.metadata` that the launch gave, which no decision replaces. `None` for runs from before this
    /// rule: of these, it is not known what decisions have added.
    pub launch_metadata: Option<BTreeSet<String>>,
    /// The values of the run's own flow, by state key.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "shared::user_data::members")]
    pub keys: JsonMap,
    /// The executions of nested flows that are under way, by the calls that lead there ([`NodeId::frame`]). What
    /// belongs to one node (visits, decisions, …) is stored with that of all nodes, under the node's full id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub frames: BTreeMap<String, Frame>,
    /// The newest decision of each human node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(serialize_with = "shared::user_data::members")]
    pub decisions: BTreeMap<NodeId, Value>,
    /// Who has decided at each node that others are to check (`not_same_as`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deciders: BTreeMap<NodeId, BTreeSet<Username>>,
    /// The number of visits of each node so far.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub visits: BTreeMap<NodeId, u32>,
    /// The last answer of each agent node that a person may correct.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<NodeId, String>,
    /// The branches that are alive, by number in the order in which they began.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub branches: BTreeMap<u32, Branch>,
    /// The questions that are not answered yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The next number, for a branch or for the order of arrivals.
    pub next_branch: u32,
    /// The newest model calls, at most [`Usage::MAX_CALLS`](shared::run::Usage::MAX_CALLS).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_calls: Vec<AgentCall>,
    /// The tokens of all model calls.
    #[serde(default)]
    pub total_tokens: u64,
    /// The cost of all model calls, in US dollars.
    #[serde(default)]
    pub total_cost_usd: f64,
    /// The number of calls between agents so far, including those of agents by tool nodes.
    #[serde(default)]
    pub tasks_begun: u32,
    /// How the run ended; `None` until then.
    pub outcome: Option<RunOutcome>,
    /// The calls in flight that nothing waits for any more, until their results are recorded or cannot come
    /// ([`RunState::forget_unanswered`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unanswered: BTreeMap<TaskId, Unanswered>,
}

impl RunState {
    /// The number of the format that this server writes. Since 2, calls have their requests; since 3, questions are
    /// stored beside what waits for them; since 4, a question may be about an agent that begins, or about an output;
    /// since 5, a question says whether its review is pending; since 6, agents work for others, and something may be
    /// handed over; since 7, a channel may be asked, and an agent's limits hold for its step; since 8, guardrails may
    /// ask programs about an approval; since 9, a call may be asked about at each of its gates; since 10, a
    /// conversation counts only its own usage (`super::upgrade`); since 11, guardrails may ask programs about the
    /// outcome of votes; since 12, a question may be about calls that whoever asks makes itself.
    pub const FORMAT: u32 = 12;

    /// Returns who started the run.
    pub fn launched_by(&self) -> Author {
        Author { name: self.requested_by.clone(), token: self.token }
    }

    /// Returns the id by which people know the run; `None` for a run that only carries a question (`super::carrier`).
    pub fn shown_id(&self) -> Option<RunId> {
        (!carrier::is_carrier(&self.flow, self.version)).then_some(self.id)
    }

    /// Returns the state keys of the frame that a node is in.
    pub fn keys_of(&self, node: &NodeId) -> &JsonMap {
        self.frames.get(node.frame()).map_or(&self.keys, |frame| &frame.keys)
    }

    /// Returns the input of the frame that a node is in.
    pub fn input_of(&self, node: &NodeId) -> &JsonMap {
        self.frames.get(node.frame()).map_or(&self.input, |frame| &frame.input)
    }

    /// Returns the state keys like [`Self::keys_of`], to change them.
    pub fn keys_of_mut(&mut self, node: &NodeId) -> &mut JsonMap {
        match self.frames.get_mut(node.frame()) {
            Some(frame) => &mut frame.keys,
            None => &mut self.keys,
        }
    }

    /// Returns the tasks that the run waits for: calls, sleeps and timers.
    pub fn open_tasks(&self) -> impl Iterator<Item = TaskId> {
        let own = self.branches.values().flat_map(|branch| branch.phase.tasks());
        let asked = self.questions.iter().filter_map(Question::task);
        let timers = self.questions.iter().filter_map(|question| question.timer).map(|timer| timer.task);
        own.chain(asked).map(|(task, _)| task).chain(timers)
    }

    /// Returns the question of a review, until it is answered.
    pub fn question(&self, review: ReviewId) -> Option<&Question> {
        self.questions.iter().find(|question| question.review == review)
    }

    /// Returns the question like [`Self::question`], to change it.
    pub fn question_mut(&mut self, review: ReviewId) -> Option<&mut Question> {
        self.questions.iter_mut().find(|question| question.review == review)
    }

    /// Returns the questions whose answers a branch waits for.
    pub fn questions_of(&self, branch: u32) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(move |question| question.subject.branch() == Some(branch))
    }

    pub(super) fn phase(&self, branch: u32) -> Option<&Phase> {
        self.branches.get(&branch).map(|branch| &branch.phase)
    }

    /// Returns the phase of the branch that waits for an answer about this subject.
    pub(super) fn phase_of(&self, subject: &Subject) -> Option<&Phase> {
        self.phase(subject.branch()?)
    }

    /// Returns the visit in which a question is asked.
    pub fn step_of<'s>(&'s self, subject: &'s Subject) -> Option<&'s Step> {
        match subject {
            Subject::Handoff { step, .. } => Some(step),
            _ => self.phase(subject.branch()?)?.step(),
        }
    }

    /// Returns the calls that a question is about, and the agent that made them.
    pub fn calls_of<'s>(
        &'s self,
        subject: &'s Subject,
    ) -> (Option<CallingAgent<'s>>, impl Iterator<Item = &'s ToolCall>) {
        let (agent, calls) = match (subject, self.phase_of(subject)) {
            (Subject::Handoff { agent, call, .. }, _) => {
                let agent = agent.as_deref().map(|name| CallingAgent { name, gates_of: name });
                (agent, std::slice::from_ref(&**call))
            }
            (_, phase) => {
                let agent = phase.and_then(Phase::conversation).map(Conversation::calling_agent);
                (agent, phase.map(Phase::calls).unwrap_or_default())
            }
        };
        let is_one = |call: &&ToolCall| subject.branch().is_none() || subject.calls().contains(&call.id);
        (agent, calls.iter().filter(is_one))
    }

    /// Derives what each branch does, in the words of the API.
    pub fn activities(&self) -> BTreeMap<u32, Activity> {
        let mut asked: BTreeMap<u32, Vec<&Question>> = BTreeMap::new();
        for question in &self.questions {
            if let Some(branch) = question.subject.branch() {
                asked.entry(branch).or_default().push(question);
            }
        }
        let mut activities: BTreeMap<u32, Activity> = BTreeMap::new();
        // A branch that works for another has a higher number, so it is handled first.
        for (number, branch) in self.branches.iter().rev() {
            let asked = asked.get(number).map(Vec::as_slice).unwrap_or_default();
            let own = branch.phase.activity(asked);
            let mut under = self.children_of(*number).filter_map(|child| activities.get(&child).copied());
            let all = under.by_ref().chain([own]).reduce(busier).unwrap_or(own);
            activities.insert(*number, all);
        }
        activities
    }

    /// Returns the branch that waits for the result of a branch, if there is one.
    pub fn parent_of(&self, branch: u32) -> Option<u32> {
        self.phase(branch)?.works_for()
    }

    /// Returns the outermost branch that a branch works for; the branch itself if it works for none.
    pub fn root_of(&self, branch: u32) -> u32 {
        std::iter::successors(Some(branch), |branch| self.parent_of(*branch)).last().unwrap_or(branch)
    }

    /// Returns the branches that work directly for a branch.
    pub fn children_of(&self, branch: u32) -> impl Iterator<Item = u32> {
        let works = move |(_, other): &(&u32, &Branch)| other.phase.works_for() == Some(branch);
        self.branches.iter().filter(works).map(|(number, _)| *number)
    }

    /// Returns the branch of the team that a branch works in: itself, or one that it works for.
    pub fn team_of(&self, branch: u32) -> Option<u32> {
        let mut up = std::iter::successors(Some(branch), |branch| self.parent_of(*branch));
        up.find(|branch| self.phase(*branch).and_then(Phase::team).is_some())
    }

    /// Removes a frame, with the visits, decisions and answers of its nodes.
    pub fn end_frame(&mut self, frame: &str) {
        self.frames.remove(frame);
        let stays = |node: &NodeId| !node.is_inside(frame);
        self.decisions.retain(|node, _| stays(node));
        self.deciders.retain(|node, _| stays(node));
        self.visits.retain(|node, _| stays(node));
        self.answers.retain(|node, _| stays(node));
    }
}

/// Returns the activity that stands for both: retrying before running, running before waiting, waiting before joining.
fn busier(one: Activity, other: Activity) -> Activity {
    let rank = |activity: &Activity| match activity {
        Activity::Joining => 0,
        Activity::Waiting => 1,
        Activity::Running => 2,
        Activity::Retrying => 3,
    };
    std::cmp::max_by_key(one, other, rank)
}

/// One execution of a nested flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The input of the call.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "shared::user_data::members")]
    pub input: JsonMap,
    /// Its values, by state key.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "shared::user_data::members")]
    pub keys: JsonMap,
    /// A person's correction, for this execution only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RunOutcome {
    /// It completed: no branch was left.
    Completed {
        /// The time of the end.
        at: Timestamp,
    },
    /// It failed.
    Failed {
        /// The time of the end.
        at: Timestamp,
        /// The error that no failure policy handled.
        error: FlowError,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// The time of the end.
        at: Timestamp,
        /// The person who cancelled it.
        by: Username,
        /// The token with which they cancelled it; `None` for a session, and for runs of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
        /// The reason that they gave.
        reason: Option<String>,
    },
}

/// A call in flight that nothing waits for any more, such as after the end of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum Unanswered {
    /// A model's turn.
    Model {
        /// The visit in which the model was called.
        step: Step,
        /// The agent whose turn it was; `judge` for a judge.
        agent: String,
        /// The model, as `provider/model`; empty if the flow no longer names it.
        model: String,
        /// The turn, from 1.
        turn: u32,
    },
    /// A tool call.
    Tool {
        /// The visit in which the tool was called.
        step: Step,
        /// The call as it was under way, for the entry of a late result.
        tool_call: Box<ToolCall>,
    },
}
