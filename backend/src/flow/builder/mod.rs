//! A builder of flows in Rust, for the same model as a flow file.
//!
//! ```
//! use backend::flow::builder::{Agent, Flow, Human, Tool, accept, correct, stop};
//! use serde_json::json;
//!
//! let flow = Flow::new("article")
//!     .input(json!({ "type": "object", "required": ["topic"], "properties": { "topic": { "type": "string" } } }))
//!     .node("draft", Agent::new("writer").instructions("You are a careful writer.").prompt("Write about {{ topic }}."))
//!     .max_visits(5)
//!     .delegates_to_human("review")
//!     .human(
//!         "review",
//!         Human::new("Please review the draft.")
//!             .reviews("draft")
//!             .option(accept("approve", "Looks good, continue"))
//!             .option(correct("shorten", "Needs revision", "Please make it more concise."))
//!             .option(stop("reject", "Reject, stop the flow")),
//!     )
//!     .delegates_to("publish")
//!     .node("publish", Tool::new("publish").argument("text", "{{ draft }}").demo_publish())
//!     .build()?;
//! assert_eq!(flow.nodes.len(), 3);
//! # Ok::<(), backend::flow::builder::InvalidFlow>(())
//! ```

mod human;
mod nodes;

use indexmap::IndexMap;
use serde_json::Value;
use shared::definition::{
    self, Defaults, Edge, EdgeCondition, Failure, Guardrails, Join, Next, Node, NodeKind, Reviewers, Route, Target,
};
use shared::error::{FlowCode, Mistake, pointer};
use shared::id::{FlowId, NodeId};

pub use human::{Human, accept, alternative, correct, stop};
pub use nodes::{Agent, Call, Map, Router, Set, Team, Tool, function};

use super::cancellation::CancelFlag;
use super::check::{Here, check_flow};

/// The errors that [`Flow::build`] found: the same as in a flow file, with paths but without lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct InvalidFlow(pub Vec<Mistake>);

/// A node's kind, and the agents or the tool that it brings with it.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    kind: NodeKind,
    agents: Vec<(String, definition::Agent)>,
    tool: Option<(String, definition::Tool)>,
}

/// A builder of a flow. Edges, keys and limits apply to the node that was added last.
#[derive(Debug, Clone)]
pub struct Flow {
    id: String,
    title: Option<String>,
    input: Option<Value>,
    output: Option<Vec<String>>,
    output_schema: Option<Value>,
    start: Option<String>,
    agents: IndexMap<String, definition::Agent>,
    tools: IndexMap<String, definition::Tool>,
    gates: definition::Gates,
    guardrails: Option<Guardrails>,
    defaults: Defaults,
    routing: Vec<Route>,
    nodes: Vec<(String, Node, HandsTo)>,
    mistakes: Vec<Mistake>,
}

/// The targets of a node.
#[derive(Debug, Clone, Default)]
struct HandsTo {
    nodes: Vec<String>,
    humans: Vec<String>,
    conditional: Vec<(String, EdgeCondition)>,
}

impl Flow {
    /// Creates an empty flow.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: None,
            input: None,
            output: None,
            output_schema: None,
            start: None,
            agents: IndexMap::new(),
            tools: IndexMap::new(),
            gates: definition::Gates::default(),
            guardrails: None,
            defaults: Defaults::default(),
            routing: Vec::new(),
            nodes: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// Sets the title of the flow.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the JSON Schema of the input; its properties become state keys.
    pub fn input(mut self, schema: Value) -> Self {
        self.input = Some(schema);
        self
    }

    /// Sets the state keys that are the run's output.
    pub fn output<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.output = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the JSON Schema of the output: a run whose output does not match fails instead of returning it.
    pub fn returns(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Sets the defaults of nodes and gates.
    pub fn defaults(mut self, defaults: Defaults) -> Self {
        self.defaults = defaults;
        self
    }

    /// Sets the guardrails; default: `pii-redaction` and `code-safety`.
    pub fn guardrails(mut self, guardrails: Guardrails) -> Self {
        self.guardrails = Some(guardrails);
        self
    }

    /// Adds the reviewers of nodes with one of these tags, unless the node or its gate names reviewers.
    pub fn routes<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>, reviewers: Reviewers) -> Self {
        self.routing.push(Route { tags: tags.into_iter().map(Into::into).collect(), reviewers });
        self
    }

    /// Sets all gates at once, and replaces earlier ones.
    pub fn gates(mut self, gates: definition::Gates) -> Self {
        self.gates = gates;
        self
    }

    /// Sets the first node; default: the first that was added.
    pub fn start(mut self, node: impl Into<String>) -> Self {
        self.start = Some(node.into());
        self
    }

    /// Adds an agent with all its settings, for [`Agent`] nodes.
    pub fn agent(mut self, name: impl Into<String>, agent: definition::Agent) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// Adds a tool with all its settings, for agents and [`Tool`] nodes.
    pub fn tool(mut self, name: impl Into<String>, tool: definition::Tool) -> Self {
        self.tools.insert(name.into(), tool);
        self
    }

    /// Adds a node of any kind.
    pub fn node(mut self, id: impl Into<String>, node: impl Into<NodeSpec>) -> Self {
        let (id, spec) = (id.into(), node.into());
        if self.nodes.iter().any(|(other, ..)| *other == id) {
            let path = pointer(["nodes", &id]);
            self.mistakes.push(mistake(&path, FlowCode::FlowInvalid, format!("there are two nodes `{id}`")));
        }
        for (name, agent) in spec.agents {
            self.agents.entry(name).or_insert(agent);
        }
        if let Some((name, tool)) = spec.tool {
            self.tools.entry(name).or_insert(tool);
        }
        self.nodes.push((id, Node::new(spec.kind), HandsTo::default()));
        self
    }

    /// Adds a human node.
    pub fn human(self, id: impl Into<String>, human: Human) -> Self {
        self.node(id, human)
    }

    /// Leads the last node to this one. If called twice, both start at the same time.
    pub fn delegates_to(self, node: impl Into<String>) -> Self {
        let node = node.into();
        self.last("delegates_to", |_, delegation| delegation.nodes.push(node))
    }

    /// Leads the last node to a human node, and to no other node at the same time.
    pub fn delegates_to_human(self, human: impl Into<String>) -> Self {
        let human = human.into();
        self.last("delegates_to_human", |_, delegation| delegation.humans.push(human))
    }

    /// Leads the last node to this one if the condition (CEL) is true.
    pub fn delegates_when(self, condition: impl Into<String>, node: impl Into<String>) -> Self {
        let (node, condition) = (node.into(), EdgeCondition::When(condition.into()));
        self.last("delegates_when", |_, delegation| delegation.conditional.push((node, condition)))
    }

    /// Leads the last node to this one if no condition is true.
    pub fn delegates_otherwise(self, node: impl Into<String>) -> Self {
        let node = node.into();
        self.last("delegates_otherwise", |_, delegation| delegation.conditional.push((node, EdgeCondition::Else)))
    }

    /// Sets the keys that the last node may read.
    pub fn reads<K: Into<String>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        let keys = keys.into_iter().map(Into::into).collect();
        self.last("reads", |node, _| node.read_keys = Some(keys))
    }

    /// Sets the keys that the last node may write.
    pub fn writes<K: Into<String>>(self, keys: impl IntoIterator<Item = K>) -> Self {
        let keys = keys.into_iter().map(Into::into).collect();
        self.last("writes", |node, _| node.write_keys = Some(keys))
    }

    /// Sets a short description of the last node, which a router's agent sees when it chooses.
    pub fn described(self, description: impl Into<String>) -> Self {
        let description = description.into();
        self.last("described", |node, _| node.description = Some(description))
    }

    /// Sets the limit of visits of the last node.
    pub fn max_visits(self, visits: u32) -> Self {
        self.last("max_visits", |node, _| node.max_visits = Some(visits))
    }

    /// Sets where a branch goes after the last node's limit of visits, instead of failing the run.
    pub fn on_visit_limit(self, node: NodeId) -> Self {
        self.last("on_visit_limit", |own, _| own.on_visit_limit = Some(node))
    }

    /// Sets what happens when the step of the last node fails.
    pub fn failure(self, failure: Failure) -> Self {
        self.last("failure", |node, _| node.failure = Some(failure))
    }

    /// Sets the tags of the last node, for routes.
    pub fn tagged<T: Into<String>>(self, tags: impl IntoIterator<Item = T>) -> Self {
        let tags: Vec<String> = tags.into_iter().map(Into::into).collect();
        self.last("tagged", |node, _| node.tags.extend(tags))
    }

    /// Makes the last node wait for all other branches, and continue as one.
    pub fn joins_all(self) -> Self {
        self.last("joins_all", |node, _| node.join = Join::All)
    }

    /// Builds the flow, with all the checks of a flow file.
    pub fn build(mut self) -> Result<definition::Flow, InvalidFlow> {
        let mut mistakes = std::mem::take(&mut self.mistakes);
        let mut nodes: IndexMap<NodeId, Node> = IndexMap::new();
        let mut asked: Vec<(String, String)> = Vec::new();
        for (id, mut node, delegation) in std::mem::take(&mut self.nodes) {
            asked.extend(delegation.humans.iter().map(|human| (pointer(["nodes", &id, "next"]), human.clone())));
            node.next = Next(edges(&id, &delegation, &mut mistakes));
            if let Some(id) = named::<NodeId>(&pointer(["nodes", &id]), &id, &mut mistakes) {
                nodes.insert(id, node);
            }
        }
        for (path, human) in asked {
            if let Some(node) = nodes.get(human.as_str())
                && !matches!(node.kind, NodeKind::Human(_))
            {
                let message = format!("`{human}` is a {} node, not a person; use `delegates_to`", node.kind.as_str());
                mistakes.push(mistake(&path, FlowCode::FlowInvalid, message));
            }
        }
        let start = self.start.as_ref().and_then(|start| named::<NodeId>("/start", start, &mut mistakes));
        let Some(id) = named::<FlowId>("/id", &self.id, &mut mistakes) else { return Err(InvalidFlow(mistakes)) };
        let flow = definition::Flow {
            title: self.title,
            input: self.input,
            output: self.output,
            output_schema: self.output_schema,
            start,
            agents: self.agents,
            tools: self.tools,
            gates: self.gates,
            guardrails: self.guardrails,
            defaults: self.defaults,
            routing: self.routing,
            nodes,
            ..definition::Flow::new(id)
        };
        let (errors, _) = check_flow(&flow, None, &mistakes, &Here::default(), &CancelFlag::default());
        for error in errors {
            // The builder has already reported the invalid delegation in its own words.
            let delegation = FlowCode::FlowInvalidDelegation.as_str();
            let doubled = |noted: &Mistake| noted.code == delegation && error.path.starts_with(&noted.path);
            if error.code != delegation || !mistakes.iter().any(doubled) {
                mistakes.push(error);
            }
        }
        if mistakes.is_empty() { Ok(flow) } else { Err(InvalidFlow(mistakes)) }
    }

    fn last(mut self, what: &str, change: impl FnOnce(&mut Node, &mut HandsTo)) -> Self {
        if let Some((_, node, delegation)) = self.nodes.last_mut() {
            change(node, delegation);
        } else {
            let message = format!("`{what}` applies to the previous node, but there is none yet");
            self.mistakes.push(mistake("/nodes", FlowCode::FlowInvalid, message));
        }
        self
    }
}

fn edges(id: &str, delegation: &HandsTo, mistakes: &mut Vec<Mistake>) -> Vec<Edge> {
    let path = pointer(["nodes", id, "next"]);
    if let ([human, ..], [node, ..]) = (delegation.humans.as_slice(), delegation.nodes.as_slice()) {
        let message = format!(
            "`{id}` delegates to the person at `{human}` and to `{node}` at the same time: its output would be passed \
             on before it was approved; let `{human}` delegate to `{node}`"
        );
        mistakes.push(mistake(&path, FlowCode::FlowInvalidDelegation, message));
    }
    let straight = delegation.humans.iter().chain(&delegation.nodes).map(|to| (to, EdgeCondition::Always));
    let conditional = delegation.conditional.iter().map(|(to, condition)| (to, condition.clone()));
    straight
        .chain(conditional)
        .filter_map(|(to, condition)| {
            let to = if to == "end" { Target::End } else { Target::Node(named(&path, to, mistakes)?) };
            Some(Edge { to, condition })
        })
        .collect()
}

fn named<N: TryFrom<String, Error = shared::id::InvalidName>>(
    path: &str,
    name: &str,
    mistakes: &mut Vec<Mistake>,
) -> Option<N> {
    N::try_from(name.to_owned())
        .map_err(|error| mistakes.push(mistake(path, FlowCode::FlowInvalid, error.to_string())))
        .ok()
}

fn mistake(path: &str, code: FlowCode, message: String) -> Mistake {
    Mistake::new(path, code.as_str(), message)
}

#[cfg(test)]
mod tests;
