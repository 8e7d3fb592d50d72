//! Texts about actions that a gate holds back: a call runs or does not, an agent begins, a specialist is created, a
//! strategy changes, an output is returned.

use shared::definition::ActionKind;
use shared::review::{Action, ActionType, Review};

use super::guardrail_notes::Leave;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionWords {
    /// The effect of an approval: "runs".
    pub happens: &'static str,
    /// The effect of a rejection: "does not run".
    pub not: &'static str,
    /// The effect of a guardrail's veto: "blocked, did not run".
    pub blocked: &'static str,
    /// The name of what a reviewer may change: "arguments".
    pub content: &'static str,
    /// The label of the button that opens the editor.
    pub edit: &'static str,
    /// The label of the button for an answer in place of the action.
    pub respond: &'static str,
    /// The text below the button that rejects.
    pub rejected: &'static str,
    /// The text in place of empty content.
    pub nothing: &'static str,
}

/// Whether the actions of a review are calls that whoever asks makes itself, once they are decided. Countersign carries
/// out all others.
pub fn are_proposed(review: &Review) -> bool {
    review.asked_by.is_some() || review.run_id.is_none()
}

pub fn words(review: &Review, action: &Action) -> ActionWords {
    if !are_proposed(review) {
        return words_of(action.action_type);
    }
    ActionWords {
        happens: "may be called",
        not: "is not to be called",
        blocked: "blocked, is not to be called",
        respond: "Respond without the call",
        rejected: "Whoever asked is told to make no call.",
        ..words_of(action.action_type)
    }
}

/// The text in place of the content of an action that has none.
pub fn nothing(action_type: ActionType) -> &'static str {
    words_of(action_type).nothing
}

fn words_of(action_type: ActionType) -> ActionWords {
    match action_type {
        ActionType::Output => ActionWords {
            happens: "is returned",
            not: "is not returned",
            blocked: "blocked, was not returned",
            content: "output",
            edit: "Edit output",
            respond: "Respond",
            rejected: "Nothing is returned: the run fails, or the step that called this flow.",
            nothing: "There is no output",
        },
        ActionType::Agent => ActionWords {
            happens: "runs",
            not: "does not run",
            blocked: "blocked, did not run",
            content: "prompt",
            edit: "Edit prompt",
            respond: "Answer in its place",
            rejected: "The agent does not run. Its step fails, unless others go on without it.",
            nothing: "Without a prompt",
        },
        ActionType::Emergent => ActionWords {
            happens: "is created",
            not: "is not created",
            blocked: "blocked, was not created",
            content: "details",
            edit: "Edit the specialist",
            respond: "Respond without creating it",
            rejected: "No specialist is created, and the agent is told.",
            nothing: "Without details",
        },
        ActionType::StrategyOverride => ActionWords {
            happens: "takes effect",
            not: "does not take effect",
            blocked: "blocked, did not take effect",
            content: "details",
            edit: "Edit the change",
            respond: "Respond without changing it",
            rejected: "The strategy stays as it is, and the agent is told.",
            nothing: "Without details",
        },
        ActionType::Tool => ActionWords {
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

/// Whether the content of such actions is text for people to read (a prompt, a reason, an output). The content of tool
/// calls is data.
pub fn is_read(action_type: ActionType) -> bool {
    action_type != ActionType::Tool
}

/// Whether an agent reads the note beside an approval: the agent that requests the action, or the one that is about to
/// run.
pub fn is_told(action: &Action) -> bool {
    action.agent.is_some() || action.action_type == ActionType::Agent
}

/// The kind of an action: `tool call of writer`.
pub fn kind(action: &Action) -> String {
    match (action.action_type, &action.agent) {
        (ActionType::Tool, Some(agent)) => format!("tool call of {agent}"),
        (ActionType::Tool, None) => "tool call".to_owned(),
        (ActionType::Agent, _) => "agent about to run".to_owned(),
        (ActionType::Emergent, Some(agent)) => format!("new specialist of {agent}"),
        (ActionType::Emergent, None) => "new specialist".to_owned(),
        (ActionType::Output, _) => "final output".to_owned(),
        (ActionType::StrategyOverride, _) => "change of strategy".to_owned(),
    }
}

/// The name of an action on buttons and in the record.
pub fn name(action: &Action) -> String {
    match action.action_type {
        ActionType::Output => "the output".to_owned(),
        ActionType::Emergent => format!("the specialist {}", action.name),
        ActionType::StrategyOverride => format!("the change to {}", action.name),
        ActionType::Tool | ActionType::Agent => action.name.clone(),
    }
}

/// A phrase for answering in place of an action: `respond without running publish`; in the past tense if `past`.
pub fn responds(action: &Action, past: bool) -> String {
    let name = name(action);
    let (answer, respond) = if past { ("answered", "responded") } else { ("answer", "respond") };
    match action.action_type {
        ActionType::Agent => format!("{answer} in place of {name}"),
        ActionType::Tool => format!("{respond} without running {name}"),
        ActionType::Emergent => format!("{respond} without creating {name}"),
        ActionType::StrategyOverride => format!("{respond} without making {name}"),
        ActionType::Output => format!("{respond} without returning {name}"),
    }
}

/// The label of the text field for the reason of a rejection, or for an answer in place of an action. It says who gets
/// the text.
pub fn asks_for(action: &Action, kind: ActionKind) -> &'static str {
    match (kind, action.action_type, &action.agent) {
        (ActionKind::Respond, ActionType::Agent, _) => "The answer in its place",
        (ActionKind::Respond, _, Some(_)) => "The result that the agent gets instead",
        (ActionKind::Respond, ..) => "The result in its place",
        (_, _, Some(_)) => "Why not? The agent is told.",
        (_, ActionType::Agent, None) => "Why not? Whoever is waiting for it gets this as the reason.",
        (_, _, None) => "Why not? It fails with this reason.",
    }
}

impl ActionWords {
    /// The effect of a choice, given what guardrails say about it: the CSS class of a tag, and its text. `None` stands
    /// for the effect that an approval would have.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fixtures::calls;

    #[test]
    fn each_type_of_action_has_words_of_its_own() {
        let mut action = calls(1, 1).actions.remove(0);
        action.name = "tester".into();
        let mut says = |action_type| {
            action.action_type = action_type;
            (name(&action), responds(&action, false), words_of(action_type).would(None, Leave::Free).1)
        };
        let specialist =
            ("the specialist tester", "respond without creating the specialist tester", "is created if you approve");
        let own =
            |(name, responds, would): (&str, &str, &str)| (name.to_owned(), responds.to_owned(), would.to_owned());
        assert_eq!(says(ActionType::Emergent), own(specialist));
        assert_eq!(says(ActionType::StrategyOverride).2, "takes effect if you approve");
        assert_eq!(says(ActionType::Agent).1, "answer in place of tester");
        assert_eq!(says(ActionType::Tool).1, "respond without running tester");
    }

    #[test]
    fn a_call_that_whoever_asks_makes_is_not_said_to_run() {
        let mut review = calls(1, 1);
        let says = |review: &Review, kind| words(review, &review.actions[0]).would(kind, Leave::Free).1;
        assert_eq!(says(&review, Some(ActionKind::Approve)), "runs as asked");
        review.run_id = None;
        assert_eq!(says(&review, Some(ActionKind::Approve)), "may be called as asked");
        assert_eq!(says(&review, Some(ActionKind::Edit)), "may be called with your arguments");
        assert_eq!(says(&review, Some(ActionKind::Reject)), "is not to be called");
    }

    #[test]
    fn nobody_is_said_to_be_told_where_nobody_is() {
        let mut action = calls(1, 1).actions.remove(0);
        assert_eq!(asks_for(&action, ActionKind::Reject), "Why not? The agent is told.");
        (action.agent, action.action_type) = (None, ActionType::Output);
        assert_eq!(asks_for(&action, ActionKind::Reject), "Why not? It fails with this reason.");
    }
}
