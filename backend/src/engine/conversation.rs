//! The messages and calls in a step of an agent, of a tool node, or with a judge.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{Agent, Target};
use shared::error::FlowCode;
use shared::id::{NodeId, TaskId};
use shared::request::Request;

use super::digest;
use super::spent::Spent;
use crate::flow::{Compiled, DELEGATE};

/// What was said in an agent's step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// The agent's name in the flow, or that of `specialist`; `judge` for a judge.
    pub agent: String,
    /// Its rendered instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Everything after the instructions, in order.
    pub messages: Vec<Message>,
    /// The turn that is under way, from 1.
    pub turn: u32,
    /// What those have used, by agent, who worked on it before and handed it over: its own agent too, where it has it back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub handed_over: BTreeMap<String, Spent>,
    /// The model call that is due or running; none while tool calls are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_task: Option<TaskId>,
    /// The try of that call, from 1.
    #[serde(default)]
    pub tries: u32,
    /// The calls of the turn, in the model's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// What reviewers want the agent to be told, after the results of the turn's calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructed: Vec<String>,
    /// How often its agent has asked people in it by itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub asks: u32,
    /// The state keys that `set_state` wrote in this step.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub wrote: BTreeSet<String>,
    /// Tokens that its agent used in it, for its budget.
    #[serde(default)]
    pub tokens: u64,
    /// What they cost, for its budget.
    #[serde(default)]
    pub cost_usd: f64,
    /// The agent, where a team has made it and the flow does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specialist: Option<Box<Specialist>>,
    /// The members of its team that it may call as tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegates: Vec<String>,
    /// What the ids of its calls begin with, where several agents work on a step. A dot stands behind the name of an
    /// agent and nowhere else, so that no two calls of a step have one id, however agents and specialists are called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id_prefix: String,
    /// What the answer is for.
    #[serde(default, skip_serializing_if = "Purpose::is_answer")]
    pub purpose: Purpose,
}

impl Conversation {
    /// One that has just begun.
    pub fn new(agent: &str, instructions: Option<String>, messages: Vec<Message>) -> Self {
        Self {
            agent: agent.to_owned(),
            instructions,
            messages,
            turn: 1,
            handed_over: BTreeMap::new(),
            model_task: None,
            tries: 0,
            calls: Vec::new(),
            instructed: Vec::new(),
            asks: 0,
            wrote: BTreeSet::new(),
            tokens: 0,
            cost_usd: 0.0,
            specialist: None,
            delegates: Vec::new(),
            id_prefix: String::new(),
            purpose: Purpose::Answer,
        }
    }

    /// What it was opened with, as gates show it: the prompt, the instructions, and the correction where there is one.
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

    /// Opens it otherwise, with these of what [`Self::opening`] shows.
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

    /// The agent that speaks; none where neither the flow nor a team has one of that name.
    pub fn agent_in<'a>(&'a self, flow: &'a Compiled, node: &NodeId) -> Option<&'a Agent> {
        let made = self.specialist.as_deref().map(|specialist| &specialist.agent);
        made.or_else(|| flow.of(node).flow.agents.get(&self.agent))
    }

    /// Who makes its calls, as gates see it.
    pub fn calling_agent(&self) -> CallingAgent<'_> {
        let made_by = self.specialist.as_deref().map(|specialist| specialist.made_by.as_str());
        CallingAgent { name: &self.agent, gates_of: made_by.unwrap_or(&self.agent) }
    }

    /// The tools that it may call, by name.
    pub fn tools_in(&self, flow: &Compiled, node: &NodeId) -> Vec<String> {
        let own = self.agent_in(flow, node).map(|agent| agent.tools.as_slice()).unwrap_or_default();
        own.iter().cloned().chain(self.delegates.iter().map(|agent| delegate_tool(agent))).collect()
    }

    /// The branch that waits for its answer, where it works for another.
    pub fn works_for(&self) -> Option<u32> {
        match self.purpose {
            Purpose::Turn { team, .. } => Some(team),
            Purpose::Task { of, .. } => Some(of),
            Purpose::Answer | Purpose::Choice(_) => None,
        }
    }

    /// The model that the agent calls, as `provider/model`.
    pub fn model_in<'a>(&'a self, flow: &'a Compiled, node: &NodeId) -> Option<&'a str> {
        self.agent_in(flow, node).map(|agent| agent.model.as_str())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An agent that a member of a team has made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Specialist {
    /// What it is: its model, instructions and tools.
    #[serde(flatten)]
    pub agent: Agent,
    /// The agent of the flow that has made it, or that has made its maker: the gates of that agent hold for it too.
    #[serde(default)]
    pub made_by: String,
}

/// Who makes calls.
#[derive(Debug, Clone, Copy)]
pub struct CallingAgent<'a> {
    /// Its name, as people read it.
    pub name: &'a str,
    /// The agent of the flow whose own gates hold its calls back.
    pub gates_of: &'a str,
}

impl CallingAgent<'_> {
    /// Whether a member of a team has made it. Another of its name may be something else.
    pub fn is_specialist(&self) -> bool {
        self.name != self.gates_of
    }
}

/// What the last answer of a conversation is for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// It is what the agent node makes.
    #[default]
    Answer,
    /// A router's agent chooses among these targets.
    Choice(Vec<Target>),
    /// It is what a member of a team says.
    Turn {
        /// The team's branch.
        team: u32,
        /// The round, from 1.
        round: u32,
        /// Whether it answers for all.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        as_lead: bool,
        /// Whose turn it is, where another agent has taken it over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<String>,
    },
    /// It is the result of a call.
    Task {
        /// The branch that made the call.
        of: u32,
        /// The id of that call in its conversation: the answer is its result.
        call: String,
    },
}

/// The tool with which a lead calls a member of its team.
pub(super) fn delegate_tool(agent: &str) -> String {
    format!("{DELEGATE}{agent}")
}

impl Purpose {
    /// The same for an agent that takes over from another: the turn of a team stays its member's.
    pub(super) fn taken_over(&self, from: &str) -> Self {
        match self {
            Self::Turn { team, round, as_lead, member } => {
                let member = member.clone().or_else(|| Some(from.to_owned()));
                Self::Turn { team: *team, round: *round, as_lead: *as_lead, member }
            }
            other => other.clone(),
        }
    }

    fn is_answer(&self) -> bool {
        *self == Self::Answer
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The prompt, or a correction.
    User {
        /// What it says.
        text: String,
    },
    /// What the model said.
    Assistant {
        /// What the model wrote; may be empty beside calls.
        text: String,
        /// The calls that it made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<super::ModelToolCall>,
    },
    /// What a tool returned.
    Tool {
        /// The provider's id of the call.
        provider_id: String,
        /// The name of the tool that was called.
        tool: String,
        /// Its result, or why there is none.
        content: Value,
    },
}

/// One tool call of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Made by the engine, the same however often the step is tried: `c<turn>-<index>`. Names the call in reviews.
    pub id: String,
    /// The provider's id, for the answer to it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider_id: String,
    /// The name of the tool; `delegate_to_<member>` where a lead calls a member of its team.
    pub tool: String,
    /// The arguments: rendered once, shown, and executed as they are.
    pub arguments: JsonMap,
    /// What it sends: rendered once, shown, and sent as it is at every try. None in a call that was made before
    /// requests were recorded, or that did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// What the tool's templates read beside the arguments, while a gate holds the call back: an edit of the arguments
    /// renders the request again from these values.
    #[serde(default, skip_serializing_if = "JsonMap::is_empty")]
    pub reads: JsonMap,
    /// `sha256:` of tool, arguments and request, as canonical JSON, at the time of approval; checked again before
    /// execution.
    pub digest: String,
    /// Which of its tool's gates asks about it, or was the last to, by its place among them. None where none has
    /// closed, and in calls of states before format 9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<usize>,
    /// What its gates have let pass so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<GatePass>,
    /// How far it is.
    pub state: ToolCallState,
}

/// That one of the gates of a call has let it pass. It holds for the call as it was then: one that is edited afterwards
/// is asked about again wherever it would close a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatePass {
    /// The gate, by its place among those of the tool.
    pub gate: usize,
    /// The digest of the call, with what was edited and redacted then.
    pub digest: String,
}

impl ToolCall {
    /// One without a request yet.
    pub(super) fn new(id: String, tool: &str, arguments: JsonMap) -> Self {
        let digest = digest::of_call(tool, &arguments, None);
        let (provider_id, tool) = (String::new(), tool.to_owned());
        let (request, reads, state) = (None, JsonMap::new(), ToolCallState::Held);
        Self { id, provider_id, tool, arguments, request, reads, digest, gate: None, passes: Vec::new(), state }
    }
}

/// How far a tool call is.
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
        /// The try, from 1.
        tries: u32,
    },
    /// It asks people, and waits for their answer.
    Asks,
    /// An agent works on it, in a branch of its own.
    Delegated,
    /// A judge is asked about the specialist that it would make.
    Vetting,
    /// The judge has let it pass.
    Vetted,
    /// It was under way when its worker was lost, and may not be repeated: a person says what became of it.
    Lost,
    /// It has a result (of the tool, of a person, or a refusal that the agent is told).
    Done {
        /// What the agent sees.
        result: Value,
        /// Whether it says why there is no result.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
}

impl ToolCallState {
    /// It has returned this.
    pub(super) fn returned(result: Value) -> Self {
        Self::Done { result, failed: false }
    }

    /// It has no result; the agent sees `<CODE>: <message>`.
    pub(super) fn failed(code: FlowCode, message: &str) -> Self {
        Self::Done { result: format!("{code}: {message}").into(), failed: true }
    }
}
