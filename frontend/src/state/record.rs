//! What the record says of a review that is over: what was accepted, and what became of each call. Drafts are no part of
//! it, whoever wrote them.

use serde_json::Value;
use shared::JsonMap;
use shared::decision::{ActionDecision, Decision, Verdict};
use shared::definition::OnTimeout;
use shared::review::{Action, Outcome, Review};

use super::action_words::ActionWords;

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// It may run as it was asked.
    Approved,
    /// It may run with other arguments.
    Edited(JsonMap),
    /// It does not run; the message is why.
    Rejected(Option<String>),
    /// It does not run; the message is its result.
    Answered(String),
    /// Nobody decided: the review was withdrawn, or its time was up.
    Undecided,
}

impl CallOutcome {
    /// The outcome in words, and the class of its tag.
    pub fn says(&self, words: ActionWords) -> (&'static str, String) {
        match self {
            Self::Approved => ("tag go", "approved".to_owned()),
            Self::Edited(_) => ("tag accent", format!("approved with changed {}", words.content)),
            Self::Rejected(_) => ("tag stop", format!("rejected, {}", words.not)),
            Self::Answered(_) => ("tag", format!("answered, {}", words.not)),
            Self::Undecided => ("tag", words.not.to_owned()),
        }
    }

    /// What was said to it.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Rejected(message) => message.as_deref(),
            Self::Answered(message) => Some(message),
            _ => None,
        }
    }
}

/// The decision that ended a review.
fn decision(review: &Review) -> Option<&Decision> {
    review.resolution.as_ref()?.decision.as_deref()
}

/// Whether a guardrail blocked a call although leave was given.
pub fn is_vetoed(review: &Review, action: &Action) -> bool {
    let vetoes = review.resolution.iter().flat_map(|resolution| &resolution.vetoes);
    vetoes.into_iter().any(|veto| veto.action.as_ref() == Some(&action.id))
}

/// The value of an item that was accepted in place of what was proposed.
pub fn accepted_edit(review: &Review, key: &str) -> Option<Value> {
    decision(review)?.edits.get(key).cloned()
}

/// What became of a call, once its review is over.
pub fn outcome_of(review: &Review, action: &Action) -> Option<CallOutcome> {
    let resolution = review.resolution.as_ref()?;
    let said = decision(review).map(|decision| &decision.verdict);
    Some(match said {
        Some(Verdict::Actions { decisions, .. }) => match decisions.get(&action.id) {
            Some(ActionDecision::Approve { .. }) => CallOutcome::Approved,
            Some(ActionDecision::Edit { arguments }) if *arguments == action.arguments => CallOutcome::Approved,
            Some(ActionDecision::Edit { arguments }) => CallOutcome::Edited(arguments.clone()),
            Some(ActionDecision::Reject { message }) => CallOutcome::Rejected(message.clone()),
            Some(ActionDecision::Respond { message }) => CallOutcome::Answered(message.clone()),
            None => CallOutcome::Undecided,
        },
        // Free text on calls rejects them all.
        Some(Verdict::Text { text }) => CallOutcome::Rejected(Some(text.clone())),
        // No person decided: a handler, which gives its reason where it rejects, or the timer, as the review said.
        Some(Verdict::Choose { .. }) | None => match (resolution.outcome, &review.on_timeout) {
            (Outcome::Expired, Some(OnTimeout::Approve)) => CallOutcome::Approved,
            (Outcome::Decided, _) => match &resolution.reason {
                None => CallOutcome::Approved,
                reason => CallOutcome::Rejected(reason.clone()),
            },
            _ => CallOutcome::Undecided,
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::{calls, resolved, review};

    #[test]
    fn a_review_that_waits_has_no_outcome() {
        let waits = calls(1, 1);
        assert_eq!(outcome_of(&waits, &waits.actions[0]), None);
        assert_eq!(accepted_edit(&review(1, 1, json!({})), "draft"), None);
        assert_eq!(accepted_edit(&resolved(1, 2, "tom"), "draft"), None, "tom changed nothing");
    }

    #[test]
    fn each_call_has_the_outcome_that_was_decided_for_it() {
        let mut over = calls(1, 2);
        let decisions = json!({
            "a1": { "type": "edit", "arguments": { "path": "/b" } },
            "a2": { "type": "reject", "message": "Not now" },
        });
        over.resolution = serde_json::from_value(json!({
            "status": "resolved", "outcome": "decided", "by": ["tom"], "at": "2026-11-20T10:05:00Z", "via": "human",
            "decision": { "by": "tom", "at": "2026-11-20T10:05:00Z", "via": "human", "revision": 1,
                "digest": "sha256:aa", "verdict": { "type": "actions", "decisions": decisions } },
        }))
        .unwrap();
        let outcome = |index: usize| outcome_of(&over, &over.actions[index]).unwrap();
        assert!(matches!(outcome(0), CallOutcome::Edited(arguments) if arguments["path"] == "/b"));
        assert_eq!(outcome(1), CallOutcome::Rejected(Some("Not now".into())));
        assert_eq!(outcome(1).message(), Some("Not now"));
    }

    #[test]
    fn what_no_person_decided_is_as_the_timer_or_the_handler_says() {
        let over = |outcome: &str, reason: Option<&str>, on_timeout: Option<&str>| {
            let mut over = calls(1, 2);
            over.on_timeout = on_timeout.map(|then| serde_json::from_value(json!(then)).unwrap());
            over.resolution = serde_json::from_value(json!({
                "status": "resolved", "outcome": outcome, "by": [], "at": "2026-11-20T10:05:00Z", "via": "timeout",
                "reason": reason,
            }))
            .unwrap();
            outcome_of(&over, &over.actions[0]).unwrap()
        };
        assert_eq!(over("expired", Some("late"), Some("approve")), CallOutcome::Approved);
        assert_eq!(over("expired", Some("late"), Some("reject")), CallOutcome::Undecided);
        assert_eq!(over("withdrawn", Some("the run has ended"), Some("approve")), CallOutcome::Undecided);
        assert_eq!(over("decided", None, None), CallOutcome::Approved);
        assert_eq!(over("decided", Some("closed"), None), CallOutcome::Rejected(Some("closed".into())));
    }
}
