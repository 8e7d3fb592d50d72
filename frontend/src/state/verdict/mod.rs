//! The decision that a draft amounts to: the request, and the text of its button. A button says exactly what is sent.

pub mod keys;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;
use shared::JsonMap;
use shared::api::MAX_BODY;
use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::definition::{ActionKind, ChoiceKind, Severity};
use shared::error::{Mistake, pointer};
use shared::grant::Remember;
use shared::review::{Action, Item, Review, ReviewKind, ReviewOption};

use crate::state::action_words;
use crate::state::drafts::chosen::{alternative, arguments_place, choice, edits, is_edited, remembers};
use crate::state::drafts::{ActionDraft, Draft};
use crate::state::effects::no_correction;
use crate::state::extent;
use crate::state::option_fields;
use crate::state::schema::{declared, unparsed_numbers};
use crate::state::sentences::sentence;
use crate::state::words::count;

/// What a person is about to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// Chooses the option with this id.
    Choose(String),
    /// Sends the text: a correction if there are options, otherwise the answer.
    Text,
    /// Decides each action as chosen.
    Actions,
    /// Approves all actions, with their edited arguments.
    ApproveAll,
    /// Rejects all actions.
    RejectAll,
}

/// Whether a decision includes the edits.
pub fn sends_edits(review: &Review, intent: &Intent) -> bool {
    match intent {
        Intent::Choose(id) => review.options.iter().any(|option| option.id == *id && option.kind == ChoiceKind::Accept),
        Intent::Text => review.answers_in_words(),
        Intent::Actions | Intent::ApproveAll => true,
        Intent::RejectAll => false,
    }
}

/// Builds the request for `intent`, or lists every reason why it cannot be sent.
pub fn request(review: &Review, draft: &Draft, intent: &Intent) -> Result<DecisionRequest, Vec<Mistake>> {
    let text = Some(draft.text.trim().to_owned()).filter(|text| !text.is_empty());
    let refuse = |path: &str, message: String| Err(vec![Mistake::new(path, "required", message)]);
    if draft.is_behind(review) {
        return refuse("/revision", "The content has changed since you wrote this. Look at the change first.".into());
    }
    let (verdict, comment) = match intent {
        Intent::Choose(id) => {
            let Some(option) = review.options.iter().find(|option| option.id == *id) else {
                return refuse("/verdict/option", "This option is no longer available.".into());
            };
            if option.kind == ChoiceKind::Correct {
                if let Some(reason) = no_correction(review) {
                    return refuse("/verdict", reason);
                }
                if text.is_none() && option.message.as_deref().is_none_or(str::is_empty) {
                    return refuse("/comment", "Say what should change.".into());
                }
            }
            if option.kind == ChoiceKind::Accept {
                let missing = unwritten(review, draft)
                    .map(|item| Mistake::new(pointer(["edits", item.key.as_str()]), "required", UNWRITTEN));
                let missing: Vec<_> = missing.collect();
                if !missing.is_empty() {
                    return Err(missing);
                }
            }
            let fields = option_fields::given(option, draft)?;
            (Verdict::Choose { option: id.clone(), fields }, text)
        }
        Intent::Text => {
            if !review.actions.is_empty() {
                return refuse(
                    "/verdict/decisions",
                    "Choose what happens to each call; a note alone decides nothing.".into(),
                );
            }
            if !review.free_text {
                return refuse(
                    "/verdict/text",
                    "Choose one of the options; an answer in your own words is not accepted here.".into(),
                );
            }
            let Some(text) = text else { return refuse("/verdict/text", "Write the text first.".into()) };
            if !review.answers_in_words()
                && let Some(reason) = no_correction(review)
            {
                return refuse("/verdict", reason);
            }
            (Verdict::Text { text }, None)
        }
        Intent::ApproveAll | Intent::RejectAll if review.is_one_by_one() => {
            return refuse("/verdict/decisions", one_by_one(review));
        }
        Intent::Actions | Intent::ApproveAll | Intent::RejectAll => {
            let decisions = actions(review, draft, intent, text.as_deref())?;
            // If all are rejected, it is the message of each rejection.
            let text = text.filter(|_| *intent != Intent::RejectAll);
            let instructs = review.passes_on_instructions(&decisions);
            let (instructions, comment) = if instructs { (text, None) } else { (None, text) };
            (Verdict::Actions { decisions, instructions }, comment)
        }
    };
    let edits = if sends_edits(review, intent) { edits(review, draft) } else { JsonMap::new() };
    let unparsed = unparsed(review, draft, &edits, sends_edits(review, intent));
    if !unparsed.is_empty() {
        return Err(unparsed);
    }
    let request = DecisionRequest {
        revision: review.revision,
        digest: review.digest.clone(),
        verdict,
        edits,
        comment,
        metadata: draft.metadata.clone(),
    };
    let length = serde_json::to_string(&request).map_or(0, |text| text.len());
    if length > MAX_BODY {
        let (length, most) = (extent::bytes(length), extent::bytes(MAX_BODY));
        return refuse(
            "/edits",
            format!("This decision is {length}, and at most {most} can be sent. Shorten what you changed."),
        );
    }
    Ok(request)
}

/// The place of the metadata in a decision, as a JSON pointer.
pub const METADATA: &str = "/metadata";

/// What was typed in the edits and the metadata and cannot be read.
fn unparsed(review: &Review, draft: &Draft, edits: &JsonMap, with_edits: bool) -> Vec<Mistake> {
    let texts = |place: &str| draft.unparsed.of(place).mistakes(place);
    let items = review.items.iter().filter(|item| with_edits && item.editable).flat_map(|item| {
        let place = pointer(["edits", item.key.as_str()]);
        let edit = edits.get(&item.key);
        let numbers = edit.map(|edit| unparsed_numbers(&declared(item.schema.as_ref(), &item.value), edit, &place));
        texts(&place).into_iter().chain(numbers.into_iter().flatten())
    });
    items.chain(texts(METADATA)).collect()
}

/// The message for a required text that is blank.
pub const UNWRITTEN: &str = "Write the text first.";

/// The required texts that are still blank; until they are written, nothing can be accepted.
pub fn unwritten<'a>(review: &'a Review, draft: &'a Draft) -> impl Iterator<Item = &'a Item> {
    let is_blank = |item: &&Item| {
        let text = draft.edits.get(&item.key).unwrap_or(&item.value).as_str();
        text.is_some_and(|text| text.trim().is_empty())
    };
    review.items.iter().filter(|item| review.kind == ReviewKind::Edit && item.editable).filter(is_blank)
}

/// Whether a mistake concerns this place or something inside it. Places are JSON pointers.
pub fn is_at(mistake: &Mistake, place: &str) -> bool {
    mistake.path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn actions(
    review: &Review,
    draft: &Draft,
    intent: &Intent,
    text: Option<&str>,
) -> Result<BTreeMap<String, ActionDecision>, Vec<Mistake>> {
    let mut decisions = BTreeMap::new();
    let mut mistakes = Vec::new();
    let nothing = ActionDraft::default();
    for action in &review.actions {
        let typed = draft.actions.get(&action.id).unwrap_or(&nothing);
        let path = pointer(["verdict", "decisions", action.id.as_str()]);
        let wanted = match intent {
            Intent::ApproveAll if choice(action, draft) == Some(ActionKind::Edit) => Some(ActionKind::Edit),
            Intent::ApproveAll => Some(ActionKind::Approve),
            Intent::RejectAll => Some(ActionKind::Reject),
            _ => choice(action, draft),
        };
        let Some(wanted) = wanted else {
            mistakes.push(Mistake::new(path, "required", format!("Choose what happens to {}.", action.name)));
            continue;
        };
        if let (ActionKind::Respond, Some(alternative)) = (wanted, typed.alternative()) {
            if review.choices_for(action).any(|choice| choice.id == alternative) {
                let alternative = alternative.to_owned();
                decisions.insert(action.id.clone(), ActionDecision::Choose { alternative, message: None });
            } else {
                mistakes.push(Mistake::new(path, "unknown", "This alternative is no longer available."));
            }
            continue;
        }
        if !action.allowed_decisions.contains(&wanted) {
            mistakes.push(Mistake::new(path, "not_allowed", format!("{} does not allow this.", action.name)));
            continue;
        }
        let message = Some(typed.message.trim().to_owned()).filter(|message| !message.is_empty());
        let decision = match wanted {
            ActionKind::Approve => {
                let remember =
                    remembers(action, draft).map(|scope| Remember { scope, for_ms: None, arguments: Vec::new() });
                ActionDecision::Approve { remember }
            }
            ActionKind::Edit => {
                let arguments = typed.arguments.as_ref().unwrap_or(&action.arguments).clone();
                let place = arguments_place(&action.id);
                mistakes.extend(draft.unparsed.of(&place).mistakes(&place));
                let schema = declared(action.schema.as_ref(), &Value::Object(action.arguments.clone()));
                mistakes.extend(unparsed_numbers(&schema, &Value::Object(arguments.clone()), &place));
                ActionDecision::Edit { arguments }
            }
            ActionKind::Reject => ActionDecision::Reject { message: message.or_else(|| text.map(str::to_owned)) },
            ActionKind::Respond => {
                let Some(message) = message else {
                    let path = format!("{path}/message");
                    mistakes.push(Mistake::new(path, "required", format!("Write the answer for {}.", action.name)));
                    continue;
                };
                ActionDecision::Respond { message }
            }
        };
        decisions.insert(action.id.clone(), decision);
    }
    if mistakes.is_empty() { Ok(decisions) } else { Err(mistakes) }
}

/// The text of an option's button.
pub fn option_says(review: &Review, draft: &Draft, option: &ReviewOption) -> String {
    let written = !draft.text.trim().is_empty();
    match (option.kind, edits(review, draft).len()) {
        (ChoiceKind::Accept, 1) => format!("{}, with your edit", option.label),
        (ChoiceKind::Accept, edits @ 2..) => format!("{}, with your {edits} edits", option.label),
        (ChoiceKind::Correct, _) if written => format!("{}, with your note", option.label),
        _ => option.label.clone(),
    }
}

/// The intent and the text of the button that decides the actions: as they were chosen, or approving all of them if
/// nothing is chosen yet.
pub fn actions_say(review: &Review, draft: &Draft) -> (Intent, String) {
    let all = review.actions.len();
    // An edit without changes counts as an approval.
    let said = |action: &Action| match choice(action, draft)? {
        ActionKind::Edit if !is_edited(action, draft) => Some(ActionKind::Approve),
        kind => Some(kind),
    };
    let chosen: Vec<_> = review.actions.iter().filter_map(said).collect();
    let number = |kind| chosen.iter().filter(|chosen| **chosen == kind).count();
    let one = review.actions.first().map(action_words::name).unwrap_or_default();
    if chosen.is_empty() && !review.is_one_by_one() {
        let says = if all == 1 { format!("Approve {one}") } else { format!("Approve all {all}") };
        return (Intent::ApproveAll, says);
    }
    if chosen.len() < all {
        let rest = all - chosen.len();
        let says =
            if rest == all { format!("Decide {}", count(all, "call", "calls")) } else { format!("Decide {rest} more") };
        return (Intent::Actions, says);
    }
    let later =
        if review.actions.iter().any(|action| remembers(action, draft).is_some()) { ", and later ones" } else { "" };
    if all == 1 {
        let verb = match chosen[0] {
            ActionKind::Approve => format!("Approve {one}{later}"),
            ActionKind::Edit => format!("Approve {one} with your edit"),
            ActionKind::Reject => format!("Reject {one}"),
            ActionKind::Respond => match alternative(review, &review.actions[0], draft) {
                Some(choice) => format!("Choose “{}”", choice.description),
                None => sentence(&action_words::responds(&review.actions[0], false)),
            },
        };
        return (Intent::Actions, verb);
    }
    let parts: Vec<_> = [
        (ActionKind::Approve, "approve", ""),
        (ActionKind::Edit, "approve", " with edits"),
        (ActionKind::Reject, "reject", ""),
        (ActionKind::Respond, "respond to", ""),
    ]
    .into_iter()
    .filter(|(kind, ..)| number(*kind) > 0)
    .map(|(kind, verb, how)| format!("{verb} {}{how}", number(kind)))
    .collect();
    (Intent::Actions, sentence(&parts.join(", ")) + later)
}

/// Why the calls of a review must be decided one by one.
pub fn one_by_one(review: &Review) -> String {
    let stakes = review.actions.iter().filter_map(|action| action.stakes.as_ref());
    let which = match stakes.filter(|stakes| stakes.severity == Severity::Critical).count() {
        1 => "One of these calls is critical.".to_owned(),
        some if some > 0 && some < review.actions.len() => format!("{some} of these calls are critical."),
        _ => "These calls are critical.".to_owned(),
    };
    format!("{which} Open and decide each one separately.")
}

/// The first consequence of what would be approved. Consequences of the whole review count only if no call is rejected,
/// since it is unknown which call they belong to.
pub fn follows(review: &Review, draft: &Draft) -> Option<String> {
    let is_rejected =
        |action: &&Action| matches!(choice(action, draft), Some(ActionKind::Reject | ActionKind::Respond));
    if review.actions.iter().any(|action| action.stakes.is_some()) {
        let mut left = review.actions.iter().filter(|action| !is_rejected(action));
        return left.find_map(|action| action.stakes.as_ref()?.consequences.first().cloned());
    }
    review.stakes.consequences.first().filter(|_| !review.actions.iter().any(|action| is_rejected(&action))).cloned()
}

/// The text of the button for an intent.
pub fn says(review: &Review, draft: &Draft, intent: &Intent) -> String {
    match intent {
        Intent::Choose(id) => review
            .options
            .iter()
            .find(|option| option.id == *id)
            .map_or_else(String::new, |option| option_says(review, draft, option)),
        Intent::Text if review.answers_in_words() => "Send answer".into(),
        Intent::Text => "Send back".into(),
        Intent::RejectAll if review.actions.len() == 1 => format!("Reject {}", action_words::name(&review.actions[0])),
        Intent::RejectAll => "Reject all".into(),
        Intent::Actions | Intent::ApproveAll => actions_say(review, draft).1,
    }
}
