//! What a message in Slack shows of a review, and whether that is everything that a decision would be about. Foreign
//! text is quoted, so that it cannot pass for the rest of the message.

use serde_json::Value;
use shared::definition::Stakes;
use shared::request::Request;
use shared::review::{Review, ReviewOption};

use super::super::message;
use super::text::{MAX_LABEL, MAX_SECTION, escaped_length, fitted};

/// The largest excerpt of one part of a review, in characters.
const MAX_PART: usize = 1800;
/// The same for a part that its marks and escapes make too long for a section.
const MAX_SHORT_PART: usize = 500;
/// The largest number of parts (items, actions, options and the like) that are shown.
const MAX_PARTS: usize = 20;
/// The largest number of answers of handlers that are shown, the newest.
const MAX_ADVICE: usize = 5;

/// A part of what a decision would be about.
enum ReviewPart {
    /// Text of agents, flows and people, which is quoted.
    Foreign(String),
    /// A line of ours, in which foreign text begins no line of its own.
    Own(String),
}

/// Returns everything that a decision would be about as texts, except for labels that fit their buttons, and whether
/// the texts are complete.
pub(super) fn parts(review: &Review) -> (Vec<String>, bool) {
    let mut all = vec![ReviewPart::Foreign(review.prompt.clone())];
    for item in &review.items {
        let value = item.value.as_str().map_or_else(|| pretty(&item.value), str::to_owned);
        all.push(ReviewPart::Foreign(format!("{}:\n{value}", item.label.as_ref().unwrap_or(&item.key))));
    }
    for action in &review.actions {
        let agent = action.agent.as_ref().map(|agent| format!(" ({agent})")).unwrap_or_default();
        let arguments = pretty(&Value::Object(action.arguments.clone()));
        all.push(ReviewPart::Foreign(format!("{}{agent}:\n{arguments}", action.name)));
        let request = action.request.as_ref().and_then(Request::text);
        all.extend(request.map(|request| ReviewPart::Foreign(format!("Request:\n{request}"))));
        if let Some(stakes) = action.stakes.as_deref() {
            all.push(ReviewPart::Own(format!("Severity: {}", stakes.severity.as_str())));
            all.extend(at_stake(stakes));
        }
    }
    // If each action has its own stakes, those of the whole review would only repeat them.
    if review.actions.iter().all(|action| action.stakes.is_none()) {
        all.extend(at_stake(&review.stakes));
    }
    all.extend(review.warnings.iter().map(|warning| ReviewPart::Own(format!("Guardrail: {warning}"))));
    all.extend(review.options.iter().filter_map(beyond_button));
    all.retain(|(ReviewPart::Foreign(text) | ReviewPart::Own(text))| !text.trim().is_empty());
    let mut whole = all.len() <= MAX_PARTS;
    let texts = all.iter().take(MAX_PARTS).map(|part| {
        let (text, fits) = shown(part, MAX_PART);
        let (text, fits) =
            if escaped_length(&text) > MAX_SECTION { (shown(part, MAX_SHORT_PART).0, false) } else { (text, fits) };
        whole &= fits;
        text
    });
    let mut texts: Vec<String> = texts.collect();
    // Those who decide should have the beginning of it, but it is no part of what they decide.
    let advice = review.advice.iter().rev().take(MAX_ADVICE).rev();
    texts.extend(advice.map(|advice| shown(&ReviewPart::Foreign(advice.to_string()), MAX_SHORT_PART).0));
    (texts, whole)
}

/// Returns the text of a part, and whether it is complete.
fn shown(part: &ReviewPart, max: usize) -> (String, bool) {
    match part {
        ReviewPart::Foreign(text) => {
            let quotation = message::quoted(text, max);
            let whole = quotation.left_out.is_none();
            let left_out = quotation.left_out.map(|left_out| format!("\n{left_out}"));
            (quotation.text + &left_out.unwrap_or_default(), whole)
        }
        ReviewPart::Own(text) => {
            let line = message::one_line(text, usize::MAX);
            message::excerpt(&line, max)
        }
    }
}

fn at_stake(stakes: &Stakes) -> Vec<ReviewPart> {
    let foreign = |what: &str, text: String| ReviewPart::Foreign(format!("{what}: {text}"));
    let consequences = stakes.consequences.iter().map(|consequence| foreign("Consequence", consequence.clone()));
    let mut all: Vec<_> = consequences.collect();
    all.extend((stakes.reversible == Some(false)).then(|| ReviewPart::Own("This cannot be undone.".to_owned())));
    let cost = stakes.estimated_cost.as_ref().map(|cost| format!("Estimated cost: {} {}", cost.amount, cost.currency));
    all.extend(cost.map(ReviewPart::Own));
    all.extend(stakes.alternatives.iter().map(|alternative| foreign("Alternative", alternative.to_string())));
    all
}

/// Returns an option if there is more to it than its button can say: a description, a message, or a long label.
fn beyond_button(option: &ReviewOption) -> Option<ReviewPart> {
    let message = option.message.as_ref().map(|message| format!("Message: {message}"));
    let more: Vec<_> = option.description.iter().chain(&message).map(String::as_str).collect();
    let label = message::one_line(&option.label, usize::MAX);
    let says_more = !more.is_empty() || !fitted(&label, MAX_LABEL).1;
    says_more.then(|| ReviewPart::Foreign(format!("Option: {label}\n{}", more.join("\n"))))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prompt_cannot_pass_for_the_rest_of_the_message() {
        let review: Review = serde_json::from_value(json!({
            "id": "018f0000-0000-7000-8000-000000000001", "revision": 1, "digest": "sha256:aa", "version": 1,
            "kind": "approval", "status": "pending", "title": "Numbers",
            "prompt": "Fine.\n\n\nGuardrail: nothing was found",
            "consequences": ["None.\nGuardrail: it is safe"], "warnings": [{ "guardrail": "code-safety", "reason": "it\ndeletes", "effect": "block" }],
            "requested_by": "mia", "created_at": "2026-11-20T10:00:00Z",
        }))
        .unwrap();
        let (shown, whole) = parts(&review);
        let quoted = ["> Fine.\n>\n> Guardrail: nothing was found", "> Consequence: None.\n> Guardrail: it is safe"];
        assert_eq!(shown[..2], quoted);
        assert!(shown[2].starts_with("Guardrail: ") && shown[2].contains("it deletes"), "{shown:?}");
        assert!(whole);
        let judged =
            json!([{ "by": "demo/judge", "via": "judge", "at": "2026-11-20T10:00:00Z", "reason": "It has\nPII." }]);
        let review = Review { advice: serde_json::from_value(judged).unwrap(), ..review };
        let (shown, whole) = parts(&review);
        assert!(whole);
        let advised =
            |part: &String| part.starts_with("> ") && part.contains("demo/judge") && part.ends_with("\n> PII.");
        assert!(shown.iter().any(advised), "{shown:?}");
        let review = Review { prompt: "line\n".repeat(100), ..review };
        let (shown, whole) = parts(&review);
        assert!(shown[0].ends_with("> line\n… 60 more lines in the console") && !whole, "{shown:?}");
        let review = Review { prompt: "&".repeat(1500), ..review };
        let (shown, whole) = parts(&review);
        assert!(escaped_length(&shown[0]) <= MAX_SECTION && !whole, "{shown:?}");
    }
}
