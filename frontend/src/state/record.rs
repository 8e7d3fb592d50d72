//! The recorded outcome of a review: the accepted values, and the outcome of each call. Drafts do not matter here.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::JsonMap;
use shared::decision::{ActionDecision, Decision, Verdict};
use shared::definition::OnTimeout;
use shared::review::{Action, Outcome, Review};

use super::action_words::ActionWords;

#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// It may run as requested.
    Approved,
    /// It may run with these arguments.
    Edited(JsonMap),
    /// It does not run, for this reason.
    Rejected(Option<String>),
    /// It does not run; the message takes the place of its result.
    Answered(String),
    /// It does not run; this alternative was chosen.
    Instead(String),
    /// Nobody decided: the review was withdrawn or timed out.
    Undecided,
}

impl CallOutcome {
    /// The outcome in words, after the CSS class of its tag.
    pub fn says(&self, words: ActionWords) -> (&'static str, String) {
        match self {
            Self::Approved => ("tag go", "approved".to_owned()),
            Self::Edited(_) => ("tag accent", format!("approved with changed {}", words.content)),
            Self::Rejected(_) => ("tag stop", format!("rejected, {}", words.not)),
            Self::Answered(_) => ("tag", format!("answered, {}", words.not)),
            Self::Instead(_) => ("tag", format!("an alternative was chosen, {}", words.not)),
            Self::Undecided => ("tag", words.not.to_owned()),
        }
    }

    /// The reason, answer or alternative that goes with the outcome.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Rejected(message) => message.as_deref(),
            Self::Answered(message) | Self::Instead(message) => Some(message),
            _ => None,
        }
    }
}

/// The decision that resolved a review.
fn decision(review: &Review) -> Option<&Decision> {
    review.resolution.as_ref()?.decision.as_deref()
}

/// The verdict that resolved a review: a person's, or that of a program.
fn said(review: &Review) -> Option<&Verdict> {
    let answer = || review.deciding_advice()?.answer.as_deref()?.verdict.as_ref();
    decision(review).map(|decision| &decision.verdict).or_else(answer)
}

/// Whether a guardrail blocked a call although it was approved.
pub fn is_vetoed(review: &Review, action: &Action) -> bool {
    let vetoes = review.resolution.iter().flat_map(|resolution| &resolution.vetoes);
    vetoes.into_iter().any(|veto| veto.action.as_ref() == Some(&action.id))
}

/// The accepted value of an item, if it differs from the proposed one.
pub fn accepted_edit(review: &Review, key: &str) -> Option<Value> {
    let advice = review.deciding_advice();
    let changed = || advice?.changes.as_ref()?.edits.get(key);
    let answered = || {
        let answer = advice?.answer.as_deref()?;
        let output = || answer.modifications.as_ref()?.output.as_ref()?.get(key);
        answer.edits.get(key).or_else(output)
    };
    decision(review).and_then(|decision| decision.edits.get(key)).or_else(changed).or_else(answered).cloned()
}

/// The outcome for a call; `None` while the review is pending.
pub fn outcome_of(review: &Review, action: &Action) -> Option<CallOutcome> {
    let resolution = review.resolution.as_ref()?;
    let said = said(review).and_then(|verdict| outcome_by(review, action, verdict));
    // No verdict of a person: a handler said yes or no, or the timer applied `on_timeout`.
    Some(said.unwrap_or_else(|| match (resolution.outcome, &review.on_timeout) {
        (Outcome::Expired, Some(OnTimeout::Approve)) => CallOutcome::Approved,
        (Outcome::Decided, _) => handled(review, action, resolution.reason.clone()),
        _ => CallOutcome::Undecided,
    }))
}

/// What a verdict, such as that of a vote, says of a call; `None` for one that is not about calls.
pub fn outcome_by(review: &Review, action: &Action, verdict: &Verdict) -> Option<CallOutcome> {
    Some(match verdict {
        Verdict::Actions { decisions, .. } => match decisions.get(&action.id) {
            Some(ActionDecision::Approve { .. }) => CallOutcome::Approved,
            Some(ActionDecision::Edit { arguments }) if *arguments == action.arguments => CallOutcome::Approved,
            Some(ActionDecision::Edit { arguments }) => CallOutcome::Edited(arguments.clone()),
            Some(ActionDecision::Reject { message }) => CallOutcome::Rejected(message.clone()),
            Some(ActionDecision::Respond { message }) => CallOutcome::Answered(message.clone()),
            Some(ActionDecision::Choose { alternative, message }) => {
                let choice = review.choices_for(action).find(|choice| choice.id == *alternative);
                let says = choice.map_or_else(|| alternative.clone(), ToString::to_string);
                CallOutcome::Instead(says + &message.as_ref().map(|said| format!(": {said}")).unwrap_or_default())
            }
            None => CallOutcome::Undecided,
        },
        // Free text rejects all calls.
        Verdict::Text { text } => CallOutcome::Rejected(Some(text.clone())),
        Verdict::Choose { .. } => return None,
    })
}

/// Whether all calls of a resolved review were approved, or all were rejected; `None` if neither.
pub fn is_approved(review: &Review) -> Option<bool> {
    let approved = |action| match outcome_of(review, action)? {
        CallOutcome::Approved | CallOutcome::Edited(_) => Some(true),
        CallOutcome::Rejected(_) => Some(false),
        _ => None,
    };
    let (first, rest) = review.actions.split_first()?;
    approved(first).filter(|_| rest.iter().all(|action| approved(action) == approved(first)))
}

/// The guardrails that blocked what was approved, without duplicates.
pub fn vetoes(review: &Review) -> impl Iterator<Item = &str> {
    let vetoes = review.resolution.iter().flat_map(|resolution| &resolution.vetoes);
    vetoes.map(|veto| veto.guardrail.as_str()).collect::<BTreeSet<_>>().into_iter()
}

/// Whether the review has actions, and all of them were rejected or left undecided.
pub fn is_refused(review: &Review) -> bool {
    let refused =
        |action| matches!(outcome_of(review, action), Some(CallOutcome::Rejected(_) | CallOutcome::Undecided));
    !review.actions.is_empty() && review.actions.iter().all(refused)
}

/// Whether nothing that was requested happens: it was not approved, or a guardrail blocked it.
pub fn nothing_happens(review: &Review) -> bool {
    let stopped = |action| {
        is_vetoed(review, action)
            || matches!(outcome_of(review, action), Some(CallOutcome::Rejected(_) | CallOutcome::Undecided))
    };
    let vetoed = review.resolution.as_ref().is_some_and(|resolution| !resolution.vetoes.is_empty());
    if review.actions.is_empty() { vetoed } else { review.actions.iter().all(stopped) }
}

/// The outcome for a call that a handler approved or rejected. If neither its judgement nor its answer is known, a
/// reason means that it rejected.
fn handled(review: &Review, action: &Action, reason: Option<String>) -> CallOutcome {
    let advice = review.deciding_advice();
    let judged = advice.and_then(|advice| advice.verdict).map(|judgement| judgement.approved);
    let answered = || advice?.answer.as_deref()?.approved;
    if !judged.or_else(answered).unwrap_or(reason.is_none()) {
        return CallOutcome::Rejected(reason);
    }
    let changed = advice.and_then(|advice| advice.changes.as_ref()?.arguments.get(&action.id).cloned());
    let laid_over = || {
        let over = advice?.answer.as_deref()?.modifications.as_ref()?.tool_args.as_ref()?;
        Some(action.arguments.iter().chain(over).map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    changed.or_else(laid_over).map_or(CallOutcome::Approved, CallOutcome::Edited)
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
    fn a_call_that_was_rejected_or_blocked_is_none_that_happens() {
        let over = |decisions: Value, vetoes: Value| {
            let mut over = calls(1, 2);
            over.resolution = serde_json::from_value(json!({
                "status": "resolved", "outcome": "decided", "by": ["tom"], "at": "2026-11-20T10:05:00Z", "via": "human",
                "vetoes": vetoes,
                "decision": { "by": "tom", "at": "2026-11-20T10:05:00Z", "via": "human", "revision": 1,
                    "digest": "sha256:aa", "verdict": { "type": "actions", "decisions": decisions } },
            }))
            .unwrap();
            nothing_happens(&over)
        };
        let (yes, no) = (json!({ "type": "approve" }), json!({ "type": "reject" }));
        assert!(over(json!({ "a1": no, "a2": no }), json!([])));
        assert!(!over(json!({ "a1": yes, "a2": no }), json!([])));
        let veto = json!([{ "action": "a1", "guardrail": "secrets", "reason": "A key." }]);
        assert!(over(json!({ "a1": yes, "a2": no }), veto));
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

    #[test]
    fn what_a_handler_decided_is_as_it_said() {
        let over = |via: &str, advice: Value| {
            let mut over = calls(1, 2);
            over.resolution = serde_json::from_value(json!({
                "status": "resolved", "outcome": "decided", "by": [], "at": "2026-11-20T10:05:00Z", "via": via,
                "reason": "Because.",
            }))
            .unwrap();
            let mut all = json!({ "by": "x", "via": via, "at": "2026-11-20T10:05:00Z", "reason": "Because." });
            all.as_object_mut().unwrap().extend(advice.as_object().unwrap().clone());
            over.advice = vec![serde_json::from_value(all).unwrap()];
            outcome_of(&over, &over.actions[0]).unwrap()
        };
        let judged = |approved| json!({ "verdict": { "approved": approved, "confidence": 1, "threshold": 0.7 } });
        assert_eq!(over("judge", judged(true)), CallOutcome::Approved, "its reason is no refusal");
        assert_eq!(over("judge", judged(false)), CallOutcome::Rejected(Some("Because.".into())));
        assert_eq!(over("webhook", json!({ "answer": { "approved": true } })), CallOutcome::Approved);
        let laid_over = json!({ "answer": { "approved": true, "modifications": { "toolArgs": { "path": "/b" } } } });
        assert!(matches!(over("webhook", laid_over), CallOutcome::Edited(arguments) if arguments["path"] == "/b"));
        let each = json!({ "type": "actions", "decisions": {
            "a1": { "type": "reject", "message": "Not now" }, "a2": { "type": "approve" },
        } });
        let said = over("webhook", json!({ "answer": { "verdict": each } }));
        assert_eq!(said, CallOutcome::Rejected(Some("Not now".into())));
        assert_eq!(over("webhook", json!({})), CallOutcome::Rejected(Some("Because.".into())), "it could not be asked");
    }
}
