//! Builtins with which an agent asks people on its own initiative: reads the arguments of a call as a question.

mod parameters;

use serde::Deserialize;
use serde_json::Value;
use shared::JsonMap;
use shared::definition::{ActionKind, Builtin, ContentType, Policy, Severity, Stakes, option_text, read_twice};
use shared::id::Username;
use shared::invisible_characters::is_invisible;
use shared::statistics::EscalationReason;
use shared::time::Span;

pub use parameters::parameters;

/// A question that a call asks people.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ask {
    /// A question to be answered.
    Clarification(Clarification),
    /// A draft to be edited.
    Edit(DraftToEdit),
    /// Something to be approved that is not a tool call.
    Approval(Box<Proposal>),
    /// Calls that whoever asks makes itself, to be decided one by one.
    Calls(Box<ProposedCalls>),
    /// A problem that an agent cannot solve.
    Escalation(Box<Escalation>),
    /// A report of progress, and whether to continue.
    Checkpoint(Box<Checkpoint>),
    /// Something that somebody takes over, while whoever asks continues.
    Handoff(Handoff),
}

/// A question, answered by one of the options, by several, or by free text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Clarification {
    pub question: String,
    pub context: Option<String>,
    /// The kind of question, which becomes the category of its review.
    #[serde(rename = "type", default = "guidance")]
    pub category: String,
    #[serde(default)]
    pub options: Vec<OfferedChoice>,
    #[serde(default = "yes")]
    pub allow_free_text: bool,
    /// Whether several options may be chosen.
    #[serde(default)]
    pub multiple: bool,
    pub timeout: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct OfferedChoice {
    pub id: String,
    pub label: String,
    pub description: Option<String>,
}

/// A draft that people are asked to edit.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct DraftToEdit {
    pub content: String,
    #[serde(default)]
    pub content_type: DraftType,
    pub purpose: String,
    #[serde(default)]
    pub focus: Vec<String>,
    pub confidence: Option<f64>,
    pub timeout: Option<Span>,
}

/// How a draft is shown. HTML is shown as code: nothing of it is ever rendered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DraftType {
    Text,
    #[default]
    Markdown,
    Code,
    Json,
    Html,
}

impl From<DraftType> for ContentType {
    fn from(draft: DraftType) -> Self {
        match draft {
            DraftType::Text => Self::Text,
            DraftType::Markdown => Self::Markdown,
            DraftType::Code | DraftType::Json | DraftType::Html => Self::Code,
        }
    }
}

/// Something that an agent is about to do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Proposal {
    pub description: String,
    pub action: ProposedAction,
    /// What is at stake. All alternatives are choices, by the schema of the arguments.
    #[serde(flatten)]
    pub stakes: Stakes,
    pub timeout: Option<Span>,
}

/// The action that a proposal is about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ProposedAction {
    pub name: String,
    #[serde(default)]
    pub arguments: JsonMap,
}

/// Calls that an agent, or another program, is about to make itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ProposedCalls {
    pub description: Option<String>,
    pub actions: Vec<ProposedCall>,
    /// What is at stake with all of them, without alternatives.
    #[serde(flatten)]
    pub stakes: Stakes,
    pub timeout: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ProposedCall {
    pub name: String,
    #[serde(default)]
    pub arguments: JsonMap,
    pub description: Option<String>,
    /// The answers that whoever asks can carry out; `None` for all four. A rejection is always possible.
    pub allowed_decisions: Option<Vec<ActionKind>>,
}

/// A problem that an agent cannot solve.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Escalation {
    pub reason: EscalationReason,
    pub explanation: String,
    pub assessment: Option<String>,
    #[serde(default)]
    pub attempted: Vec<String>,
    #[serde(default)]
    pub recommendations: Vec<String>,
    #[serde(default)]
    pub state: JsonMap,
    #[serde(default = "high")]
    pub urgency: Severity,
    pub timeout: Option<Span>,
}

/// A report of an agent's progress.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Checkpoint {
    pub phase: String,
    /// The progress of the phase, from 0 to 1.
    pub progress: f64,
    #[serde(default)]
    pub done: Vec<String>,
    #[serde(default)]
    pub next: Vec<String>,
    #[serde(default)]
    pub issues: Vec<String>,
    pub notes: Option<String>,
    pub timeout: Option<Span>,
}

/// Something that a person is to take over. Nobody waits for it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Handoff {
    /// A role or a username.
    pub to: String,
    pub reason: String,
    pub summary: Option<String>,
}

fn high() -> Severity {
    Severity::High
}

fn yes() -> bool {
    true
}

fn guidance() -> String {
    "guidance".to_owned()
}

/// Reads the question of a call. `Err` says what is wrong with its arguments beyond their schema.
pub(super) fn read(builtin: Builtin, arguments: &JsonMap) -> Result<Ask, String> {
    let arguments = Value::Object(arguments.clone());
    let ask = match builtin {
        Builtin::AskHuman => serde_json::from_value(arguments).map(Ask::Clarification),
        Builtin::RequestEdit => serde_json::from_value(arguments).map(Ask::Edit),
        Builtin::RequestApproval => serde_json::from_value(arguments).map(Ask::Approval),
        Builtin::ReviewCalls => serde_json::from_value(arguments).map(Ask::Calls),
        Builtin::Escalate => serde_json::from_value(arguments).map(Ask::Escalation),
        Builtin::Checkpoint => serde_json::from_value(arguments).map(Ask::Checkpoint),
        Builtin::Handoff => serde_json::from_value(arguments).map(Ask::Handoff),
        _ => return Err("it asks nobody".to_owned()),
    };
    let ask = ask.map_err(|error| error.to_string())?;
    match &ask {
        Ask::Clarification(Clarification { options, multiple: true, .. }) if options.is_empty() => {
            return Err("`multiple` needs `options` to choose from".to_owned());
        }
        Ask::Clarification(Clarification { options, allow_free_text, .. }) => {
            if options.is_empty() && !allow_free_text {
                return Err(
                    "without options, free text is the only answer, so `allow_free_text` cannot be false".to_owned()
                );
            }
            unique("option", options.iter().map(|option| option.id.as_str()))?;
        }
        Ask::Edit(DraftToEdit { content, content_type: DraftType::Json, .. }) => {
            serde_json::from_str::<Value>(content).map_err(|error| format!("`content` is not valid JSON: {error}"))?;
        }
        Ask::Handoff(Handoff { to, .. }) if to.parse::<Username>().is_err() => {
            return Err(format!("`to`: `{to}` is neither a role nor a username"));
        }
        Ask::Calls(calls) => {
            let only_reject = |call: &ProposedCall| {
                call.allowed_decisions
                    .as_ref()
                    .is_some_and(|kinds| kinds.iter().all(|kind| *kind == ActionKind::Reject))
            };
            if let Some(index) = calls.actions.iter().position(only_reject) {
                return Err(format!("`allowed_decisions` of action {} leave nothing but a rejection", index + 1));
            }
        }
        Ask::Edit(_) | Ask::Escalation(_) | Ask::Checkpoint(_) | Ask::Handoff(_) => {}
        Ask::Approval(proposal) => {
            let own = [APPROVE, REJECT];
            unique("alternative", own.into_iter().chain(proposal.stakes.choices().map(|one| one.id.as_str())))?;
        }
    }
    Ok(ask)
}

impl Ask {
    /// Returns the time limit that whoever asks has set.
    pub(super) fn timeout(&self) -> Option<Span> {
        match self {
            Self::Clarification(asked) => asked.timeout,
            Self::Edit(draft) => draft.timeout,
            Self::Approval(proposal) => proposal.timeout,
            Self::Calls(calls) => calls.timeout,
            Self::Escalation(escalation) => escalation.timeout,
            Self::Checkpoint(checkpoint) => checkpoint.timeout,
            Self::Handoff(_) => None,
        }
    }
}

/// Checks that the time limit of a question is one that the engine can wait for.
pub(super) fn can_wait(ask: &Ask) -> Result<(), String> {
    let why = ask.timeout().and_then(Span::why_no_wait);
    why.map_or(Ok(()), |why| Err(format!("`timeout`: {why}")))
}

/// Checks that the names of proposed actions are plain: they stand in titles, and in sentences of the server's own. This
/// is checked when a question is asked, never when it is answered.
pub(super) fn can_be_named(ask: &Ask) -> Result<(), String> {
    let names: Vec<&str> = match ask {
        Ask::Approval(proposal) => vec![&proposal.action.name],
        Ask::Calls(calls) => calls.actions.iter().map(|call| call.name.as_str()).collect(),
        _ => return Ok(()),
    };
    let is_plain = |name: &&str| {
        let marks = |c: char| c == '`' || c.is_control() || is_invisible(c);
        !name.trim().is_empty() && !name.contains(marks)
    };
    match names.iter().position(|name| !is_plain(name)) {
        Some(index) => Err(format!(
            "the name of action {} is blank, or has a backtick, a line break, a tab or an invisible character: send \
             the plain name of what is called",
            index + 1
        )),
        None => Ok(()),
    }
}

/// Checks that people can tell the offered answers apart. This is checked when a question is asked, never when it is
/// answered: a question that an earlier version asked is still answered.
pub(super) fn can_be_told_apart(ask: &Ask) -> Result<(), String> {
    match ask {
        Ask::Clarification(asked) => unlike(
            "option",
            asked.options.iter().map(|option| option_text(&option.label, option.description.as_deref())),
        ),
        Ask::Approval(proposal) => {
            let texts = proposal.stakes.choices().map(|one| one.description.clone());
            unlike("alternative", [APPROVE, REJECT].map(str::to_owned).into_iter().chain(texts))
        }
        _ => Ok(()),
    }
}

/// Checks that several people can decide a question by votes. `Err` says what would have to be different.
pub(super) fn votable(ask: &Ask, policy: &Policy) -> Result<(), String> {
    if policy.is_first() {
        return Ok(());
    }
    match ask {
        Ask::Clarification(Clarification { allow_free_text: true, .. } | Clarification { multiple: true, .. }) => {
            Err("free text and answers of several options cannot be decided by votes: set `options` and \
             `allow_free_text: false`"
                .to_owned())
        }
        Ask::Calls(_) | Ask::Escalation(_) | Ask::Checkpoint(_) | Ask::Handoff(_) => {
            let message = "calls, escalations, checkpoints and hand-offs are decided by one person: leave `policy` out";
            Err(message.to_owned())
        }
        Ask::Approval(approval) if !approval.stakes.alternatives.is_empty() => {
            Err("if several people decide, a vote for an alternative would count as an approval: leave \
             `alternatives` or `policy` out"
                .to_owned())
        }
        Ask::Clarification(_) | Ask::Edit(_) | Ask::Approval(_) => Ok(()),
    }
}

/// The id of the option by which people approve a proposal.
pub(super) const APPROVE: &str = "approve";
/// The id of the option by which they reject it.
pub(super) const REJECT: &str = "reject";

/// Refuses texts that read the same.
fn unlike(what: &str, texts: impl Iterator<Item = String>) -> Result<(), String> {
    read_twice(texts).map_or(Ok(()), |twice| {
        Err(format!("the {what} `{twice}` reads like another answer: people could not tell them apart"))
    })
}

fn unique<'a>(what: &str, ids: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut known = Vec::new();
    for id in ids {
        if id.trim().is_empty() {
            return Err(format!("an {what} needs an id"));
        }
        if known.contains(&id) {
            return Err(format!("the id of the {what} `{id}` is used twice, or reserved"));
        }
        known.push(id);
    }
    Ok(())
}
