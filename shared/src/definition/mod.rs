//! The flow model: the types of a flow file. One model for YAML, JSON and the Rust builder.
//!
//! This module owns the types and their JSON forms (strict: an unknown key is an error). The server (`backend::flow`)
//! reads files with line and column, and does every check that needs more than one place of the file.

mod agent;
mod choice;
mod gate;
mod guardrail;
mod handler;
mod human;
mod next;
mod node;
mod on_timeout;
mod policy;
mod stakes;
mod team;
mod templated;
mod tool;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use agent::{Agent, AgentGates, Budget, DemoCall, DemoScript, DemoTurn, Effort};
pub use choice::{ChoiceKind, HumanOption, as_read, option_text, read_twice};
pub use gate::{ActionKind, Gate, GateSetting, Gates};
pub use guardrail::{Effect, Guardrail, GuardrailScope, GuardrailSetting, GuardrailWebhook, Guardrails, OnError};
pub use handler::{AutoHandler, Handler, Judge, OnHandlerError, SlackHandler, WebhookHandler};
pub use human::{ContentType, EditKey, Human, ReviewKey};
pub use next::{Edge, EdgeCondition, Next, Target};
pub use node::{Backoff, Failure, FailureThen, FlowCall, Join, MapNode, Node, NodeKind, RouterNode};
pub use on_timeout::{Escalate, OnTimeout};
pub use policy::{Policy, Reviewers, Validator};
pub use stakes::{Alternative, AlternativeChoice, Cost, CostSetting, Severity, Stakes, StakesSetting};
pub use team::{Team, TeamEmergent, TeamStrategy};
pub use templated::{TemplateText, Templated};
pub use tool::{AllowedDecisions, AskPermission, Builtin, HttpTool, McpTool, Tool, ToolKind};

use crate::id::{FlowId, NodeId};
use crate::time::Span;

/// A complete flow file.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Flow {
    /// The name under which the flow is saved; saving again creates a new version.
    pub id: FlowId,
    /// The title for people; default: the id.
    pub title: Option<String>,
    /// The purpose of the flow.
    pub description: Option<String>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// JSON Schema of an object, from which the launch form is made; its properties become state keys.
    pub input: Option<Value>,
    /// The state keys that are the run's output; default: all.
    pub output: Option<Vec<String>>,
    /// JSON Schema of the output; a run whose output does not match fails instead of returning it.
    pub output_schema: Option<Value>,
    /// The first node; default: the first one in the file.
    pub start: Option<NodeId>,
    /// Models with their instructions and tools.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub agents: IndexMap<String, Agent>,
    /// The tools that agents and tool nodes may call.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub tools: IndexMap<String, Tool>,
    /// The actions that require approval.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub gates: Gates,
    /// Checks on every approved action, edit and output; default: `pii-redaction` and `code-safety`. `false`: none.
    pub guardrails: Option<Guardrails>,
    /// The defaults of nodes and gates.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub defaults: Defaults,
    /// The reviewers of nodes with certain tags; the first match counts, before `defaults.reviewers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routing: Vec<Route>,
    /// How long finished runs are kept before they are archived, such as `90d`; default: the server's setting. The
    /// newest version's value applies to runs of all versions.
    pub retention: Option<Span>,
    /// The nodes by id: at least one, at most 500. The first is where runs start, unless `start` names another.
    pub nodes: IndexMap<NodeId, Node>,
}

impl Flow {
    /// Creates a flow with the default settings, and without nodes.
    pub fn new(id: FlowId) -> Self {
        Self {
            id,
            title: None,
            description: None,
            tags: Vec::new(),
            input: None,
            output: None,
            output_schema: None,
            start: None,
            agents: IndexMap::new(),
            tools: IndexMap::new(),
            gates: Gates::default(),
            guardrails: None,
            defaults: Defaults::default(),
            routing: Vec::new(),
            retention: None,
            nodes: IndexMap::new(),
        }
    }

    /// Returns the title, or else the id.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(self.id.as_str())
    }

    /// Returns the reviewers of a node: those that it or its gate names, otherwise those of the first matching route,
    /// otherwise the defaults.
    pub fn reviewers_at(&self, node: &str, own: &Reviewers) -> Reviewers {
        if own.names_somebody() {
            return own.clone();
        }
        let tags = self.nodes.get(node).map(|node| node.tags.as_slice()).unwrap_or_default();
        let fits = |route: &&Route| route.tags.iter().any(|tag| tags.contains(tag));
        let route = self.routing.iter().find(fits).map(|route| &route.reviewers);
        let Reviewers { not_requester, not_same_as, .. } = own.clone();
        let named = route.unwrap_or(&self.defaults.reviewers).clone();
        // Reviewers that only exclude people name no one, so their exclusions are added to the route or the defaults.
        Reviewers {
            not_requester: named.not_requester || not_requester,
            not_same_as: not_same_as.or(named.not_same_as),
            ..named
        }
    }

    /// Returns the human nodes.
    pub fn humans(&self) -> impl Iterator<Item = (&NodeId, &Human)> {
        self.nodes.iter().filter_map(|(id, node)| Some((id, node.kind.human()?)))
    }

    /// Returns the node at which runs start; `None` if the flow has no nodes.
    pub fn start(&self) -> Option<&NodeId> {
        self.start.as_ref().or_else(|| self.nodes.keys().next())
    }
}

/// The reviewers of nodes with these tags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Route {
    /// A node with one of these tags matches.
    pub tags: Vec<String>,
    /// The reviewers, if the node or its gate names none.
    pub reviewers: Reviewers,
}

/// The defaults of nodes and gates.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Defaults {
    /// How long a review may stay pending.
    pub timeout: Option<Span>,
    /// What happens when the time is up.
    pub on_timeout: Option<OnTimeout>,
    /// What happens when a step fails.
    pub failure: Option<Failure>,
    /// The handlers of reviews.
    pub handlers: Option<Vec<Handler>>,
    /// The people who may decide.
    #[serde(skip_serializing_if = "Reviewers::is_empty")]
    pub reviewers: Reviewers,
    /// The model of agents that name none.
    pub model: Option<String>,
}
