//! The messages and calls in a step of an agent, of a tool node, or with a judge.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{Agent, Target};
use shared::error::FlowCode;
use shared::id::{NodeId, TaskId};
use shared::request::Request;
use shared::run::Step;

use super::digest;
use super::usage::Spent;
use crate::flow::{Compiled, DELEGATE};

/// The conversation of an agent or a judge with its model.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// The agent's name in the flow, or that of `specialist`; `judge` for a judge.
    pub agent: String,
    /// Its rendered instructions.
    pub instructions: Option<String>,
    /// Everything after the instructions, in order.
    pub messages: Vec<Message>,
    /// The turn that is under way, from 1.
    pub turn: u32,
    /// The usage of agents that worked on it before and handed it over, by agent; also that of its own agent from
    /// before, if the conversation has come back to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub handed_over: BTreeMap<String, Spent>,
    /// The usage of agents that worked for it, once they have ended, by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub delegated: BTreeMap<String, Spent>,
    /// The task of the model call that is due or running; `None` while the turn's tool calls are.
    pub model_task: Option<TaskId>,
    /// The current attempt of that call, from 1.
    #[serde(default)]
    pub tries: u32,
    /// The calls of the turn, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Instructions from reviewers, and what else the agent is told after the results of the turn's calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructed: Vec<String>,
    /// The number of times that its agent has asked people on its own initiative.
    #[serde(default, skip_serializing_if = "shared::is_default")]
    pub asks: u32,
    /// The state keys that `set_state` wrote in this step.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub wrote: BTreeSet<String>,
    /// The tokens that its agent has used in it, for the agent's budget.
    #[serde(default)]
    pub tokens: u64,
    /// The cost of these tokens in US dollars, for the agent's budget.
    #[serde(default)]
    pub cost_usd: f64,
    /// The agent, if it is a specialist that the flow does not define.
    pub specialist: Option<Box<Specialist>>,
    /// The members of its team that the agent may call as tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegates: Vec<String>,
    /// The prefix of its call ids, if several agents work on a step. A dot occurs only after the name of an agent, so
    /// call ids are unique in a step, whatever the names of agents and specialists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id_prefix: String,
    /// What the final answer is used for.
    #[serde(default, skip_serializing_if = "shared::is_default")]
    pub purpose: Purpose,
}

impl Conversation {
    /// Creates a conversation in its first turn, before any model call.
    pub fn new(agent: &str, instructions: Option<String>, messages: Vec<Message>) -> Self {
        Self { agent: agent.to_owned(), instructions, messages, turn: 1, ..Self::default() }
    }

    /// Returns what opened the conversation, as gates show it: the prompt, the instructions, and the correction if
    /// there is one.
    pub fn opening(&self) -> JsonMap {
        let said = |message: &Message| match message {
            Message::User { text } => Some(text.clone()),
            _ => None,
        };
        let mut users = self.messages.iter().filter_map(said);
        let parts =
            [("prompt", users.next()), ("instructions", self.instructions.clone()), ("correction", users.next())];
        parts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into()))).collect()
    }

    /// Replaces parts of the opening, by the names that [`Self::opening`] uses; other parts stay.
    pub fn reopen(&mut self, opening: &JsonMap) {
        let text = |name: &str| opening.get(name).and_then(Value::as_str).map(str::to_owned);
        let users = self.messages.iter_mut().filter_map(|message| match message {
            Message::User { text } => Some(text),
            _ => None,
        });
        for (own, new) in users.zip([text("prompt"), text("correction")]) {
            *own = new.unwrap_or_else(|| std::mem::take(own));
        }
        self.instructions = text("instructions").or_else(|| self.instructions.take());
    }

    /// Returns the definition of its agent; `None` if neither the flow nor a team has an agent of that name.
    pub fn agent_in<'a>(&'a self, flow: &'a Compiled, node: &NodeId) -> Option<&'a Agent> {
        let made = self.specialist.as_deref().map(|specialist| &specialist.agent);
        made.or_else(|| flow.of(node).flow.agents.get(&self.agent))
    }

    /// Returns its agent as the gates of its calls see it.
    pub fn calling_agent(&self) -> CallingAgent<'_> {
        let made_by = self.specialist.as_deref().map(|specialist| specialist.made_by.as_str());
        CallingAgent { name: &self.agent, gates_of: made_by.unwrap_or(&self.agent) }
    }

    /// Returns the names of the tools that the agent may call.
    pub fn tools_in(&self, flow: &Compiled, node: &NodeId) -> Vec<String> {
        let own = self.agent_in(flow, node).map(|agent| agent.tools.as_slice()).unwrap_or_default();
        own.iter().cloned().chain(self.delegates.iter().map(|agent| delegate_tool(agent))).collect()
    }

    /// Returns the branch that waits for the answer, if the agent works for another branch.
    pub fn works_for(&self) -> Option<u32> {
        match self.purpose {
            Purpose::Turn { team, .. } => Some(team),
            Purpose::Task { of, .. } => Some(of),
            Purpose::Answer | Purpose::Choice(_) => None,
        }
    }

    /// Returns the model that the agent calls, as `provider/model`.
    pub fn model_in<'a>(&'a self, flow: &'a Compiled, node: &NodeId) -> Option<&'a str> {
        self.agent_in(flow, node).map(|agent| agent.model.as_str())
    }
}

/// An agent that a member of a team has created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Specialist {
    /// Its model, instructions and tools.
    #[serde(flatten)]
    pub agent: Agent,
    /// The agent of the flow that created it, directly or through other specialists. That agent's gates apply to it
    /// too.
    #[serde(default)]
    pub made_by: String,
}

/// The agent that makes a call.
#[derive(Debug, Clone, Copy)]
pub struct CallingAgent<'a> {
    /// Its name, as people read it.
    pub name: &'a str,
    /// The agent of the flow whose own gates apply to its calls.
    pub gates_of: &'a str,
}

impl CallingAgent<'_> {
    /// Whether it is a specialist. Another specialist of the same name may be a different agent.
    pub fn is_specialist(&self) -> bool {
        self.name != self.gates_of
    }
}

/// Where a call is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallSite<'a> {
    pub step: &'a Step,
    /// The agent that makes the call; `None` for a tool node.
    pub agent: Option<CallingAgent<'a>>,
    /// A person's correction of a tool node.
    pub correction: Option<&'a str>,
}

impl<'a> CallSite<'a> {
    /// Creates the place of a call that nobody has corrected.
    pub fn new(step: &'a Step, agent: Option<CallingAgent<'a>>) -> Self {
        Self { step, agent, correction: None }
    }
}

/// What the final answer of a conversation is used for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// It is the result of the agent node.
    #[default]
    Answer,
    /// A router's agent chooses among these targets.
    Choice(Vec<Target>),
    /// It is the contribution of a team member.
    Turn {
        /// The team's branch.
        team: u32,
        /// The round, from 1.
        round: u32,
        /// Whether it answers for the whole team.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        as_lead: bool,
        /// The member whose turn it is, if another agent has taken it over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
    },
    /// It is the result of a call by another agent or a tool node.
    Task {
        /// The branch that made the call.
        of: u32,
        /// The id of that call in its conversation: the answer is its result.
        call: String,
    },
}

/// Returns the name of the tool with which a lead calls a member of its team.
pub(super) fn delegate_tool(agent: &str) -> String {
    format!("{DELEGATE}{agent}")
}

impl Purpose {
    /// Returns the purpose for an agent that takes over from `from`: a turn in a team remains that of its member.
    pub(super) fn taken_over(&self, from: &str) -> Self {
        match self {
            Self::Turn { team, round, as_lead, member } => {
                let member = member.clone().or_else(|| Some(from.to_owned()));
                Self::Turn { team: *team, round: *round, as_lead: *as_lead, member }
            }
            other => other.clone(),
        }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The prompt, or a later message to the model such as a correction.
    User {
        /// The text of the message.
        text: String,
    },
    /// An answer of the model.
    Assistant {
        /// What the model wrote; may be empty beside calls.
        text: String,
        /// The tool calls that the model asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<super::ModelToolCall>,
    },
    /// The result of a tool call.
    Tool {
        /// The provider's id of the call.
        provider_id: String,
        /// The name of the tool that was called.
        tool: String,
        /// The result, or the reason why there is none.
        #[serde(serialize_with = "shared::user_data::value")]
        content: Value,
    },
}

/// One tool call of a step.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The engine's id, the same at every attempt: `c<turn>-<index>`, after the prefix of its conversation. Names the
    /// call in reviews.
    pub id: String,
    /// The provider's id, sent back with the result. Empty for the call of a tool node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider_id: String,
    /// The name of the tool; `delegate_to_<member>` if a lead calls a member of its team.
    pub tool: String,
    /// The arguments: rendered once, shown, and executed as they are.
    #[serde(serialize_with = "shared::user_data::value")]
    pub arguments: JsonMap,
    /// What the call sends: rendered once, shown, and sent unchanged at every attempt. `None` in calls from before
    /// requests were recorded, and in calls that were not valid.
    pub request: Option<Request>,
    /// The values besides the arguments that the tool's templates read, kept while a gate holds the call back: an edit
    /// of the arguments renders the request again from these values.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    #[serde(serialize_with = "shared::user_data::members")]
    pub reads: JsonMap,
    /// `sha256:` of tool, arguments and request, as canonical JSON, at the time of approval; checked again before
    /// execution.
    pub digest: String,
    /// The index of the tool's gate that asks about the call, or asked last. `None` if no gate has closed, and in
    /// states before format 9.
    pub gate: Option<usize>,
    /// The passes that its gates have given so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<GatePass>,
    /// The progress of the call.
    pub state: ToolCallState,
}

/// The record that a gate has let a call pass. It holds for the call as it was then: if the call is edited afterwards,
/// every gate that closes asks again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatePass {
    /// The index of the gate among those of the tool.
    pub gate: usize,
    /// The digest of the call, including edits and redactions up to then.
    pub digest: String,
}

impl ToolCall {
    /// Creates a held call, without a request yet.
    pub(super) fn new(id: String, tool: &str, arguments: JsonMap) -> Self {
        let digest = digest::of_call(tool, &arguments, None);
        let (provider_id, tool) = (String::new(), tool.to_owned());
        let (request, reads, state) = (None, JsonMap::new(), ToolCallState::Held);
        Self { id, provider_id, tool, arguments, request, reads, digest, gate: None, passes: Vec::new(), state }
    }
}

/// The progress of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ToolCallState {
    /// A gate holds it back.
    Gated,
    /// Not gated, but waits for the gated calls of its turn.
    Held,
    /// Due, running or retrying.
    Due {
        /// The task of the call, which stays the same when the call is tried again.
        task: TaskId,
        /// The current attempt, from 1.
        tries: u32,
    },
    /// It asks people, and waits for their answer.
    Asks,
    /// An agent works on it, in a branch of its own.
    Delegated,
    /// A judge is asked about the specialist that the call would create.
    Vetting,
    /// The judge has approved the specialist.
    Vetted,
    /// It may have taken effect in flight, and must not be repeated: a person says what became of it.
    Lost,
    /// It has a result (of the tool, of a person, or a refusal that the agent is told).
    Done {
        /// What the agent sees.
        #[serde(serialize_with = "shared::user_data::value")]
        result: Value,
        /// Whether `result` says why there is no result.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
}

impl ToolCallState {
    pub(super) fn returned(result: Value) -> Self {
        Self::Done { result, failed: false }
    }

    /// Creates the state of a call that has failed; the agent sees `<CODE>: <message>`.
    pub(super) fn failed(code: FlowCode, message: &str) -> Self {
        Self::Done { result: format!("{code}: {message}").into(), failed: true }
    }
}
