//! The calls of a review in words: which of several one is, and what was decided about each.

use std::collections::BTreeMap;

use shared::decision::ActionDecision;
use shared::review::{Action, Review};

use super::action_words;
use super::sentences::listed;

/// The place of a call among several of the same name, as `(2, 6)` for the second of six calls. `None` if its name
/// tells it apart.
pub fn place(review: &Review, action: &Action) -> Option<(usize, usize)> {
    let is_same = |other: &&Action| other.name == action.name && other.action_type == action.action_type;
    let own = review.actions.iter().position(|other| other.id == action.id)?;
    (review.actions.iter().filter(is_same).count() > 1).then(|| (own + 1, review.actions.len()))
}

/// The name of a call, with its place if others have the same name: `delete_file, 2 of 6`.
pub fn named(review: &Review, action: &Action) -> String {
    match place(review, action) {
        Some((own, all)) => format!("{}, {own} of {all}", action.name),
        None => action.name.clone(),
    }
}

/// Decisions on calls: `approved publish and rejected delete_file`. Calls of the same name are told apart by their
/// places: `approved delete_file (1 and 4 of 6)`.
pub fn decided(review: &Review, decisions: &BTreeMap<String, ActionDecision>) -> String {
    let mut parts: Vec<(Verb, Vec<Named>)> = Vec::new();
    for action in &review.actions {
        let Some(verb) = decisions.get(&action.id).map(|decision| verb(review, action, decision)) else { continue };
        let at = parts.iter().position(|(known, _)| *known == verb).unwrap_or_else(|| {
            parts.push((verb, Vec::new()));
            parts.len() - 1
        });
        let (name, own) = (action_words::name(action), place(review, action));
        let of = &mut parts[at].1;
        match (of.iter_mut().find(|known| known.name == name), own) {
            (Some(known), Some((own, _))) => known.places.push(own.to_string()),
            _ => of.push(Named { name, places: own.iter().map(|(own, _)| own.to_string()).collect() }),
        }
    }
    let all = review.actions.len();
    let parts: Vec<String> = parts
        .into_iter()
        .map(|((before, after), of)| {
            let of: Vec<String> = of.iter().map(|named| named.says(all)).collect();
            format!("{before} {}{after}", listed(&of))
        })
        .collect();
    joined(&parts)
}

/// The text before and after the names of the calls.
type Verb = (String, &'static str);

struct Named {
    name: String,
    places: Vec<String>,
}

impl Named {
    fn says(&self, all: usize) -> String {
        let Self { name, places } = self;
        if places.is_empty() { name.clone() } else { format!("{name} ({} of {all})", listed(places)) }
    }
}

fn verb(review: &Review, action: &Action, decision: &ActionDecision) -> Verb {
    let plain = |verb: &str| (verb.to_owned(), "");
    match decision {
        ActionDecision::Approve { .. } => plain("approved"),
        ActionDecision::Edit { .. } => ("approved".to_owned(), " with an edit"),
        ActionDecision::Reject { .. } => plain("rejected"),
        ActionDecision::Respond { .. } => {
            // The name is at the end of the phrase, whatever the type of the action.
            let says = action_words::responds(action, true);
            plain(says.strip_suffix(&action_words::name(action)).unwrap_or(&says).trim_end())
        }
        ActionDecision::Choose { alternative, .. } => {
            let choice = review.choices_for(action).find(|choice| choice.id == *alternative);
            let says = choice.map_or(alternative, |choice| &choice.description);
            plain(&format!("chose “{says}” in place of"))
        }
    }
}

/// Parts of a sentence as a list; with a comma before the last one if a part is a list itself.
fn joined(parts: &[String]) -> String {
    match parts {
        [rest @ .., last] if !rest.is_empty() && parts.iter().any(|part| part.contains(" and ")) => {
            format!("{}, and {last}", rest.join(", "))
        }
        parts => listed(parts),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::state::fixtures;

    fn says(names: &[&str], decisions: &[Value]) -> String {
        let mut review = fixtures::calls(1, 2);
        let first = review.actions.remove(0);
        let call = |(at, name): (usize, &&str)| Action { id: format!("a{at}"), name: (*name).into(), ..first.clone() };
        review.actions = names.iter().enumerate().map(call).collect();
        let each = decisions.iter().enumerate().map(|(at, one)| (format!("a{at}"), one.clone()));
        let each = Value::Object(each.collect());
        decided(&review, &serde_json::from_value(each).unwrap())
    }

    #[test]
    fn calls_of_one_name_are_told_apart_by_their_places() {
        let (yes, no) = (json!({ "type": "approve" }), json!({ "type": "reject" }));
        let edit = json!({ "type": "edit", "arguments": {} });
        let answer = json!({ "type": "respond", "message": "Gone already" });
        let delete = "delete_file";
        assert_eq!(
            says(
                &[delete, delete, delete, delete, "write_file", delete],
                &[yes.clone(), no.clone(), answer, yes.clone(), no.clone(), yes.clone()]
            ),
            "approved delete_file (1, 4 and 6 of 6), rejected delete_file (2 of 6) and write_file, \
             and responded without running delete_file (3 of 6)"
        );
        assert_eq!(says(&["publish", delete], &[yes.clone(), no]), "approved publish and rejected delete_file");
        assert_eq!(says(&["a", "b", "c"], &[yes, edit.clone(), edit]), "approved a, and approved b and c with an edit");
    }
}
