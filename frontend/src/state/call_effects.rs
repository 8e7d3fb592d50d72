//! The effects of decisions on actions, in sentences. Countersign carries out what a gate holds back; calls that an agent
//! or a program asks about it makes itself, and is only told what was decided.

use shared::definition::ActionKind;
use shared::review::{ActionType, Review};

use super::action_words;
use super::effects::{Hearer, hearer};

/// What becomes of the actions of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate<'a> {
    /// All are rejected; `reason` says that the person has written one for all of them.
    Rejected { reason: bool },
    /// None is carried out, and at least one is answered.
    Answered,
    /// Guardrails would block all that are not rejected.
    Blocked,
    /// Guardrails would block those with these names.
    PartlyBlocked(&'a str),
    /// Those that were approved are carried out.
    Approved,
}

/// What follows from a decision on the actions of a review.
pub fn sentence(review: &Review, fate: Fate<'_>) -> String {
    let Some(first) = review.actions.first() else { return String::new() };
    let words = action_words::words(review, first);
    let is_call = first.action_type == ActionType::Tool;
    match (hearer_name(review), fate) {
        (Some(who), Fate::Rejected { reason: true }) => {
            format!("{who} is told to make no call, and gets what you wrote.")
        }
        (Some(who), Fate::Rejected { reason: false }) => format!("{who} is told to make no call."),
        (Some(who), Fate::Answered) => format!("{who} is told to make no call, and gets your answer as the result."),
        (Some(who), Fate::Blocked) => format!("{who} would be told to make no call: a guardrail would block it."),
        (Some(who), Fate::PartlyBlocked(names)) => {
            format!("{who} may make the approved calls, but a guardrail would block {names}.")
        }
        (Some(who), Fate::Approved) => format!("{who} may make the approved calls exactly as shown."),
        (None, Fate::Rejected { reason: true }) if is_call && first.agent.is_some() => {
            "Nothing runs; the agent is told what you wrote.".to_owned()
        }
        (None, Fate::Rejected { .. }) => words.rejected.to_owned(),
        (None, Fate::Answered) => "Nothing runs; your answer is used as the result.".to_owned(),
        (None, Fate::Blocked) => "Nothing would run: a guardrail would block it.".to_owned(),
        (None, Fate::PartlyBlocked(names)) => format!("Approved calls run, but a guardrail would block {names}."),
        (None, Fate::Approved) if is_call => "Approved calls run exactly as shown.".to_owned(),
        (None, Fate::Approved) => format!("It {} exactly as shown.", words.happens),
    }
}

/// The label of the text field for the reason of a rejection, or for an answer in place of an action. It says who gets
/// the text.
pub fn asks_for(review: &Review, kind: ActionKind) -> Option<String> {
    let who = hearer_name(review)?;
    Some(match kind {
        ActionKind::Respond => format!("The result in its place. {who} gets it."),
        _ => format!("Why not? {who} is told."),
    })
}

/// Whoever is told of a decision on calls that it makes itself, at the beginning of a sentence; `None` if Countersign
/// carries the actions out.
fn hearer_name(review: &Review) -> Option<String> {
    if !action_words::are_proposed(review) {
        return None;
    }
    Some(match hearer(review) {
        Hearer::Caller => review.requested_by.to_string(),
        Hearer::Step => "The run".to_owned(),
        _ => "The agent".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use shared::review::AskedBy;

    use super::*;
    use crate::state::fixtures::calls;

    #[test]
    fn calls_that_whoever_asks_makes_itself_are_not_said_to_run() {
        let mut review = calls(1, 1);
        let fates = [
            Fate::Approved,
            Fate::Rejected { reason: false },
            Fate::Rejected { reason: true },
            Fate::Answered,
            Fate::Blocked,
            Fate::PartlyBlocked("delete_file"),
        ];
        let gated = fates.map(|fate| sentence(&review, fate));
        assert_eq!(gated[0], "Approved calls run exactly as shown.");
        assert_eq!(gated[2], "Nothing runs; the agent is told what you wrote.");
        assert_eq!(asks_for(&review, ActionKind::Reject), None);

        review.asked_by = Some(AskedBy::Agent);
        let by_agent = fates.map(|fate| sentence(&review, fate));
        assert_eq!(by_agent[0], "The agent may make the approved calls exactly as shown.");
        assert_eq!(by_agent[5], "The agent may make the approved calls, but a guardrail would block delete_file.");

        (review.asked_by, review.run_id) = (Some(AskedBy::Program), None);
        let by_program = fates.map(|fate| sentence(&review, fate));
        assert_eq!(by_program[1], "mia is told to make no call.");
        assert_eq!(by_program[2], "mia is told to make no call, and gets what you wrote.");
        assert_eq!(asks_for(&review, ActionKind::Reject).as_deref(), Some("Why not? mia is told."));
        assert!(by_agent.iter().chain(&by_program).all(|says| !says.contains("run")), "{by_agent:?} {by_program:?}");
    }
}
