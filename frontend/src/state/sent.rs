//! What a decision carries beside the choice itself: what a person wrote, the values of an option's form, and details
//! for later steps. A card says for each call what was answered.

use serde_json::Value;
use shared::JsonMap;
use shared::decision::{ActionDecision, Decision, DecisionRequest, Verdict};
use shared::review::Review;

use super::sentences::quoted;
use super::{option_fields, words};

/// A text or value that was sent with a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// What it is: `Comment`, or the title of a field.
    pub title: String,
    pub value: Value,
    /// Whether it is a person's own words, rather than a value of a form.
    pub is_words: bool,
    /// Whether the outcome in words quotes it, at least its beginning.
    is_quoted: bool,
}

impl Sent {
    /// Whether the outcome in words quotes all of it, so that it need not be repeated.
    pub fn is_told(&self) -> bool {
        self.is_quoted && self.value.as_str().is_some_and(|text| words::cut(text) == text.trim())
    }

    fn words(title: &str, text: Option<&str>, is_quoted: bool) -> Option<Self> {
        let text = text.map(str::trim).filter(|text| !text.is_empty())?;
        Some(Self { title: title.to_owned(), value: text.into(), is_words: true, is_quoted })
    }
}

/// What was sent with a decision of a person.
pub fn with(review: &Review, decision: &Decision) -> Vec<Sent> {
    all(review, Some(&decision.verdict), decision.comment.as_deref(), &decision.metadata)
}

/// What a person wrote in a decision that is on its way, in quotation marks and cut; `None` if they wrote nothing.
pub fn quotes(review: &Review, request: &DecisionRequest) -> Option<String> {
    let all = all(review, Some(&request.verdict), request.comment.as_deref(), &request.metadata);
    let written = all.iter().filter(|sent| sent.is_words).filter_map(|sent| sent.value.as_str());
    let calls = match &request.verdict {
        Verdict::Actions { decisions, .. } => decisions.values().filter_map(message).collect(),
        Verdict::Choose { .. } | Verdict::Text { .. } => Vec::new(),
    };
    let quotes: Vec<_> = calls.into_iter().chain(written).map(|text| quoted(&words::cut(text))).collect();
    (!quotes.is_empty()).then(|| quotes.join(" "))
}

/// The text of an answer to a call.
fn message(decision: &ActionDecision) -> Option<&str> {
    match decision {
        ActionDecision::Reject { message } | ActionDecision::Choose { message, .. } => message.as_deref(),
        ActionDecision::Respond { message } => Some(message),
        ActionDecision::Approve { .. } | ActionDecision::Edit { .. } => None,
    }
}

/// What a program sent with the decision that resolved a review.
pub fn by_program(review: &Review) -> Vec<Sent> {
    let answer = review.deciding_advice().and_then(|advice| advice.answer.as_deref());
    // Its comment is the reason of the resolution.
    answer.map(|answer| all(review, answer.verdict.as_ref(), None, &answer.metadata)).unwrap_or_default()
}

fn all(review: &Review, verdict: Option<&Verdict>, comment: Option<&str>, metadata: &JsonMap) -> Vec<Sent> {
    let mut sent = Vec::new();
    let value = |title: String, value: Value| Sent { title, value, is_words: false, is_quoted: false };
    match verdict {
        Some(Verdict::Choose { option, fields }) => {
            let fields = option_fields::named(review, option, fields);
            sent.extend(fields.into_iter().map(|(title, field)| value(title, field)));
        }
        Some(Verdict::Text { text }) => {
            let title = if !review.actions.is_empty() {
                "Reason"
            } else if review.answers_in_words() {
                "Answer"
            } else {
                "Correction"
            };
            // A question has nothing else to show once it is answered.
            sent.extend(Sent::words(title, Some(text), !review.answers_in_words()));
        }
        Some(Verdict::Actions { instructions, .. }) => {
            sent.extend(Sent::words("Instructions for the agent", instructions.as_deref(), false));
        }
        None => {}
    }
    sent.extend(Sent::words("Comment", comment, true));
    if !metadata.is_empty() {
        sent.push(value("Details for later steps".to_owned(), Value::Object(metadata.clone())));
    }
    sent
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::{calls, review};

    fn decision(verdict: Value, comment: &str) -> Decision {
        serde_json::from_value(json!({ "by": "tom", "at": "2026-11-20T10:05:00Z", "via": "human", "revision": 1,
            "digest": "sha256:aa", "verdict": verdict, "comment": comment, "metadata": { "ticket": 42 } }))
        .unwrap()
    }

    #[test]
    fn everything_that_was_sent_is_on_record() {
        let titles = |sent: Vec<Sent>| sent.into_iter().map(|one| one.title).collect::<Vec<_>>();
        let fields = json!({ "type": "object", "properties": { "guidance": { "title": "Guidance" } } });
        let asked = review(
            1,
            1,
            json!({ "options": [
            { "id": "go_on", "kind": "accept", "label": "Let it continue", "fields": fields },
        ] }),
        );
        let chosen = decision(
            json!({ "type": "choose", "option": "go_on", "fields": { "guidance": "Ask legal." } }),
            "So be it.",
        );
        let sent = with(&asked, &chosen);
        assert_eq!(sent[0].value, json!("Ask legal."));
        assert_eq!(sent[2].value, json!({ "ticket": 42 }));
        assert_eq!(titles(sent), ["Guidance", "Comment", "Details for later steps"]);
        let instructed = json!({ "type": "actions", "decisions": {}, "instructions": "Be careful." });
        let sent = titles(with(&calls(1, 1), &decision(instructed, " ")));
        assert_eq!(sent, ["Instructions for the agent", "Details for later steps"]);
    }

    #[test]
    fn what_a_person_wrote_is_quoted_while_it_is_held() {
        let quoted = |verdict: Value, comment: Option<&str>| {
            let request = json!({ "revision": 1, "digest": "sha256:aa", "verdict": verdict, "comment": comment });
            quotes(&calls(1, 1), &serde_json::from_value(request).unwrap())
        };
        let each = json!({ "a1": { "type": "reject", "message": "Still needed." }, "a2": { "type": "approve" } });
        let said = quoted(json!({ "type": "actions", "decisions": each }), Some("Careful."));
        assert_eq!(said.as_deref(), Some("“Still needed.” “Careful.”"));
        assert_eq!(quoted(json!({ "type": "actions", "decisions": {} }), None), None);
    }

    #[test]
    fn only_what_the_outcome_quotes_in_full_need_not_be_repeated() {
        let told = |comment: &str| {
            let chosen = decision(json!({ "type": "choose", "option": "approve" }), comment);
            with(&review(1, 1, json!({})), &chosen)[0].is_told()
        };
        assert!(told("Good."));
        assert!(!told("First.\nSecond."));
        assert!(!told(&"word ".repeat(40)));
    }
}
