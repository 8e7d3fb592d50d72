//! `tools`: the tools that agents and tool nodes may call.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

use super::Severity;
use super::gate::ActionKind;
use super::on_timeout::OnTimeout;
use super::policy::{Policy, Reviewers};
use crate::time::Span;

/// A tool, with exactly one of `http`, `mcp`, `builtin` and `agent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "RawTool", into = "RawTool")]
#[cfg_attr(feature = "schema", schemars(with = "RawTool"))]
pub struct Tool {
    /// The description for models and reviewers.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Option<Value>,
    /// The kind of the tool.
    pub kind: ToolKind,
    /// The same as `gates.before_tool.<name>: true`.
    pub ask_permission: AskPermission,
    /// Whether a call that was lost in a crash may be made again, with the same idempotency key.
    pub idempotent: bool,
    /// How long a call may take, default 30s; for a tool that asks people, how long it waits, default for ever.
    pub timeout: Option<Span>,
    /// The reviewers, for tools that ask people.
    pub reviewers: Reviewers,
    /// The policy by which several decisions become one, for tools that ask people.
    pub policy: Policy,
    /// How much is at stake, for tools that ask people; none: the agent decides.
    pub severity: Option<Severity>,
    /// What happens if no one answers in time; none: the default of each such tool.
    pub on_timeout: Option<OnTimeout>,
}

impl Tool {
    /// The default limit for a call.
    pub const DEFAULT_TIMEOUT: Span = Span::secs(30);

    /// Creates a tool of this kind, with the default settings.
    pub fn new(kind: ToolKind) -> Self {
        Self {
            description: None,
            parameters: None,
            kind,
            ask_permission: AskPermission::default(),
            idempotent: false,
            timeout: None,
            reviewers: Reviewers::default(),
            policy: Policy::default(),
            severity: None,
            on_timeout: None,
        }
    }

    /// Creates a tool from an agent, with this description.
    pub fn of_agent(agent: &str, description: Option<String>) -> Self {
        Self { description, ..Self::new(ToolKind::Agent(agent.to_owned())) }
    }

    /// Returns how long a call may take.
    pub fn timeout(&self) -> Span {
        self.timeout.unwrap_or(Self::DEFAULT_TIMEOUT)
    }
}

/// Whether calls of a tool need approval, even without a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum AskPermission {
    /// `true`: with all four answers.
    Switch(bool),
    /// With these answers.
    Answers(AllowedDecisions),
}

/// The allowed answers to a call that needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct AllowedDecisions {
    /// The answers; reject is always allowed.
    pub allowed_decisions: Vec<ActionKind>,
}

impl Default for AskPermission {
    fn default() -> Self {
        Self::Switch(false)
    }
}

impl AskPermission {
    /// Whether calls need no approval.
    pub fn is_no(&self) -> bool {
        *self == Self::Switch(false)
    }

    /// Returns the allowed answers, if they are set.
    pub fn allowed_decisions(&self) -> Option<&[ActionKind]> {
        match self {
            Self::Switch(_) => None,
            Self::Answers(answers) => Some(&answers.allowed_decisions),
        }
    }
}

/// The kinds of tools.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolKind {
    /// An HTTP request.
    Http(HttpTool),
    /// A tool of an MCP server that the server's settings name.
    Mcp(McpTool),
    /// A part of Countersign.
    Builtin(Builtin),
    /// An agent of the flow: it gets a task, and its answer is the result.
    Agent(String),
    /// A function of the program that Countersign runs in, with the tool's name. Flow files cannot use it.
    Function,
}

/// An HTTP request; all strings are templates, and may use `secret.NAME`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct HttpTool {
    /// `GET`, `POST`, …; default `POST`.
    #[serde(default = "post")]
    pub method: String,
    /// An `http` or `https` URL. Its host must not contain a secret.
    pub url: String,
    /// Values of further headers, by name. `host`, `content-length` and other headers of the connection are refused.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, String>,
    /// The body; default: the arguments as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

fn post() -> String {
    "POST".to_owned()
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct McpTool {
    /// The server's name in the server's settings.
    pub server: String,
    /// The tool's name there.
    pub tool: String,
}

/// The builtin tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Builtin {
    /// Waits for `duration` without holding a worker.
    Sleep,
    /// Writes `{key, value}` to the state, if the node may write the key.
    SetState,
    /// Pretends to publish `{title, text}`, and says where.
    DemoPublish,
    /// Asks a person.
    AskHuman,
    /// Asks a person to edit a draft.
    RequestEdit,
    /// Asks for approval to do something that is not a tool call.
    RequestApproval,
    /// Asks for a decision on each of several calls that whoever asks makes itself.
    ReviewCalls,
    /// Hands a problem to a person.
    Escalate,
    /// Shows progress, and asks whether to continue.
    Checkpoint,
    /// Hands work to a person, and continues.
    Handoff,
    /// Creates a specialist in a team.
    SpawnSpecialist,
    /// Changes a team's strategy.
    SetStrategy,
}

impl Builtin {
    /// Whether a call asks people and returns their answer.
    pub fn asks_people(self) -> bool {
        matches!(
            self,
            Self::AskHuman
                | Self::RequestEdit
                | Self::RequestApproval
                | Self::ReviewCalls
                | Self::Escalate
                | Self::Checkpoint
                | Self::Handoff
        )
    }
}

#[serde_with::skip_serializing_none]
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(rename = "Tool"))]
struct RawTool {
    /// The description for models and reviewers.
    description: Option<String>,
    /// JSON Schema of its arguments.
    parameters: Option<Value>,
    /// An HTTP request to send.
    http: Option<HttpTool>,
    /// A tool of an MCP server that the settings name.
    mcp: Option<McpTool>,
    /// A builtin tool of Countersign.
    builtin: Option<Builtin>,
    /// An agent of the flow, which gets a task and whose answer is the result.
    agent: Option<String>,
    /// Not in the schema, because flow files cannot use it: only a program knows its functions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    function: bool,
    /// Whether each call needs approval, and which answers are allowed; default: false.
    #[serde(default, skip_serializing_if = "AskPermission::is_no")]
    ask_permission: AskPermission,
    /// Whether a call whose outcome is unknown may be made again, with the same idempotency key; default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    idempotent: bool,
    /// How long a call may take, default 30s; for a tool that asks people, how long it waits, default for ever.
    timeout: Option<Span>,
    /// The reviewers, for tools that ask people.
    #[serde(default, skip_serializing_if = "Reviewers::is_empty")]
    reviewers: Reviewers,
    /// The policy by which several decisions become one, for tools that ask people.
    #[serde(default, skip_serializing_if = "Policy::is_first")]
    policy: Policy,
    /// How much is at stake, for tools that ask people; default: the agent decides.
    severity: Option<Severity>,
    /// What happens if no one answers in time; default: that of each such tool.
    on_timeout: Option<OnTimeout>,
}

impl TryFrom<RawTool> for Tool {
    type Error = String;
    fn try_from(raw: RawTool) -> Result<Self, String> {
        let kind = match (raw.http, raw.mcp, raw.builtin, raw.agent, raw.function) {
            (Some(http), None, None, None, false) => ToolKind::Http(http),
            (None, Some(mcp), None, None, false) => ToolKind::Mcp(mcp),
            (None, None, Some(builtin), None, false) => ToolKind::Builtin(builtin),
            (None, None, None, Some(agent), false) => ToolKind::Agent(agent),
            (None, None, None, None, true) => ToolKind::Function,
            _ => return Err("a tool has exactly one of `http`, `mcp`, `builtin` and `agent`".to_owned()),
        };
        Ok(Self {
            description: raw.description,
            parameters: raw.parameters,
            kind,
            ask_permission: raw.ask_permission,
            idempotent: raw.idempotent,
            timeout: raw.timeout,
            reviewers: raw.reviewers,
            policy: raw.policy,
            severity: raw.severity,
            on_timeout: raw.on_timeout,
        })
    }
}

impl From<Tool> for RawTool {
    fn from(tool: Tool) -> Self {
        let function = tool.kind == ToolKind::Function;
        let (http, mcp, builtin, agent) = match tool.kind {
            ToolKind::Http(http) => (Some(http), None, None, None),
            ToolKind::Mcp(mcp) => (None, Some(mcp), None, None),
            ToolKind::Builtin(builtin) => (None, None, Some(builtin), None),
            ToolKind::Agent(agent) => (None, None, None, Some(agent)),
            ToolKind::Function => (None, None, None, None),
        };
        Self {
            description: tool.description,
            parameters: tool.parameters,
            http,
            mcp,
            builtin,
            agent,
            function,
            ask_permission: tool.ask_permission,
            idempotent: tool.idempotent,
            timeout: tool.timeout,
            reviewers: tool.reviewers,
            policy: tool.policy,
            severity: tool.severity,
            on_timeout: tool.on_timeout,
        }
    }
}
