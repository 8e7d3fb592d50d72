//! The nodes of a flow that is built in Rust.

use indexmap::IndexMap;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{self, Builtin, Effort, NodeKind, RouterNode, TeamStrategy, ToolKind};
use shared::id::{FlowId, NodeId};

use super::NodeSpec;

/// An agent node. It adds the agent, unless the flow already has one with this name.
#[derive(Debug, Clone)]
pub struct Agent {
    name: String,
    prompt: Option<String>,
    settings: definition::Agent,
}

impl Agent {
    /// Creates a node with the agent of this name, on the model `demo/<name>` by default.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let settings = definition::Agent { model: format!("demo/{name}"), ..definition::Agent::default() };
        Self { name, prompt: None, settings }
    }

    /// Sets the model, as `provider/model`; default: `demo/<agent>`.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.settings.model = model.into();
        self
    }

    /// Sets how hard the model thinks before it answers; see the documentation of models.
    pub fn reasoning(mut self, effort: Effort) -> Self {
        self.settings.reasoning = Some(effort);
        self
    }

    /// Sets the template of the system prompt.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.settings.instructions = Some(instructions.into());
        self
    }

    /// Sets how much of the newest feedback the agent gets, from 1 to 10.
    pub fn feedback(mut self, most: u32) -> Self {
        self.settings.feedback = Some(most);
        self
    }

    /// Sets the template of the prompt at this node.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Sets how often the agent may ask people on its own initiative in a step; default: 20.
    pub fn max_asks(mut self, asks: u32) -> Self {
        self.settings.max_asks = Some(asks);
        self
    }

    /// Sets the agent's own gates, which override those of the flow.
    pub fn gates(mut self, gates: definition::AgentGates) -> Self {
        self.settings.gates = gates;
        self
    }

    /// Adds a tool that the agent may call.
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.settings.tools.push(tool.into());
        self
    }
}

impl From<Agent> for NodeSpec {
    fn from(node: Agent) -> Self {
        let kind = NodeKind::Agent { agent: node.name.clone(), prompt: node.prompt };
        Self { kind, agents: vec![(node.name, node.settings)], tool: None }
    }
}

/// A tool node, which calls a tool.
#[derive(Debug, Clone)]
pub struct Tool {
    name: String,
    arguments: Option<JsonMap>,
    settings: Option<definition::Tool>,
}

impl Tool {
    /// Creates a node with the tool of this name, which the flow must have.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: None, settings: None }
    }

    /// Sets an argument; a string is a template.
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.arguments.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    /// Adds the tool to the flow, with these settings.
    pub fn settings(mut self, settings: definition::Tool) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Adds the tool to the flow, as one that pretends to publish.
    pub fn demo_publish(self) -> Self {
        self.settings(definition::Tool::new(ToolKind::Builtin(Builtin::DemoPublish)))
    }
}

impl From<Tool> for NodeSpec {
    fn from(node: Tool) -> Self {
        let tool = node.settings.map(|tool| (node.name.clone(), tool));
        Self { kind: NodeKind::Tool { tool: node.name, arguments: node.arguments }, agents: Vec::new(), tool }
    }
}

/// Creates a tool that is a function of the program, found by the tool's name, with a description for models and
/// reviewers, and the JSON Schema of its arguments.
pub fn function(description: impl Into<String>, parameters: Value) -> definition::Tool {
    definition::Tool {
        description: Some(description.into()),
        parameters: Some(parameters),
        ..definition::Tool::new(ToolKind::Function)
    }
}

/// A set node, which sets state keys.
#[derive(Debug, Clone, Default)]
pub struct Set(IndexMap<String, Value>);

impl Set {
    /// Creates a node that sets no key yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key; a string is a template.
    pub fn key(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }
}

impl From<Set> for NodeSpec {
    fn from(node: Set) -> Self {
        Self { kind: NodeKind::Set(node.0), agents: Vec::new(), tool: None }
    }
}

/// A router, which only leads on: by its conditions, or by the choice of an agent.
#[derive(Debug, Clone, Default)]
pub struct Router {
    prompt: Option<String>,
    by: Option<(String, Option<definition::Agent>)>,
}

impl Router {
    /// Creates a router that follows the conditions of its edges.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets an agent, which the flow must have, choose among the targets.
    pub fn by(mut self, agent: impl Into<String>) -> Self {
        self.by = Some((agent.into(), None));
        self
    }

    /// Lets this agent choose among the targets, and adds it to the flow. Its prompt is used here.
    pub fn by_agent(mut self, agent: Agent) -> Self {
        self.prompt = agent.prompt.or(self.prompt);
        self.by = Some((agent.name, Some(agent.settings)));
        self
    }

    /// Sets the template of the agent's prompt.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }
}

impl From<Router> for NodeSpec {
    fn from(node: Router) -> Self {
        let (name, settings) = node.by.unzip();
        let kind = NodeKind::Router(RouterNode { agent: name.clone(), prompt: node.prompt });
        Self { kind, agents: name.zip(settings.flatten()).into_iter().collect(), tool: None }
    }
}

/// Several agents that work on one step.
#[derive(Debug, Clone)]
pub struct Team {
    settings: definition::Team,
    agents: Vec<(String, definition::Agent)>,
}

impl Team {
    /// Creates a team with this strategy and without members. By default, the last member added is the lead.
    pub fn new(strategy: TeamStrategy) -> Self {
        let settings =
            definition::Team { agents: Vec::new(), lead: None, strategy, rounds: None, prompt: None, emergent: None };
        Self { settings, agents: Vec::new() }
    }

    /// Adds a member, whose agent is added to the flow; the team's own prompt has the task.
    pub fn member(mut self, agent: Agent) -> Self {
        self.settings.agents.push(agent.name.clone());
        self.agents.push((agent.name, agent.settings));
        self
    }

    /// Sets the lead: an agent of the flow, or a member.
    pub fn lead(mut self, agent: impl Into<String>) -> Self {
        self.settings.lead = Some(agent.into());
        self
    }

    /// Sets the number of rounds of a debate, from 1 to 20; default: 3.
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.settings.rounds = Some(rounds);
        self
    }

    /// Sets the template of the task; default: the readable keys.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.settings.prompt = Some(prompt.into());
        self
    }

    /// Allows members to create specialists.
    pub fn emergent(mut self, emergent: definition::TeamEmergent) -> Self {
        self.settings.emergent = Some(emergent);
        self
    }
}

impl From<Team> for NodeSpec {
    fn from(node: Team) -> Self {
        Self { kind: NodeKind::Team(node.settings), agents: node.agents, tool: None }
    }
}

/// A map node, which runs another node for each item of a list.
#[derive(Debug, Clone)]
pub struct Map(definition::MapNode);

impl Map {
    /// Creates a map that runs `node`, which sees its item as `item`, for each item of the list under the key `over`.
    pub fn new(over: impl Into<String>, item: impl Into<String>, node: NodeId) -> Self {
        Self(definition::MapNode { over: over.into(), r#as: item.into(), node })
    }
}

impl From<Map> for NodeSpec {
    fn from(node: Map) -> Self {
        Self { kind: NodeKind::Map(node.0), agents: Vec::new(), tool: None }
    }
}

/// A flow node, which calls another flow that was saved before.
#[derive(Debug, Clone)]
pub struct Call(definition::FlowCall);

impl Call {
    /// Creates a call of the newest version of the flow, with the state keys named like its inputs.
    pub fn new(flow: FlowId) -> Self {
        Self(definition::FlowCall { id: flow, version: None, input: JsonMap::new() })
    }

    /// Sets the version to call.
    pub fn version(mut self, version: u32) -> Self {
        self.0.version = Some(version);
        self
    }

    /// Sets an input, a template; then, only the inputs that are set are passed.
    pub fn input(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.input.insert(name.into(), value.into());
        self
    }
}

impl From<Call> for NodeSpec {
    fn from(node: Call) -> Self {
        Self { kind: NodeKind::Flow(node.0), agents: Vec::new(), tool: None }
    }
}
