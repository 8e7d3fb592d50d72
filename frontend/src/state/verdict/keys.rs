//! The effects of keyboard shortcuts on a review.

use shared::definition::ChoiceKind;
use shared::review::{Review, ReviewKind, ReviewOption};

use super::Intent;
use crate::state::drafts::Draft;
use crate::state::drafts::chosen::choice;

/// Whether one option is the main one, with the key for yes. The answers to a question or to an escalation are equals,
/// and so are several ways to accept, apart from alternatives to what was asked.
pub fn prefers_one(review: &Review) -> bool {
    match review.kind {
        ReviewKind::Clarification | ReviewKind::Escalation => false,
        // It can also be accepted later.
        ReviewKind::Checkpoint => true,
        _ => {
            let is_yes = |option: &&ReviewOption| option.kind == ChoiceKind::Accept && !option.alternative;
            review.options.iter().filter(is_yes).count() == 1
        }
    }
}

/// The option that a key chooses: `a` the first that accepts, `r` the first that stops, a digit the one at that
/// position.
pub fn chosen_by<'a>(review: &'a Review, key: &str) -> Option<&'a ReviewOption> {
    match key {
        "a" if prefers_one(review) => review.first_accept(),
        "a" => None,
        "r" => review.first_stop(),
        digit => review.options.get(place(digit)?),
    }
}

/// The index, from 0, of the option that a digit from 1 stands for.
pub fn place(key: &str) -> Option<usize> {
    let digit = key.parse::<usize>().ok().filter(|_| key.len() == 1)?;
    digit.checked_sub(1)
}

/// The key shown on an option's button; `None` if it has none.
pub fn of_option(review: &Review, index: usize) -> Option<String> {
    let option = review.options.get(index)?;
    match option.kind {
        ChoiceKind::Accept if prefers_one(review) && review.first_accept() == Some(option) => Some("a".into()),
        ChoiceKind::Stop if review.first_stop() == Some(option) => Some("r".into()),
        _ if index < 9 => Some((index + 1).to_string()),
        _ => None,
    }
}

/// What Ctrl+Enter in the note field sends; `filled` is the option whose form is open. `None` if a choice has to be
/// made first: a note alone decides no call.
pub fn on_enter(review: &Review, draft: &Draft, filled: Option<&str>) -> Option<Intent> {
    if let Some(option) = filled {
        return Some(Intent::Choose(option.to_owned()));
    }
    if review.actions.is_empty() {
        return review.free_text.then_some(Intent::Text);
    }
    review.actions.iter().all(|action| choice(action, draft).is_some()).then_some(Intent::Actions)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::definition::ActionKind;

    use super::*;
    use crate::state::drafts::Chosen;
    use crate::state::fixtures::{calls, review};

    #[test]
    fn a_note_is_never_sent_as_the_answer_to_calls() {
        let review = calls(1, 1);
        let mut draft = Draft { text: "Looks fine to me".into(), revision: 1, ..Draft::default() };
        assert_eq!(on_enter(&review, &draft, None), None);
        draft.actions.entry("a1".into()).or_default().chosen = Some(Chosen::Answer(ActionKind::Approve));
        assert_eq!(on_enter(&review, &draft, None), None, "one is missing");
        draft.actions.entry("a2".into()).or_default().chosen = Some(Chosen::Answer(ActionKind::Reject));
        assert_eq!(on_enter(&review, &draft, None), Some(Intent::Actions));
    }

    #[test]
    fn an_open_form_is_what_is_sent() {
        let review = review(1, 1, json!({}));
        let draft = Draft::default();
        assert_eq!(on_enter(&review, &draft, Some("longer")), Some(Intent::Choose("longer".into())));
        assert_eq!(on_enter(&review, &draft, None), Some(Intent::Text));
        let offered = self::review(2, 1, json!({ "free_text": false }));
        assert_eq!(on_enter(&offered, &draft, None), None, "a choice is due");
    }

    #[test]
    fn a_question_has_no_first_answer() {
        let options = json!([
            { "id": "s", "kind": "accept", "label": "Small" }, { "id": "l", "kind": "accept", "label": "Large" },
        ]);
        let question = review(1, 1, json!({ "kind": "clarification", "options": options }));
        assert_eq!(chosen_by(&question, "a"), None);
        assert_eq!(chosen_by(&question, "1").map(|option| option.id.as_str()), Some("s"));
        let keys = |review: &Review| (0..2).map(|at| of_option(review, at).unwrap()).collect::<Vec<_>>();
        assert_eq!(keys(&question), ["1", "2"]);
        assert_eq!(keys(&review(1, 1, json!({}))), ["a", "2"]);
    }
}
