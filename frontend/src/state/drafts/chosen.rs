//! The content of a review's draft: the choice for each action, and the edited values.

use shared::definition::{ActionKind, AlternativeChoice};
use shared::error::pointer;
use shared::grant::GrantScope;
use shared::review::{Action, Review};

use super::{Chosen, Draft};

/// The choice for an action, if it is allowed. An alternative is a form of `Respond`, accepted by every gate that
/// offers it. An edit form that was opened is no choice until something in it differs, unless an edit is the only way
/// to approve.
pub fn choice(action: &Action, draft: &Draft) -> Option<ActionKind> {
    let own = draft.actions.get(&action.id)?;
    let allows = |kind: ActionKind| action.allowed_decisions.contains(&kind);
    match own.chosen.as_ref()? {
        Chosen::Alternative { .. } => Some(ActionKind::Respond),
        Chosen::Answer(ActionKind::Edit) if allows(ActionKind::Approve) && !is_edited(action, draft) => None,
        Chosen::Answer(kind) => allows(*kind).then_some(*kind),
    }
}

/// The place of the arguments of an action in a decision, as a JSON pointer.
pub fn arguments_place(action: &str) -> String {
    pointer(["verdict", "decisions", action, "arguments"])
}

/// Whether the draft has arguments that differ from the requested ones, or a text of them that cannot be read.
pub fn is_edited(action: &Action, draft: &Draft) -> bool {
    if draft.unparsed.has(&arguments_place(&action.id)) {
        return true;
    }
    let own = draft.actions.get(&action.id).and_then(|own| own.arguments.as_ref());
    own.is_some_and(|arguments| *arguments != action.arguments)
}

pub fn alternative<'a>(review: &'a Review, action: &'a Action, draft: &Draft) -> Option<&'a AlternativeChoice> {
    let id = draft.actions.get(&action.id)?.alternative()?;
    review.choices_for(action).find(|choice| choice.id == id)
}

/// The scope in which later calls of the action's tool are approved too; `None` unless an approval is chosen.
pub fn remembers(action: &Action, draft: &Draft) -> Option<GrantScope> {
    draft.actions.get(&action.id)?.remember.filter(|_| choice(action, draft) == Some(ActionKind::Approve))
}

/// The values of editable items that differ from the current ones.
pub fn edits(review: &Review, draft: &Draft) -> shared::JsonMap {
    let editable = |key: &str| review.items.iter().find(|item| item.editable && item.key == key);
    let edits = draft.edits.iter().filter(|(key, value)| editable(key).is_some_and(|item| item.value != **value));
    edits.map(|(key, value)| (key.clone(), value.clone())).collect()
}
