//! The flow model: what a flow file says, in types. One model for YAML, JSON and the Rust builder.
//!
//! This module owns the shapes and their JSON forms (strict: an unknown key is an error). Reading files with line and
//! column, and every check that needs more than one place of the file, is the server's (`backend::flow`).

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
pub use choice::{Choice, ChoiceKind, as_read, option_text, read_twice};
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

/// A whole flow file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Flow {
    /// The name under which the flow is saved; saving again makes a new version.
    pub id: FlowId,
    /// What people call it; the id where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// JSON Schema of an object. The launch form is made from it, and its properties become state keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The state keys that are the run's output; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Vec<String>>,
    /// JSON Schema of the output: a run whose output does not fit fails instead of giving it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The first node; default: the first one written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<NodeId>,
    /// Models with their instructions and tools.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub agents: IndexMap<String, Agent>,
    /// What agents and tool nodes may call.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub tools: IndexMap<String, Tool>,
    /// What requires approval before it happens.
    #[serde(default, skip_serializing_if = "Gates::is_empty")]
    pub gates: Gates,
    /// Checks on every approved action, edit and output; default: `pii-redaction` and `code-safety`. `false`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<Guardrails>,
    /// What nodes and gates use where they say nothing themselves.
    #[serde(default, skip_serializing_if = "Defaults::is_empty")]
    pub defaults: Defaults,
    /// Who may decide at nodes with certain tags; the first that fits a node counts, before `defaults.reviewers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routing: Vec<Route>,
    /// How long finished runs are kept before they are archived, such as `90d`; default: the server's setting. That of the
    /// newest version counts for runs of all versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Span>,
    /// The nodes by id: at least one, at most 500. The first is where runs start, unless `start` names another.
    pub nodes: IndexMap<NodeId, Node>,
}

impl Flow {
    /// The title, or the id.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(self.id.as_str())
    }

    /// Who may decide at a node: those that it or its gate names, else those of the first route that fits its tags, else
    /// the defaults'.
    pub fn reviewers_at(&self, node: &str, own: &Reviewers) -> Reviewers {
        if own.names_somebody() {
            return own.clone();
        }
        let tags = self.nodes.get(node).map(|node| node.tags.as_slice()).unwrap_or_default();
        let fits = |route: &&Route| route.tags.iter().any(|tag| tags.contains(tag));
        let route = self.routing.iter().find(fits).map(|route| &route.reviewers);
        let Reviewers { not_requester, not_same_as, .. } = own.clone();
        let named = route.unwrap_or(&self.defaults.reviewers).clone();
        // Whoever only shuts somebody out names nobody.
        Reviewers {
            not_requester: named.not_requester || not_requester,
            not_same_as: not_same_as.or(named.not_same_as),
            ..named
        }
    }

    /// The first node.
    pub fn start(&self) -> Option<&NodeId> {
        self.start.as_ref().or_else(|| self.nodes.keys().next())
    }
}

/// Who may decide at nodes with these tags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Route {
    /// A node with one of these tags fits.
    pub tags: Vec<String>,
    /// Who may decide there, where the node or its gate names nobody.
    pub reviewers: Reviewers,
}

/// What nodes and gates use where they say nothing themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[serde(default)]
pub struct Defaults {
    /// How long a review waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// What happens then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// What happens when a step fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Who resolves reviews.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handlers: Option<Vec<Handler>>,
    /// Who may decide.
    #[serde(skip_serializing_if = "Reviewers::is_empty")]
    pub reviewers: Reviewers,
    /// The model of agents that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Defaults {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
