//! Notes of guardrails on a call or a value: on the request, on what the person has typed, and after the decision.

use std::collections::BTreeMap;

use shared::decision::{ActionDecision, DecisionRequest, Verdict};
use shared::definition::{ActionKind, Effect};
use shared::guardrail::Checked;
use shared::review::{Action, Review};

use super::drafts::Draft;
use super::drafts::chosen::{choice, edits};

/// The server's last check of the draft, with the request that was checked. It does not apply to a draft that has
/// changed since.
pub type Answered = Option<(DecisionRequest, Checked)>;

/// What a note is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotePlace {
    /// An action, by its id.
    Action(String),
    /// An editable value, by its key.
    Key(String),
}

/// One statement of a guardrail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What the guardrail does or would do.
    pub effect: Effect,
    /// The sentence to show, with the guardrail's name and reason.
    pub text: String,
}

/// What guardrails would do with a call, or with the answer in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leave {
    /// Nothing: no guardrail objects.
    Free,
    /// They warn, and the call goes ahead.
    Warned,
    /// They redact a part of it.
    Redacted,
    Blocked,
    /// They have not checked what the person has changed.
    Unasked,
}

/// What guardrails would do with a call as the draft has it now.
pub fn leave(review: &Review, draft: &Draft, answered: &Answered, action: &Action) -> Leave {
    let request = to_check(review, draft);
    let is_asked = answered.as_ref().is_some_and(|(asked, _)| Some(asked) == request.as_ref());
    if request.is_some_and(|request| is_typed(&request, &NotePlace::Action(action.id.clone()))) && !is_asked {
        return Leave::Unasked;
    }
    let notes = notes(review, draft, answered, &NotePlace::Action(action.id.clone()));
    let leave = |note: &Note| match note.effect {
        Effect::Block => Leave::Blocked,
        Effect::Redact => Leave::Redacted,
        Effect::Warn => Leave::Warned,
    };
    notes.iter().map(leave).max().unwrap_or(Leave::Free)
}

/// The calls that guardrails would block although they would be approved as the draft stands.
pub fn blocked<'a>(review: &'a Review, draft: &Draft, answered: &Answered) -> Vec<&'a Action> {
    let approved =
        |action: &Action| matches!(choice(action, draft), None | Some(ActionKind::Approve | ActionKind::Edit));
    let blocked = |action: &Action| leave(review, draft, answered, action) == Leave::Blocked;
    review.actions.iter().filter(|action| approved(action) && blocked(action)).collect()
}

/// Whether the request to check contains something for this place.
fn is_typed(request: &DecisionRequest, place: &NotePlace) -> bool {
    match (place, &request.verdict) {
        (NotePlace::Action(id), Verdict::Actions { decisions, .. }) => decisions.contains_key(id),
        (NotePlace::Key(key), _) => request.edits.contains_key(key),
        _ => false,
    }
}

/// The part of a draft that guardrails can check: edited arguments, answers and edited values. `None` if there is none,
/// or if the review has a newer revision.
pub fn to_check(review: &Review, draft: &Draft) -> Option<DecisionRequest> {
    let typed = |action: &Action| {
        let own = draft.actions.get(&action.id)?;
        let decision = match choice(action, draft)? {
            ActionKind::Edit => ActionDecision::Edit { arguments: own.arguments.clone()? },
            ActionKind::Respond if own.alternative().is_none() && !own.message.trim().is_empty() => {
                ActionDecision::Respond { message: own.message.trim().to_owned() }
            }
            _ => return None,
        };
        Some((action.id.clone(), decision))
    };
    let decisions: BTreeMap<_, _> = review.actions.iter().filter_map(typed).collect();
    let edits = edits(review, draft);
    if (decisions.is_empty() && edits.is_empty()) || draft.is_behind(review) {
        return None;
    }
    let verdict = match review.first_accept() {
        _ if !review.actions.is_empty() => Verdict::Actions { decisions, instructions: None },
        Some(option) => Verdict::Choose { option: option.id.clone(), fields: shared::JsonMap::new() },
        None => Verdict::Text { text: draft.text.trim().to_owned() },
    };
    let (revision, digest) = (review.revision, review.digest.clone());
    Some(DecisionRequest { revision, digest, verdict, edits, comment: None, metadata: shared::JsonMap::new() })
}

/// What guardrails say about a place: warnings on the request, the check of what was typed there, or vetoes after the
/// decision.
pub fn notes(review: &Review, draft: &Draft, answered: &Answered, place: &NotePlace) -> Vec<Note> {
    let is_here = |action: Option<&String>, key: Option<&String>| match place {
        NotePlace::Action(id) => action == Some(id),
        NotePlace::Key(name) => key == Some(name) && action.is_none(),
    };
    if let Some(resolution) = &review.resolution {
        return over(review, resolution, place, &is_here);
    }
    let request = to_check(review, draft);
    if !request.as_ref().is_some_and(|request| is_typed(request, place)) {
        let warnings = review.warnings.iter().filter(|one| is_here(one.action.as_ref(), one.key.as_ref()));
        return warnings.map(|one| Note { effect: one.effect, text: one.to_string() }).collect();
    }
    let Some((_, checked)) = answered.as_ref().filter(|(asked, _)| Some(asked) == request.as_ref()) else {
        return Vec::new();
    };
    let vetoes = checked.vetoes.iter().filter(|one| is_here(one.action.as_ref(), one.key.as_ref()));
    let vetoes = vetoes
        .map(|one| Note { effect: Effect::Block, text: format!("{} would block this: {}", one.guardrail, one.reason) });
    let others = checked.redactions.iter().filter(|one| is_here(one.action.as_ref(), one.key.as_ref()));
    vetoes.chain(others.map(|one| Note { effect: one.effect, text: one.to_string() })).collect()
}

fn over(
    review: &Review,
    resolution: &shared::review::Resolution,
    place: &NotePlace,
    is_here: &dyn Fn(Option<&String>, Option<&String>) -> bool,
) -> Vec<Note> {
    let vetoes = resolution.vetoes.iter().filter(|one| is_here(one.action.as_ref(), one.key.as_ref()));
    let mut notes: Vec<_> = vetoes.map(|one| Note { effect: Effect::Block, text: one.to_string() }).collect();
    let redacted = |action: &&Action| *place == NotePlace::Action(action.id.clone()) && action.redacted;
    if review.actions.iter().find(redacted).is_some() {
        let text = "A guardrail redacted this before it ran. What was sent is in the run's record.".to_owned();
        notes.push(Note { effect: Effect::Redact, text });
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::fixtures::{calls, review};

    fn at(place: &str) -> NotePlace {
        NotePlace::Action(place.to_owned())
    }

    fn draft(value: serde_json::Value) -> Draft {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_asked_is_warned_of_until_something_else_is_typed() {
        let mut asked = calls(1, 1);
        asked.warnings = serde_json::from_value(json!([
            { "guardrail": "code-safety", "action": "a1", "reason": "it deletes everything", "effect": "block" },
        ]))
        .unwrap();
        let nothing = draft(json!({ "revision": 1 }));
        assert_eq!(to_check(&asked, &nothing), None);
        let said = notes(&asked, &nothing, &None, &at("a1"));
        assert_eq!(said[0].text, "code-safety would block this: it deletes everything");
        assert_eq!(notes(&asked, &nothing, &None, &at("a2")), []);

        let typed =
            draft(json!({ "revision": 1, "actions": { "a1": { "choice": "edit", "arguments": { "path": "/b" } } } }));
        let request = to_check(&asked, &typed).expect("it can be checked");
        assert_eq!(notes(&asked, &typed, &None, &at("a1")), [], "nothing is known of it yet");
        let checked: Checked = serde_json::from_value(json!({
            "vetoes": [],
            "redactions": [{ "guardrail": "pii-redaction", "action": "a1", "reason": "it holds a card number", "effect": "redact" }],
        }))
        .unwrap();
        let answered = Some((request, checked));
        let said = notes(&asked, &typed, &answered, &at("a1"));
        assert_eq!(
            (said[0].effect, said[0].text.as_str()),
            (Effect::Redact, "pii-redaction would redact this: it holds a card number")
        );
        let more =
            draft(json!({ "revision": 1, "actions": { "a1": { "choice": "edit", "arguments": { "path": "/c" } } } }));
        assert_eq!(notes(&asked, &more, &answered, &at("a1")), [], "the answer is to what was typed before");
    }

    #[test]
    fn a_call_runs_only_as_far_as_guardrails_let_it() {
        let mut asked = calls(1, 1);
        asked.warnings = serde_json::from_value(json!([
            { "guardrail": "pii-redaction", "action": "a1", "reason": "a card number", "effect": "redact" },
            { "guardrail": "code-safety", "action": "a1", "reason": "it deletes everything", "effect": "block" },
        ]))
        .unwrap();
        let of = |draft: &Draft, answered: &Answered| {
            let each = asked.actions.iter().map(|action| leave(&asked, draft, answered, action));
            (each.collect::<Vec<_>>(), blocked(&asked, draft, answered).len())
        };
        let nothing = draft(json!({ "revision": 1 }));
        assert_eq!(of(&nothing, &None), (vec![Leave::Blocked, Leave::Free], 1));
        let rejected = draft(json!({ "revision": 1, "actions": { "a1": { "choice": "reject" } } }));
        assert_eq!(of(&rejected, &None).1, 0, "what is rejected is not blocked");
        let edited =
            draft(json!({ "revision": 1, "actions": { "a1": { "choice": "edit", "arguments": { "path": "/b" } } } }));
        assert_eq!(of(&edited, &None), (vec![Leave::Unasked, Leave::Free], 0));
        let answered = Some((to_check(&asked, &edited).unwrap(), Checked::default()));
        assert_eq!(of(&edited, &answered), (vec![Leave::Free, Leave::Free], 0));
    }

    #[test]
    fn an_edit_is_checked_as_it_would_be_sent() {
        let asked = review(1, 1, json!({}));
        let typed = draft(json!({ "revision": 1, "edits": { "draft": "the falcon" } }));
        let request = to_check(&asked, &typed).expect("it can be checked");
        assert_eq!((request.edits["draft"].as_str(), request.revision), (Some("the falcon"), 1));
        let checked = Checked {
            vetoes: serde_json::from_value(
                json!([{ "guardrail": "names", "key": "draft", "reason": "Leave it out." }]),
            )
            .unwrap(),
            redactions: Vec::new(),
        };
        let said = notes(&asked, &typed, &Some((request, checked)), &NotePlace::Key("draft".to_owned()));
        assert_eq!(said, [Note { effect: Effect::Block, text: "names would block this: Leave it out.".to_owned() }]);
        assert_eq!(to_check(&review(1, 1, json!({ "revision": 2 })), &typed), None, "the content has changed");
    }

    #[test]
    fn once_it_is_over_the_record_says_what_was_blocked_or_redacted() {
        let mut over = calls(1, 2);
        over.actions[1].redacted = true;
        over.resolution = serde_json::from_value(json!({
            "status": "resolved", "outcome": "decided", "by": ["tom"], "at": "2026-11-20T10:05:00Z", "via": "human",
            "vetoes": [{ "guardrail": "code-safety", "action": "a1", "reason": "it deletes everything" }],
        }))
        .unwrap();
        let nothing = Draft::default();
        let said = notes(&over, &nothing, &None, &at("a1"));
        assert_eq!((said.len(), said[0].text.as_str()), (1, "code-safety blocked this: it deletes everything"));
        assert_eq!(notes(&over, &nothing, &None, &at("a2"))[0].effect, Effect::Redact);
    }
}
