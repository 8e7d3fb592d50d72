//! What is said of an action that a gate holds back: a call runs or does not, an agent begins, an output is given.

use shared::definition::ActionKind;
use shared::review::{Action, ActionType};

use super::guardrail_notes::Leave;

/// The words for one type of action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionWords {
    /// What happens once it is approved: "runs".
    pub happens: &'static str,
    /// What happens where it is not: "does not run".
    pub not: &'static str,
    /// Where a guardrail stopped it: "blocked, did not run".
    pub blocked: &'static str,
    /// What a reviewer may change: "arguments".
    pub content: &'static str,
    /// On the button that opens what may be changed.
    pub edit: &'static str,
    /// On the button of an answer in its place.
    pub respond: &'static str,
    /// What is said below the button that rejects.
    pub rejected: &'static str,
    /// What is said where it holds nothing.
    pub nothing: &'static str,
}

/// The words for an action.
pub fn words(action_type: ActionType) -> ActionWords {
    match action_type {
        ActionType::Output => ActionWords {
            happens: "is given",
            not: "is not given",
            blocked: "blocked, was not given",
            content: "output",
            edit: "Edit output",
            respond: "Respond",
            rejected: "Nothing is given, and the run fails.",
            nothing: "There is no output",
        },
        ActionType::Agent | ActionType::Emergent => ActionWords {
            happens: "runs",
            not: "does not run",
            blocked: "blocked, did not run",
            content: "prompt",
            edit: "Edit prompt",
            respond: "Answer in its place",
            rejected: "The agent does not run, and its step fails.",
            nothing: "Without a prompt",
        },
        ActionType::Tool | ActionType::StrategyOverride => ActionWords {
            happens: "runs",
            not: "does not run",
            blocked: "blocked, did not run",
            content: "arguments",
            edit: "Edit arguments",
            respond: "Respond without running",
            rejected: "Nothing runs.",
            nothing: "Called without arguments",
        },
    }
}

/// Whether people read what it holds as texts: what an agent is told, what is given out. Calls are data.
pub fn is_read(action_type: ActionType) -> bool {
    matches!(action_type, ActionType::Output | ActionType::Agent | ActionType::Emergent)
}

/// Whether an agent reads what is said beside an approval: the one that wants it, or the one that is about to run.
pub fn is_told(action: &Action) -> bool {
    action.agent.is_some() || action.action_type == ActionType::Agent
}

/// What an action is called on buttons.
pub fn name(action: &Action) -> &str {
    if action.action_type == ActionType::Output { "the output" } else { &action.name }
}

impl ActionWords {
    /// What a choice would do, with what guardrails say of it, and the class of its tag. Of none: what approving would do.
    pub fn would(&self, kind: Option<ActionKind>, leave: Leave) -> (&'static str, String) {
        let Self { happens, not, content, .. } = self;
        match (kind, leave) {
            (Some(ActionKind::Reject), _) => ("tag stop", (*not).to_owned()),
            (Some(ActionKind::Respond), Leave::Blocked) => ("tag stop", "your answer would be blocked".to_owned()),
            (Some(ActionKind::Respond), _) => ("tag", format!("{not}, your answer is its result")),
            (_, Leave::Blocked) => ("tag stop", "would be blocked".to_owned()),
            (_, Leave::Unasked) => ("tag", format!("your {content}, not checked yet")),
            (None, Leave::Redacted) => ("tag warn", format!("{happens} redacted if you approve")),
            (Some(ActionKind::Approve), Leave::Redacted) => ("tag warn", format!("{happens} redacted")),
            (Some(ActionKind::Edit), Leave::Redacted) => {
                ("tag warn", format!("{happens} with your {content}, redacted"))
            }
            (None, leave) => (tag(leave, "tag"), format!("{happens} if you approve")),
            (Some(ActionKind::Approve), leave) => (tag(leave, "tag go"), format!("{happens} as asked")),
            (Some(ActionKind::Edit), leave) => (tag(leave, "tag accent"), format!("{happens} with your {content}")),
        }
    }
}

fn tag(leave: Leave, free: &'static str) -> &'static str {
    if leave == Leave::Warned { "tag warn" } else { free }
}
