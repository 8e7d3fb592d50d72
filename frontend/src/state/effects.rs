//! The effects of a choice, a deadline or a withdrawal, in words. Buttons, deadlines and dialogs announce only what
//! really happens.

use shared::definition::{ChoiceKind, OnTimeout};
use shared::review::{AskedBy, Review, ReviewKind, ReviewOption};

use super::action_words;
use super::sentences::quoted;

/// Who receives the decision on a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearer {
    /// The run, which stands at a human node.
    Run,
    /// The actions that a gate holds back.
    Actions,
    /// An agent that asks and continues with the answer.
    Agent,
    /// A step that asks; the answer becomes its result.
    Step,
    /// The step that a person has taken over from an agent.
    TakenOver,
    /// The program or person that asked over the API.
    Caller,
    /// Nobody: the case was handed off, and the run has gone on.
    Nobody,
}

/// Tells who receives the decision on a review.
pub fn hearer(review: &Review) -> Hearer {
    match (review.kind, review.asked_by) {
        _ if review.run_id.is_none() => Hearer::Caller,
        (ReviewKind::Handoff, _) => Hearer::Nobody,
        (_, Some(AskedBy::Agent)) => Hearer::Agent,
        (_, Some(AskedBy::Step)) => Hearer::Step,
        (_, Some(AskedBy::Program)) => Hearer::Caller,
        // A taken-over step has no deadline.
        (ReviewKind::Edit, None) if review.on_timeout.is_none() => Hearer::TakenOver,
        // Reviews stored before `asked_by` existed; mostly questions of agents.
        (ReviewKind::Clarification | ReviewKind::Edit | ReviewKind::Escalation | ReviewKind::Checkpoint, None) => {
            Hearer::Agent
        }
        (ReviewKind::Approval, None) => Hearer::Run,
        (_, None) => Hearer::Actions,
    }
}

/// Why no correction can be asked for any more: the step that would run again has no visits left. `None` if it can.
pub fn no_correction(review: &Review) -> Option<String> {
    let source = review.source.as_ref()?;
    (source.visits >= source.max_visits).then(|| {
        format!(
            "`{}` has run {} of {} times: no corrections are left",
            source.node.place(),
            source.visits,
            source.max_visits
        )
    })
}

/// The label of the note field, which says who reads the note. `beside` says that the form of an option is open; then
/// the text is a note even where it could be an answer.
pub fn note_label(review: &Review, beside: bool) -> String {
    if review.answers_in_words() && review.free_text && !beside {
        let label = if review.options.is_empty() { "Write your answer" } else { "Choose an answer, or write your own" };
        return label.to_owned();
    }
    let label = match hearer(review) {
        Hearer::Actions if review.actions.iter().any(action_words::is_told) => {
            "Add a note for the agent, or give a reason"
        }
        Hearer::Actions => "Add a note for the record, or a reason",
        Hearer::Agent => "Add a note for the agent",
        Hearer::Step => "Add a note that goes with the answer",
        // A permission prompt of a coding agent has no place for a note beside an approval.
        Hearer::Caller if !review.actions.is_empty() => "Add a note for the record, or a reason",
        Hearer::Caller => return format!("Add a note for {}", review.requested_by),
        Hearer::Run if review.free_text && no_correction(review).is_none() => "Ask for a change, or add a note",
        Hearer::Run | Hearer::TakenOver | Hearer::Nobody => "Add a note for the record",
    };
    label.to_owned()
}

/// The effect of an option, in a sentence. The consequences of the review are mentioned only for the first option that
/// accepts.
pub fn of_option(review: &Review, option: &ReviewOption) -> String {
    let does = without_message(review, option);
    match &option.message {
        Some(message) if !does.ends_with(&quoted(message)) => format!("{does} Sent with it: {}", quoted(message)),
        _ => does,
    }
}

fn without_message(review: &Review, option: &ReviewOption) -> String {
    if let Some(description) = &option.description {
        return description.clone();
    }
    let is_first = review.first_accept().is_some_and(|first| first.id == option.id);
    match (option.kind, review.stakes.consequences.first()) {
        (ChoiceKind::Accept, Some(consequence)) if is_first => consequence.clone(),
        (ChoiceKind::Stop, _) if hearer(review) == Hearer::Run => {
            "Ends the run, unless the flow says what follows a rejection.".to_owned()
        }
        (ChoiceKind::Accept | ChoiceKind::Stop, _) => effect_on_hearer(review, "this answer"),
        (ChoiceKind::Correct, _) => match (&review.source, &option.message) {
            (Some(source), Some(message)) => format!("{} revises it: “{message}”", source.node.place()),
            (Some(source), None) => format!("{} revises it, using what you write.", source.node.place()),
            (None, _) => "The previous step revises it.".to_owned(),
        },
    }
}

/// The effect of an answer in free text, in a sentence.
pub fn of_text(review: &Review) -> String {
    match &review.source {
        _ if review.answers_in_words() => effect_on_hearer(review, "your answer"),
        Some(source) => format!("{} revises it, using what you wrote.", source.node.place()),
        None => "The previous step revises it, using what you wrote.".to_owned(),
    }
}

fn effect_on_hearer(review: &Review, what: &str) -> String {
    match hearer(review) {
        Hearer::Agent => format!("The agent gets {what} and continues."),
        Hearer::Caller => format!("{} gets {what}.", review.requested_by),
        Hearer::Nobody => "Records that you are taking care of it.".to_owned(),
        Hearer::TakenOver => "The run continues with what is written here.".to_owned(),
        Hearer::Step => format!("The run continues with {what}."),
        Hearer::Run | Hearer::Actions if what == "your answer" => format!("The run continues with {what}."),
        Hearer::Run | Hearer::Actions => "The run continues.".to_owned(),
    }
}

/// What happens at the deadline, as the end of a sentence: `rejected`, `the run fails`. `None` without a deadline.
pub fn at_deadline(review: &Review) -> Option<String> {
    review.on_timeout.as_ref().map(|then| deadline(review, then, false))
}

/// What happened at the deadline, as the end of a sentence.
pub fn timed_out(review: &Review) -> String {
    let past = review.on_timeout.as_ref().map(|then| deadline(review, then, true));
    past.unwrap_or_else(|| "nobody decided".to_owned())
}

fn deadline(review: &Review, then: &OnTimeout, past: bool) -> String {
    let hearer = hearer(review);
    let is_leave = matches!(review.kind, ReviewKind::Approval | ReviewKind::ToolCalls) || hearer == Hearer::Actions;
    let (now, before) = match (then, review.kind) {
        (OnTimeout::Escalate(next), _) => return format!("escalated to {}", next.escalate),
        (OnTimeout::Follow | OnTimeout::Approve, ReviewKind::Edit) => {
            ("the draft is used as it is", "the draft was used as it was")
        }
        (OnTimeout::Follow | OnTimeout::Approve, ReviewKind::Checkpoint) => match hearer {
            Hearer::Agent => ("the agent continues", "the agent continued"),
            Hearer::Caller => ("the answer is to continue", "the answer was to continue"),
            _ => ("the run continues", "the run continued"),
        },
        (OnTimeout::Reject, ReviewKind::Checkpoint | ReviewKind::Escalation) => match hearer {
            Hearer::Agent => ("the agent stops, and its step fails", "the agent stopped, and its step failed"),
            Hearer::Caller => ("the answer is to stop", "the answer was to stop"),
            _ => ("the step fails", "the step failed"),
        },
        (OnTimeout::Approve, _) if is_leave => ("approved", "approved"),
        (OnTimeout::Reject, _) if is_leave => ("rejected", "rejected"),
        // A gated action runs or does not: there is no path to follow.
        (OnTimeout::Follow | OnTimeout::Goto { .. }, _) if hearer == Hearer::Actions => ("rejected", "rejected"),
        (OnTimeout::Follow, _) if hearer == Hearer::Run => {
            ("the run continues without an answer", "the run continued without an answer")
        }
        (OnTimeout::Goto { .. }, _) if hearer == Hearer::Run => {
            ("the run takes another path", "the run took another path")
        }
        _ => match hearer {
            Hearer::Agent => ("the agent is told that nobody answered", "the agent was told that nobody answered"),
            Hearer::Step => ("the step fails", "the step failed"),
            Hearer::Caller => ("it ends unanswered", "it ended unanswered"),
            _ => ("the run fails", "the run failed"),
        },
    };
    if past { before } else { now }.to_owned()
}

pub fn of_withdrawal(review: &Review) -> String {
    match hearer(review) {
        Hearer::Run => "It counts as rejected: the run ends, unless the flow says what follows.".to_owned(),
        Hearer::Actions => {
            let rejected = review.actions.first().map_or("", |first| action_words::words(review, first).rejected);
            format!("It counts as rejected. {rejected}").trim_end().to_owned()
        }
        Hearer::Agent => "The agent is told that nobody will answer, and continues.".to_owned(),
        Hearer::Step => "The step that asks fails, because nobody answers it.".to_owned(),
        Hearer::TakenOver => "Nobody writes in place of the agent, and the step fails.".to_owned(),
        Hearer::Caller => format!("{} is told that nobody will answer.", review.requested_by),
        Hearer::Nobody => "No one is asked to take care of it any longer. The run is not affected.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::state::fixtures::{calls, review};

    /// A review that an agent or a program asks for.
    fn asked(kind: &str, by: Option<AskedBy>, patch: Value) -> Review {
        let mut all = json!({ "kind": kind, "asked_by": by, "free_text": false, "on_timeout": "error" });
        all.as_object_mut().unwrap().extend(patch.as_object().unwrap().clone());
        review(1, 1, all)
    }

    const AGENT: Option<AskedBy> = Some(AskedBy::Agent);
    const STEP: Option<AskedBy> = Some(AskedBy::Step);
    const PROGRAM: Option<AskedBy> = Some(AskedBy::Program);

    #[test]
    fn a_review_says_who_hears_its_answer() {
        let cases = vec![
            (review(1, 1, json!({})), Hearer::Run),
            (review(1, 1, json!({ "prompt": "Agent `clerk` requests approval for `refund`." })), Hearer::Run),
            (calls(1, 1), Hearer::Actions),
            (asked("escalation", AGENT, json!({})), Hearer::Agent),
            (asked("clarification", STEP, json!({})), Hearer::Step),
            (asked("approval", AGENT, json!({})), Hearer::Agent),
            (asked("approval", PROGRAM, json!({ "run_id": null })), Hearer::Caller),
            (asked("edit", AGENT, json!({ "on_timeout": null })), Hearer::Agent),
            (asked("edit", None, json!({ "on_timeout": null })), Hearer::TakenOver),
            (asked("handoff", AGENT, json!({})), Hearer::Nobody),
            // Stored before reviews said who asks.
            (asked("clarification", None, json!({})), Hearer::Agent),
        ];
        for (review, expected) in cases {
            assert_eq!(hearer(&review), expected, "{:?}: {:?}", review.kind, review.asked_by);
        }
    }

    #[test]
    fn a_button_says_no_consequence_that_its_option_does_not_have() {
        let leave = json!({ "consequences": ["A refund is paid."], "options": [
            { "id": "approve", "kind": "accept", "label": "Approve" },
            { "id": "voucher", "kind": "accept", "label": "Send a voucher" },
            { "id": "reject", "kind": "stop", "label": "Reject" },
        ] });
        let leave = asked("approval", AGENT, leave);
        let says: Vec<_> = leave.options.iter().map(|option| of_option(&leave, option)).collect();
        let told = "The agent gets this answer and continues.";
        assert_eq!(says, ["A refund is paid.", told, told]);
        let described =
            json!({ "options": [{ "id": "pause", "kind": "accept", "label": "Pause", "description": "It waits." }] });
        let described = asked("checkpoint", AGENT, described);
        assert_eq!(of_option(&described, &described.options[0]), "It waits.");
        let mut program = described;
        program.options[0].message = Some("Wait for legal.".to_owned());
        assert_eq!(of_option(&program, &program.options[0]), "It waits. Sent with it: “Wait for legal.”");
        program.options[0].message = None;
        (program.run_id, program.options[0].description) = (None, None);
        assert_eq!(of_option(&program, &program.options[0]), "mia gets this answer.");
        assert_eq!(of_text(&asked("clarification", AGENT, json!({}))), "The agent gets your answer and continues.");
    }

    #[test]
    fn a_deadline_says_what_then_happens_to_whoever_waits() {
        let then = |review: &Review| (at_deadline(review).unwrap(), timed_out(review));
        let own = |now: &str, before: &str| (now.to_owned(), before.to_owned());
        let cases = [
            (
                asked("escalation", AGENT, json!({})),
                own("the agent is told that nobody answered", "the agent was told that nobody answered"),
            ),
            (asked("clarification", STEP, json!({})), own("the step fails", "the step failed")),
            (
                asked("clarification", PROGRAM, json!({ "run_id": null })),
                own("it ends unanswered", "it ended unanswered"),
            ),
            (
                asked("edit", AGENT, json!({ "on_timeout": "follow" })),
                own("the draft is used as it is", "the draft was used as it was"),
            ),
            (
                asked("checkpoint", AGENT, json!({ "on_timeout": "reject" })),
                own("the agent stops, and its step fails", "the agent stopped, and its step failed"),
            ),
            (
                asked("tool_calls", PROGRAM, json!({ "run_id": null, "on_timeout": "reject" })),
                own("rejected", "rejected"),
            ),
            (review(1, 1, json!({ "on_timeout": "error" })), own("the run fails", "the run failed")),
            (review(1, 1, json!({ "on_timeout": "reject" })), own("rejected", "rejected")),
        ];
        for (review, expected) in cases {
            assert_eq!(then(&review), expected, "{:?}", review.kind);
        }
        assert_eq!(timed_out(&review(1, 1, json!({}))), "nobody decided");
    }

    #[test]
    fn a_note_is_said_to_reach_only_whom_it_reaches() {
        let label = |kind: &str, by: Option<AskedBy>, patch: Value| note_label(&asked(kind, by, patch), false);
        assert_eq!(label("escalation", AGENT, json!({})), "Add a note for the agent");
        assert_eq!(label("checkpoint", PROGRAM, json!({ "run_id": null })), "Add a note for mia");
        let mut prompt = calls(1, 1);
        (prompt.asked_by, prompt.run_id) = (PROGRAM, None);
        assert_eq!(note_label(&prompt, false), "Add a note for the record, or a reason");
        let taken = json!({ "on_timeout": null });
        assert_eq!(label("edit", None, taken), "Add a note for the record");
        assert_eq!(label("handoff", AGENT, json!({})), "Add a note for the record");
        let question = asked("clarification", AGENT, json!({ "free_text": true }));
        assert_eq!(note_label(&question, false), "Choose an answer, or write your own");
        assert_eq!(note_label(&question, true), "Add a note for the agent", "the form is the answer");
        assert_eq!(note_label(&review(1, 1, json!({})), false), "Ask for a change, or add a note");
        assert_eq!(note_label(&calls(1, 1), false), "Add a note for the agent, or give a reason");
    }

    #[test]
    fn taking_a_review_back_does_not_promise_that_a_run_continues() {
        let withdrawn = |kind: &str, by: Option<AskedBy>, patch: Value| of_withdrawal(&asked(kind, by, patch));
        assert!(withdrawn("handoff", AGENT, json!({})).ends_with("The run is not affected."));
        let program = json!({ "run_id": null });
        assert_eq!(withdrawn("checkpoint", PROGRAM, program), "mia is told that nobody will answer.");
        assert!(withdrawn("escalation", AGENT, json!({})).starts_with("The agent is told"));
        assert_eq!(of_withdrawal(&calls(1, 1)), "It counts as rejected. Nothing runs.");
    }
}
