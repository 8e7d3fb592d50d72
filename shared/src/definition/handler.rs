//! Handlers, which resolve a review before or instead of people, in the order in which they are asked.

use serde::{Deserialize, Serialize};

use crate::time::Span;

/// A handler of a review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Handler {
    /// People, in the console and everywhere else.
    Human,
    /// The terminal that runs the flow.
    Cli,
    /// An automatic decision: alone, or after others that passed on.
    Auto(AutoHandler),
    /// A model that decides if it is confident enough, and otherwise passes on.
    Judge(Judge),
    /// Another program, over HTTP, that decides, passes on, or answers later.
    Webhook(WebhookHandler),
    /// A channel in Slack, where those who may decide are asked.
    Slack(SlackHandler),
    /// A function of the program that runs the flow, by its name. Flow files cannot use it.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Function(String),
}

/// The decision of an automatic handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "RawAuto", into = "RawAuto")]
#[cfg_attr(feature = "schema", schemars(with = "RawAuto"))]
pub enum AutoHandler {
    /// Accepts, as the first accepting option or by approving every action.
    Approve,
    /// Rejects, with this reason.
    Reject(String),
}

impl AutoHandler {
    /// The default reason for a rejection.
    pub const REJECTED: &str = "Rejected automatically.";
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "AutoHandler"))]
#[serde(untagged, expecting = "expected `approve`, `reject` or `{ reject: reason }`")]
enum RawAuto {
    Word(AutoWord),
    Reason {
        /// The reason for the rejection, not blank: agents are told it, and it is the error of a run that it ends.
        reject: String,
    },
}

#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum AutoWord {
    Approve,
    Reject,
}

impl From<RawAuto> for AutoHandler {
    fn from(raw: RawAuto) -> Self {
        match raw {
            RawAuto::Word(AutoWord::Approve) => Self::Approve,
            RawAuto::Word(AutoWord::Reject) => Self::Reject(Self::REJECTED.to_owned()),
            RawAuto::Reason { reject } => Self::Reject(reject),
        }
    }
}

impl From<AutoHandler> for RawAuto {
    fn from(auto: AutoHandler) -> Self {
        match auto {
            AutoHandler::Approve => Self::Word(AutoWord::Approve),
            AutoHandler::Reject(reject) => Self::Reason { reject },
        }
    }
}

/// A model that decides if it is confident enough.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct Judge {
    /// `provider/model`; providers: openai, anthropic, ollama, demo. `defaults.model` does not count here.
    pub model: String,
    /// The criteria of the judge.
    pub criteria: String,
    /// The lowest confidence with which it decides; default 0.7.
    pub threshold: Option<f64>,
    /// How long it may take, including retries; then it passes on. Default: 5 minutes.
    pub timeout: Option<Span>,
}

impl Judge {
    /// Returns the lowest confidence with which the judge decides, from 0 to 1; default 0.7.
    pub fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(0.7)
    }

    /// Returns how long the judge may take, including retries; default 5 minutes.
    pub fn timeout(&self) -> Span {
        self.timeout.unwrap_or(Span::secs(300))
    }
}

/// Another program that decides.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct WebhookHandler {
    /// The URL of the program: `https://…`.
    pub url: String,
    /// What happens if it cannot be reached or gives no valid answer; default: reject.
    pub on_error: Option<OnHandlerError>,
    /// How long it may take, including retries and later answers. Default: 30 seconds.
    pub timeout: Option<Span>,
}

impl WebhookHandler {
    /// Returns how long the program may take, including retries and later answers; default 30 s.
    pub fn timeout(&self) -> Span {
        self.timeout.unwrap_or(Span::secs(30))
    }
}

/// What happens if a handler cannot answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnHandlerError {
    /// The review is rejected.
    #[default]
    Reject,
    /// The next handler is asked.
    Pass,
}

/// A channel in which people decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), serde(deny_unknown_fields))]
pub struct SlackHandler {
    /// The channel: `#approvals`, or its id.
    pub channel: String,
    /// How long people there may take; then the next handler is asked. Default: as long as the review waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether reactions to the message decide like its buttons: :white_check_mark: is the first option that accepts,
    /// :x: the first that stops.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reactions: bool,
}
