//! The nodes of a flow that is written in Rust.

use indexmap::IndexMap;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{self, Builtin, Effort, NodeKind, RouterNode, TeamStrategy, ToolKind};
use shared::id::{FlowId, NodeId};

use super::NodeSpec;

/// A node at which an agent answers. The agent comes with it, unless the flow has one of that name already.
#[derive(Debug, Clone)]
pub struct Agent {
    name: String,
    prompt: Option<String>,
    settings: definition::Agent,
}

impl Agent {
    /// The agent of this name, on the model `demo/<name>` until another is named.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let settings = definition::Agent {
            model: format!("demo/{name}"),
            instructions: None,
            tools: Vec::new(),
            max_turns: None,
            max_asks: None,
            reasoning: None,
            temperature: None,
            max_tokens: None,
            output_schema: None,
            feedback: None,
            budget: None,
            gates: definition::AgentGates::default(),
            demo: None,
        };
        Self { name, prompt: None, settings }
    }

    /// The model that answers, as `provider/model`; `demo/<agent>` where nothing is said.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.settings.model = model.into();
        self
    }

    /// How hard the model thinks before it answers; what providers make of it is in the documentation of flows.
    pub fn reasoning(mut self, effort: Effort) -> Self {
        self.settings.reasoning = Some(effort);
        self
    }

    /// Template of the system prompt.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.settings.instructions = Some(instructions.into());
        self
    }

    /// How much of the newest feedback on it is told to it, from 1 to 10.
    pub fn feedback(mut self, most: u32) -> Self {
        self.settings.feedback = Some(most);
        self
    }

    /// Template of what it is asked at this node.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// How often it may ask people by itself in a step; 20 where nothing is said.
    pub fn max_asks(mut self, asks: u32) -> Self {
        self.settings.max_asks = Some(asks);
        self
    }

    /// Gates of its own, which win over those of the flow.
    pub fn gates(mut self, gates: definition::AgentGates) -> Self {
        self.settings.gates = gates;
        self
    }

    /// A tool that it may call.
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

/// A node at which a tool is called.
#[derive(Debug, Clone)]
pub struct Tool {
    name: String,
    arguments: Option<JsonMap>,
    settings: Option<definition::Tool>,
}

impl Tool {
    /// The tool of this name, which the flow must have.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: None, settings: None }
    }

    /// One argument; a string is a template.
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.arguments.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    /// The tool comes with the node.
    pub fn settings(mut self, settings: definition::Tool) -> Self {
        self.settings = Some(settings);
        self
    }

    /// The tool comes with the node, and pretends to publish.
    pub fn demo_publish(self) -> Self {
        self.settings(plain(ToolKind::Builtin(Builtin::DemoPublish)))
    }
}

impl From<Tool> for NodeSpec {
    fn from(node: Tool) -> Self {
        let tool = node.settings.map(|tool| (node.name.clone(), tool));
        Self { kind: NodeKind::Tool { tool: node.name, arguments: node.arguments }, agents: Vec::new(), tool }
    }
}

/// A tool that is a function of the program, under the tool's name: what it does, for models and reviewers, and the
/// JSON Schema of its arguments.
pub fn function(description: impl Into<String>, parameters: Value) -> definition::Tool {
    definition::Tool {
        description: Some(description.into()),
        parameters: Some(parameters),
        ..plain(ToolKind::Function)
    }
}

fn plain(kind: ToolKind) -> definition::Tool {
    definition::Tool {
        description: None,
        parameters: None,
        kind,
        ask_permission: definition::AskPermission::default(),
        idempotent: false,
        timeout: None,
        reviewers: definition::Reviewers::default(),
        policy: definition::Policy::default(),
        severity: None,
        on_timeout: None,
    }
}

/// A node that gives state keys their values.
#[derive(Debug, Clone, Default)]
pub struct Set(IndexMap<String, Value>);

impl Set {
    /// A node that sets no key yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One key; a string is a template.
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

/// A node that only leads on: where its conditions say, or where an agent chooses.
#[derive(Debug, Clone, Default)]
pub struct Router {
    prompt: Option<String>,
    by: Option<(String, Option<definition::Agent>)>,
}

impl Router {
    /// Leads on where the conditions of its edges say.
    pub fn new() -> Self {
        Self::default()
    }

    /// This agent, which the flow must have, chooses among the nodes that it hands on to.
    pub fn by(mut self, agent: impl Into<String>) -> Self {
        self.by = Some((agent.into(), None));
        self
    }

    /// The same for an agent that comes with the node; its prompt is asked here.
    pub fn by_agent(mut self, agent: Agent) -> Self {
        self.prompt = agent.prompt.or(self.prompt);
        self.by = Some((agent.name, Some(agent.settings)));
        self
    }

    /// Template of what the agent is asked.
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
    /// A team that works so, without members yet. The last that is added leads it, where nobody is named.
    pub fn new(strategy: TeamStrategy) -> Self {
        let settings =
            definition::Team { agents: Vec::new(), lead: None, strategy, rounds: None, prompt: None, emergent: None };
        Self { settings, agents: Vec::new() }
    }

    /// A member that comes with the node; what the team is asked is in the team's own prompt.
    pub fn member(mut self, agent: Agent) -> Self {
        self.settings.agents.push(agent.name.clone());
        self.agents.push((agent.name, agent.settings));
        self
    }

    /// This agent, which the flow or a member must be, leads.
    pub fn lead(mut self, agent: impl Into<String>) -> Self {
        self.settings.lead = Some(agent.into());
        self
    }

    /// So many rounds of a debate, from 1 to 20; 3 where nothing is said.
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.settings.rounds = Some(rounds);
        self
    }

    /// Template of what they are asked; the readable keys where nothing is said.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.settings.prompt = Some(prompt.into());
        self
    }

    /// Members may make specialists.
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

/// A node that runs another one for each item of a list.
#[derive(Debug, Clone)]
pub struct Map(definition::MapNode);

impl Map {
    /// Runs `node`, which sees its item as `item`, for each item of the list under the key `over`.
    pub fn new(over: impl Into<String>, item: impl Into<String>, node: NodeId) -> Self {
        Self(definition::MapNode { over: over.into(), r#as: item.into(), node })
    }
}

impl From<Map> for NodeSpec {
    fn from(node: Map) -> Self {
        Self { kind: NodeKind::Map(node.0), agents: Vec::new(), tool: None }
    }
}

/// A node that calls another flow, which is saved before this one.
#[derive(Debug, Clone)]
pub struct Call(definition::FlowCall);

impl Call {
    /// Calls the newest version of the flow, with the state keys that have the names of its inputs.
    pub fn new(flow: FlowId) -> Self {
        Self(definition::FlowCall { id: flow, version: None, input: JsonMap::new() })
    }

    /// Calls this version of it.
    pub fn version(mut self, version: u32) -> Self {
        self.0.version = Some(version);
        self
    }

    /// Calls it with this input, a template; what is not named is not given then.
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
