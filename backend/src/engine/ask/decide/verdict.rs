//! Checks a verdict against its review: reports every error at once, with its place in the body.

use std::collections::BTreeMap;

use shared::JsonMap;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::definition::ChoiceKind;
use shared::error::{Mistake, pointer};
use shared::review::{Action, Review, ReviewOption};

use crate::flow::check_value;

/// The longest free text, comment or message, in bytes.
const MAX_TEXT: usize = 100_000;

/// A verdict that fits its review.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::engine::ask) enum CheckedVerdict {
    /// An option or free text.
    Node(NodeVerdict),
    /// An answer to each action, and additional instructions to the agent.
    Actions(BTreeMap<String, ActionDecision>, Option<String>),
}

/// A verdict by an option or by free text.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::engine::ask) enum NodeVerdict {
    Accept(ReviewOption),
    /// A correction: an option of that kind, or free text beside options.
    Correct {
        /// The option; `None` for free text.
        option: Option<ReviewOption>,
        /// The free text; `None` for an option.
        text: Option<String>,
        /// The correction, as the source step is told it.
        message: String,
    },
    Stop(ReviewOption),
    /// A refusal by a handler, without a stop option.
    Refuse,
    /// Free text that is the answer itself, without options.
    Text(String),
}

/// Checks a decision against its review.
pub(in crate::engine::ask) fn check(
    review: &Review,
    request: &DecisionRequest,
) -> Result<CheckedVerdict, Vec<Mistake>> {
    let mut mistakes = Vec::new();
    let comment = request.comment.as_deref().map(str::trim).filter(|comment| !comment.is_empty());
    limit("/comment", request.comment.as_deref(), &mut mistakes);
    let said = match &request.verdict {
        Verdict::Choose { option, fields } => {
            option_said(review, option, fields, comment, &mut mistakes).map(CheckedVerdict::Node)
        }
        Verdict::Text { text } => text_said(review, text, comment, &mut mistakes),
        Verdict::Actions { decisions, instructions } => {
            limit("/verdict/instructions", instructions.as_deref(), &mut mistakes);
            let given = instructions.as_ref().is_some_and(|text| !text.trim().is_empty());
            if given && !review.actions.is_empty() && !review.passes_on_instructions(decisions) {
                let message = "no agent would read it; write a comment instead";
                mistakes.push(Mistake::new("/verdict/instructions", "not_allowed", message));
            }
            check_actions(review, decisions, &mut mistakes);
            let instructions = instructions.as_ref().filter(|text| !text.trim().is_empty()).cloned();
            Some(CheckedVerdict::Actions(decisions.clone(), instructions))
        }
    };
    check_edits(review, request, said.as_ref(), &mut mistakes);
    match said {
        Some(said) if mistakes.is_empty() => Ok(said),
        _ => Err(mistakes),
    }
}

fn option_said(
    review: &Review,
    option: &str,
    fields: &JsonMap,
    comment: Option<&str>,
    mistakes: &mut Vec<Mistake>,
) -> Option<NodeVerdict> {
    let Some(offered) = review.options.iter().find(|offered| offered.id == option) else {
        let known: Vec<_> = review.options.iter().map(|offered| format!("`{}`", offered.id)).collect();
        let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
        let message = format!("`{option}` is not an option of this review: {known}");
        mistakes.push(Mistake::new("/verdict/option", "unknown", message));
        return None;
    };
    match &offered.fields {
        Some(schema) => {
            let fields = serde_json::Value::Object(fields.clone());
            mistakes.extend(check_value(schema, &fields, "/verdict/fields"));
        }
        None if !fields.is_empty() => {
            mistakes.push(Mistake::new("/verdict/fields", "unknown", "this option has no fields"));
        }
        None => {}
    }
    chosen(offered, comment, mistakes)
}

fn chosen(option: &ReviewOption, comment: Option<&str>, mistakes: &mut Vec<Mistake>) -> Option<NodeVerdict> {
    Some(match option.kind {
        ChoiceKind::Accept => NodeVerdict::Accept(option.clone()),
        ChoiceKind::Stop => NodeVerdict::Stop(option.clone()),
        ChoiceKind::Correct => {
            let message = joined([option.message.as_deref(), comment]);
            if message.is_empty() {
                let text = "say in `comment` what to change: this option has no message of its own";
                mistakes.push(Mistake::new("/comment", "required", text));
                return None;
            }
            NodeVerdict::Correct { option: Some(option.clone()), text: None, message }
        }
    })
}

fn text_said(
    review: &Review,
    text: &str,
    comment: Option<&str>,
    mistakes: &mut Vec<Mistake>,
) -> Option<CheckedVerdict> {
    limit("/verdict/text", Some(text), mistakes);
    if text.trim().is_empty() {
        mistakes.push(Mistake::new("/verdict/text", "required", "the text is empty"));
        return None;
    }
    if !review.actions.is_empty() {
        let reject = |action: &Action| (action.id.clone(), ActionDecision::Reject { message: Some(text.to_owned()) });
        return Some(CheckedVerdict::Actions(review.actions.iter().map(reject).collect(), None));
    }
    if !review.free_text {
        let message = "free text is not allowed here: choose an option";
        mistakes.push(Mistake::new("/verdict/type", "not_offered", message));
        return None;
    }
    Some(CheckedVerdict::Node(if review.answers_in_words() {
        NodeVerdict::Text(text.to_owned())
    } else {
        NodeVerdict::Correct { option: None, text: Some(text.to_owned()), message: joined([Some(text), comment]) }
    }))
}

/// Joins the parts of an answer that are not empty: the message of an option or the text, then the comment.
pub(in crate::engine::ask) fn joined<'a>(parts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let parts = parts.into_iter().flatten().map(str::trim).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}

fn check_actions(review: &Review, decisions: &BTreeMap<String, ActionDecision>, mistakes: &mut Vec<Mistake>) {
    if review.actions.is_empty() {
        let message = match (review.options.is_empty(), review.free_text) {
            (true, _) => "this review has no actions: answer in free text",
            (false, true) => "this review has no actions: choose an option, or answer in free text",
            (false, false) => "this review has no actions: choose an option",
        };
        mistakes.push(Mistake::new("/verdict/type", "not_offered", message));
        return;
    }
    let place = |id: &str| pointer(["verdict", "decisions", id]);
    for id in decisions.keys().filter(|id| review.actions.iter().all(|action| action.id != **id)) {
        mistakes.push(Mistake::new(place(id), "unknown", format!("this review has no action `{id}`")));
    }
    for action in &review.actions {
        let Some(decision) = decisions.get(&action.id) else {
            let message = format!("action `{}` has no answer: answer every action", action.id);
            mistakes.push(Mistake::new(place(&action.id), "required", message));
            continue;
        };
        check_action(review, action, decision, &place(&action.id), mistakes);
    }
}

fn check_action(review: &Review, action: &Action, decision: &ActionDecision, place: &str, mistakes: &mut Vec<Mistake>) {
    if let ActionDecision::Choose { alternative, message } = decision {
        limit(&format!("{place}/message"), message.as_deref(), mistakes);
        if review.choices_for(action).all(|choice| choice.id != *alternative) {
            let known: Vec<_> = review.choices_for(action).map(|choice| format!("`{}`", choice.id)).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            let message = format!("`{alternative}` is not an alternative of action `{}`: {known}", action.id);
            mistakes.push(Mistake::new(format!("{place}/alternative"), "unknown", message));
        }
        return;
    }
    if !action.allowed_decisions.contains(&decision.kind()) {
        let message = format!("this answer is not allowed for action `{}`", action.id);
        mistakes.push(Mistake::new(format!("{place}/type"), "not_allowed", message));
    }
    match decision {
        ActionDecision::Approve { .. } | ActionDecision::Choose { .. } => {}
        ActionDecision::Edit { arguments } => {
            if let Some(schema) = &action.schema {
                let arguments = serde_json::Value::Object(arguments.clone());
                mistakes.extend(check_value(schema, &arguments, &format!("{place}/arguments")));
            }
        }
        ActionDecision::Reject { message } => limit(&format!("{place}/message"), message.as_deref(), mistakes),
        ActionDecision::Respond { message } => limit(&format!("{place}/message"), Some(message), mistakes),
    }
}

/// Checks edits: they are for an accept or an answer, name editable items, and fit their schemas.
fn check_edits(review: &Review, request: &DecisionRequest, said: Option<&CheckedVerdict>, mistakes: &mut Vec<Mistake>) {
    if matches!(
        said,
        Some(
            CheckedVerdict::Node(NodeVerdict::Correct { .. } | NodeVerdict::Stop(_) | NodeVerdict::Refuse)
                | CheckedVerdict::Actions(..)
        )
    ) && !request.edits.is_empty()
    {
        let message = "edits are allowed only with an accept option or an answer";
        mistakes.push(Mistake::new("/edits", "not_allowed", message));
        return;
    }
    for (key, value) in &request.edits {
        let place = pointer(["edits", key]);
        match review.items.iter().find(|item| item.key == *key && item.editable) {
            Some(item) => {
                if let Some(schema) = &item.schema {
                    mistakes.extend(check_value(schema, value, &place));
                }
            }
            None => mistakes.push(Mistake::new(place, "not_editable", format!("`{key}` cannot be edited here"))),
        }
    }
}

fn limit(place: &str, text: Option<&str>, mistakes: &mut Vec<Mistake>) {
    if text.is_some_and(|text| text.len() > MAX_TEXT) {
        mistakes.push(Mistake::new(place, "too_long", format!("longer than {MAX_TEXT} bytes")));
    }
}
