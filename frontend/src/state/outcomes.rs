//! Verdicts and resolutions in words, for banners and lists; for the record, they are in `story`.

use shared::decision::{ActionDecision, Decision, Verdict, Via};
use shared::grant::GrantScope;
use shared::review::{Outcome, Resolution, Review, ReviewKind};

use super::sentences::{listed, sentence};
use super::words::{authors, cut};
use super::{action_words, effects, option_fields, record};

/// How much of what a person wrote is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quotes {
    /// The beginning, on one line: for lists, and where the whole text is shown beside it.
    Beginning,
    Whole,
}

impl Quotes {
    fn of(self, text: &str) -> String {
        match self {
            Self::Beginning => format!("“{}”", cut(text)),
            Self::Whole => format!("“{}”", text.trim()),
        }
    }
}

/// What a person decided: `chose “Looks good”`, `approved publish`.
pub fn verdict(review: &Review, decision: &Decision, quotes: Quotes) -> String {
    let owner = decision.on_behalf_of.as_ref();
    let before = if decision.grant.is_some() { " under a remembered approval" } else { "" };
    let owner = owner.map(|owner| format!(" on behalf of {owner}")).unwrap_or_default();
    let comment = decision.comment.as_deref().map(str::trim).filter(|comment| !comment.is_empty());
    let comment = comment.map(|comment| format!(": {}", quotes.of(comment))).unwrap_or_default();
    said(review, decision, quotes) + before + &owner + &comment
}

fn said(review: &Review, decision: &Decision, quotes: Quotes) -> String {
    match &decision.verdict {
        Verdict::Choose { option, fields } => {
            let edits = match decision.edits.len() {
                0 => String::new(),
                1 => ", with an edit".to_owned(),
                more => format!(", with {more} edits"),
            };
            let verb = if review.kind == ReviewKind::Clarification { "answered" } else { "chose" };
            format!("{verb} {}{edits}", option_fields::answers(review, option, fields))
        }
        Verdict::Text { text } if !review.actions.is_empty() => format!("rejected it: {}", quotes.of(text)),
        Verdict::Text { text } if review.answers_in_words() => format!("answered {}", quotes.of(text)),
        Verdict::Text { text } => format!("sent it back: {}", quotes.of(text)),
        Verdict::Actions { decisions, .. } => {
            let action = |id: &String| review.actions.iter().find(|action| action.id == *id);
            let name = |id: &String| action(id).map_or_else(|| id.clone(), action_words::name);
            if let Some((id, decision)) = decisions.first_key_value().filter(|_| decisions.len() == 1) {
                return match decision {
                    ActionDecision::Approve { remember: None } => format!("approved {}", name(id)),
                    ActionDecision::Approve { remember: Some(remember) } => {
                        let place = match remember.scope {
                            GrantScope::Run => "this run",
                            GrantScope::Flow => "this flow",
                        };
                        format!("approved {}, and later calls in {place}", name(id))
                    }
                    ActionDecision::Edit { .. } => format!("approved {} with an edit", name(id)),
                    ActionDecision::Reject { message: Some(message) } => {
                        format!("rejected {}: {}", name(id), quotes.of(message))
                    }
                    ActionDecision::Reject { message: None } => format!("rejected {}", name(id)),
                    ActionDecision::Choose { alternative, .. } => {
                        let mut choices = action(id).into_iter().flat_map(|action| review.choices_for(action));
                        let choice = choices.find(|choice| choice.id == *alternative);
                        let says = choice.map_or(alternative, |choice| &choice.description);
                        format!("chose {} in place of {}", quotes.of(says), name(id))
                    }
                    ActionDecision::Respond { message } => {
                        let responded = action(id).map(|action| action_words::responds(action, true));
                        format!("{}: {}", responded.unwrap_or_else(|| format!("responded to {id}")), quotes.of(message))
                    }
                };
            }
            counted(decisions.values())
        }
    }
}

/// What was decided about several calls: `approved all 3 calls`, `approved 1 and answered 2 of 3 calls`.
fn counted<'a>(decisions: impl Iterator<Item = &'a ActionDecision>) -> String {
    let mut counts = [("approved", 0_usize), ("rejected", 0), ("answered", 0), ("replaced", 0)];
    for decision in decisions {
        let verb = match decision {
            ActionDecision::Approve { .. } | ActionDecision::Edit { .. } => 0,
            ActionDecision::Reject { .. } => 1,
            ActionDecision::Respond { .. } => 2,
            ActionDecision::Choose { .. } => 3,
        };
        counts[verb].1 += 1;
    }
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let said: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    if let [(verb, count)] = said[..] {
        return format!("{verb} all {count} calls");
    }
    let parts: Vec<String> = said.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
    format!("{} of {all} calls", listed(&parts))
}

/// The outcome of a review, without the time: `tom chose “Looks good”`, `expired: rejected`. What a guardrail
/// blocked comes first, as it did not happen.
pub fn resolution(review: &Review, resolution: &Resolution, me: Option<&str>, quotes: Quotes) -> String {
    let said = unblocked(review, resolution, me, quotes);
    let vetoes: Vec<&str> = record::vetoes(review).collect();
    match &vetoes[..] {
        [] => said,
        vetoes if record::nothing_happens(review) => format!("blocked by {}, though {said}", listed(vetoes)),
        vetoes => format!("partly blocked by {}, though {said}", listed(vetoes)),
    }
}

/// The outcome, as if no guardrail had blocked it.
fn unblocked(review: &Review, resolution: &Resolution, me: Option<&str>, quotes: Quotes) -> String {
    let reason =
        resolution.reason.as_deref().map(|reason| format!(": {}", reason.trim_end_matches('.'))).unwrap_or_default();
    let by = resolution.authors(&review.decisions);
    match (resolution.outcome, &resolution.decision) {
        (Outcome::Withdrawn, _) if resolution.by.is_empty() => format!("withdrawn{reason}"),
        (Outcome::Withdrawn, _) => format!("{} withdrew it{reason}", authors(&by, me)),
        _ if resolution.via == Via::Timeout => format!("expired: {}", effects::timed_out(review)),
        (_, Some(decision)) if !resolution.by.is_empty() => {
            format!("{} {}", authors(&by, me), verdict(review, decision, quotes))
        }
        (outcome, _) => {
            let what = word(review, outcome);
            if let Some(handler) = handler(review) {
                format!("{what} by {handler}{reason}")
            } else if resolution.by.is_empty() {
                format!("{what}{reason}")
            } else {
                format!("{what} by {}", authors(&by, me))
            }
        }
    }
}

/// Like [`resolution`], as a sentence. Usernames are not capitalized.
pub fn resolution_first(review: &Review, resolution: &Resolution, me: Option<&str>, quotes: Quotes) -> String {
    let text = self::resolution(review, resolution, me, quotes);
    let starts_with_name =
        resolution.by.first().is_some_and(|name| me != Some(name.as_str()) && text.starts_with(name.as_str()));
    if starts_with_name { text } else { sentence(&text) }
}

/// The judge or program that decided, and how sure it was: `a judge (95% sure)`. `None` if it was none.
pub fn handler(review: &Review) -> Option<String> {
    let handler = review.deciding_handler()?;
    let judgement = review.deciding_advice().and_then(|advice| advice.verdict);
    let sure = judgement.map(|judgement| format!(" ({:.0}% sure)", judgement.confidence * 100.0));
    Some(handler + &sure.unwrap_or_default())
}

/// An outcome in a word. Calls are approved if all were approved, and rejected if all were rejected.
pub fn word(review: &Review, outcome: Outcome) -> &'static str {
    match (outcome, record::is_approved(review)) {
        (Outcome::Decided, Some(true)) => "approved",
        (Outcome::Decided, Some(false)) => "rejected",
        _ => outcome.in_words(review),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::state::fixtures;

    #[test]
    fn a_resolution_says_who_did_what() {
        let review = fixtures::resolved(1, 2, "tom");
        let outcome = review.resolution.as_ref().unwrap();
        let resolution = |review, outcome, me| resolution(review, outcome, me, Quotes::Beginning);
        let resolution_first = |review, outcome, me| resolution_first(review, outcome, me, Quotes::Beginning);
        assert_eq!(resolution(&review, outcome, Some("ana")), "tom chose “Looks good”");
        assert_eq!(resolution(&review, outcome, Some("tom")), "you chose “Looks good”");
        assert_eq!(resolution_first(&review, outcome, Some("ana")), "tom chose “Looks good”", "a name stays as it is");
        assert_eq!(resolution_first(&review, outcome, Some("tom")), "You chose “Looks good”");
        let by_nobody = Resolution { by: Vec::new(), decision: None, ..outcome.clone() };
        assert_eq!(resolution_first(&review, &by_nobody, None), "Approved");
        let by_program =
            Resolution { token: Some("00000000-0000-0000-0000-000000000007".parse().unwrap()), ..outcome.clone() };
        assert_eq!(resolution(&review, &by_program, Some("ana")), "a token of tom chose “Looks good”");
        assert_eq!(resolution_first(&review, &by_program, Some("ana")), "A token of tom chose “Looks good”");
        assert_eq!(resolution_first(&review, &by_program, Some("tom")), "Your token chose “Looks good”");
    }

    #[test]
    fn a_question_is_answered_and_not_approved() {
        let mut question = fixtures::resolved(1, 2, "tom");
        question.kind = ReviewKind::Clarification;
        let outcome = question.resolution.clone().unwrap();
        assert_eq!(resolution(&question, &outcome, None, Quotes::Whole), "tom answered “Looks good”");
        let by_nobody = Resolution { by: Vec::new(), decision: None, ..outcome };
        assert_eq!(resolution(&question, &by_nobody, None, Quotes::Whole), "answered");
        assert_eq!(word(&question, Outcome::Stopped), "stopped");
    }

    #[test]
    fn what_is_one_of_several_ways_to_go_on_is_no_approval() {
        let mut review = fixtures::resolved(1, 2, "tom");
        let words =
            |review: &Review| [Outcome::Accepted, Outcome::Corrected, Outcome::Stopped].map(|one| word(review, one));
        assert_eq!(words(&review), ["approved", "sent back", "rejected"]);
        review.options[1].kind = shared::definition::ChoiceKind::Accept;
        assert_eq!(words(&review), ["decided", "sent back", "rejected"]);
    }

    #[test]
    fn calls_are_counted_by_what_was_said_of_each() {
        let counted = |decisions: Value| {
            let decisions: Vec<ActionDecision> = serde_json::from_value(decisions).unwrap();
            counted(decisions.iter())
        };
        let [approve, reject] = ["approve", "reject"].map(|kind| serde_json::json!({ "type": kind }));
        let respond = serde_json::json!({ "type": "respond", "message": "Not today" });
        assert_eq!(counted(serde_json::json!([approve, approve])), "approved all 2 calls");
        assert_eq!(counted(serde_json::json!([respond, respond])), "answered all 2 calls");
        assert_eq!(
            counted(serde_json::json!([reject, approve, respond])),
            "approved 1, rejected 1 and answered 1 of 3 calls"
        );
    }

    #[test]
    fn a_long_reason_is_cut_in_a_list_and_quoted_whole_elsewhere() {
        let mut review = fixtures::resolved(1, 2, "tom");
        let comment = "Because the second paragraph contradicts the first. ".repeat(5);
        let mut outcome = review.resolution.take().unwrap();
        outcome.decision.as_mut().unwrap().comment = Some(comment.clone());
        assert!(resolution(&review, &outcome, None, Quotes::Beginning).ends_with("…”"));
        assert!(resolution(&review, &outcome, None, Quotes::Whole).contains(comment.trim()));
    }

    #[test]
    fn what_a_judge_decided_says_what_and_how_surely_and_what_was_blocked_says_so_first() {
        let mut judged = fixtures::calls(1, 2);
        let mut says = |approved: bool, vetoes: Value| {
            judged.advice =
                serde_json::from_value(json!([{ "by": "demo", "via": "judge", "at": "2026-11-20T10:05:00Z",
                "verdict": { "approved": approved, "confidence": 0.95, "threshold": 0.7 }, "reason": "Because." }]))
                .unwrap();
            judged.resolution = serde_json::from_value(json!({ "status": "resolved", "outcome": "decided", "by": [],
                "at": "2026-11-20T10:05:00Z", "via": "judge", "reason": "Because.", "vetoes": vetoes }))
            .unwrap();
            resolution(&judged, judged.resolution.as_ref().unwrap(), None, Quotes::Whole)
        };
        assert_eq!(says(true, json!([])), "approved by a judge (95% sure): Because");
        assert_eq!(says(false, json!([])), "rejected by a judge (95% sure): Because");
        let veto = |id: &str| json!({ "action": id, "guardrail": "code-safety", "reason": "A shell." });
        let blocked = says(true, json!([veto("a1"), veto("a2")]));
        assert_eq!(blocked, "blocked by code-safety, though approved by a judge (95% sure): Because");
        assert!(says(true, json!([veto("a1")])).starts_with("partly blocked by code-safety, though approved"));
    }
}
