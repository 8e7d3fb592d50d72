//! The nodes of a flow that is written in Rust.

use indexmap::IndexMap;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{
    self, AutoHandler, Builtin, Choice, ChoiceKind, EditKey, Effort, Handler, NodeKind, OnTimeout, ReviewKey,
    RouterNode, ToolKind, WebhookHandler,
};
use shared::id::{FlowId, NodeId, Username};
use shared::time::Span;

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

    /// `provider/model`.
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

    /// A tool that it may call.
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.settings.tools.push(tool.into());
        self
    }
}

impl From<Agent> for NodeSpec {
    fn from(node: Agent) -> Self {
        let kind = NodeKind::Agent { agent: node.name.clone(), prompt: node.prompt };
        Self { kind, agent: Some((node.name, node.settings)), tool: None }
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
        Self { kind: NodeKind::Tool { tool: node.name, arguments: node.arguments }, agent: None, tool }
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
    /// Nothing yet.
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
        Self { kind: NodeKind::Set(node.0), agent: None, tool: None }
    }
}

/// A node that only leads on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Router;

impl From<Router> for NodeSpec {
    fn from(_: Router) -> Self {
        Self { kind: NodeKind::Router(RouterNode::default()), agent: None, tool: None }
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
        Self { kind: NodeKind::Map(node.0), agent: None, tool: None }
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
        Self { kind: NodeKind::Flow(node.0), agent: None, tool: None }
    }
}

/// A node at which a person is asked.
#[derive(Debug, Clone)]
pub struct Human(definition::Human);

impl Human {
    /// The question, a template.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self(definition::Human { prompt: Some(prompt.into()), ..definition::Human::default() })
    }

    /// The headline, a template; without one, it is the question's first sentence.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.title = Some(title.into());
        self
    }

    /// Something that the person may choose. Without options, free text is the answer.
    pub fn option(mut self, option: Choice) -> Self {
        self.0.options.push(option);
        self
    }

    /// A state key that is shown.
    pub fn reviews(mut self, key: impl Into<String>) -> Self {
        self.0.review_keys.push(ReviewKey { key: key.into(), content_type: None, label: None });
        self
    }

    /// A state key that may be changed.
    pub fn edits(mut self, key: impl Into<String>) -> Self {
        self.0.edit_keys.push(EditKey { key: key.into(), schema: None, content_type: None, label: None });
        self
    }

    /// A role that may decide.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.0.reviewers.roles.push(role.into());
        self
    }

    /// A role that those who are asked by role must have besides.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.0.reviewers.tags.push(tag.into());
        self
    }

    /// A person who may decide.
    pub fn user(mut self, user: Username) -> Self {
        self.0.reviewers.users.push(user);
        self
    }

    /// How long it waits, and what happens then.
    pub fn timeout(mut self, timeout: Span, then: OnTimeout) -> Self {
        (self.0.timeout, self.0.on_timeout) = (Some(timeout), Some(then));
        self
    }

    /// Nobody is asked: it is approved, or rejected with a reason, at once; after judges, what none of them was sure of.
    pub fn auto(mut self, says: AutoHandler) -> Self {
        self.0.handlers.get_or_insert_default().push(Handler::Auto(says));
        self
    }

    /// A model (`provider/model`) is asked before people are, and decides where it is at least so sure (0.7 where nothing
    /// is said). Of several judges, each is asked where those before it were not sure.
    pub fn judge(mut self, model: impl Into<String>, criteria: impl Into<String>, threshold: Option<f64>) -> Self {
        let judge = definition::Judge { model: model.into(), criteria: criteria.into(), threshold, timeout: None };
        self.0.handlers.get_or_insert_default().push(Handler::Judge(judge));
        self
    }
}

impl Human {
    /// Another program is asked before people are, at this URL. Where it cannot be asked, what is asked is rejected.
    pub fn webhook(self, url: impl Into<String>) -> Self {
        self.handler_of(Handler::Webhook(WebhookHandler { url: url.into(), on_error: None, timeout: None }))
    }

    /// A function of this program is asked before people are, by the name under which `Options::handler` gives it.
    pub fn handler(self, name: impl Into<String>) -> Self {
        self.handler_of(Handler::Function(name.into()))
    }

    fn handler_of(mut self, handler: Handler) -> Self {
        self.0.handlers.get_or_insert_default().push(handler);
        self
    }
}

impl From<Human> for NodeSpec {
    fn from(node: Human) -> Self {
        Self { kind: NodeKind::Human(Box::new(node.0)), agent: None, tool: None }
    }
}

/// An option that lets the run go on.
pub fn accept(id: impl Into<String>, label: impl Into<String>) -> Choice {
    Choice { id: id.into(), kind: ChoiceKind::Accept, label: label.into(), message: None, description: None }
}

/// An option that has the step before made again, with this message.
pub fn correct(id: impl Into<String>, label: impl Into<String>, message: impl Into<String>) -> Choice {
    Choice { kind: ChoiceKind::Correct, message: Some(message.into()), ..accept(id, label) }
}

/// An option that ends the run.
pub fn stop(id: impl Into<String>, label: impl Into<String>) -> Choice {
    Choice { kind: ChoiceKind::Stop, ..accept(id, label) }
}
