//! The keys of the pane.

use leptos::prelude::*;
use shared::definition::{ChoiceKind, Severity};

use super::pane::Pane;
use crate::components::help::is_free;
use crate::components::states::focus_on;
use crate::state::verdict::{self, Intent};

/// Listens to the keys while the pane is shown.
pub fn listen(pane: Pane) {
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if !is_free(&event) {
            return;
        }
        let review = pane.review.get_untracked();
        let key = event.key();
        // A form hides the other options, and so their keys.
        let fills = untrack(move || pane.filled().is_some());
        let acted = match key.as_str() {
            key if fills && (matches!(key, "a" | "r") || nth(key).is_some()) => None,
            "a" if !review.actions.is_empty() => {
                let draft = pane.desk.draft_now(pane.id);
                let (intent, _) = verdict::actions_say(&review, &draft);
                Some(intent)
            }
            "a" => verdict::first_accept(&review).map(|option| Intent::Choose(option.id.clone())),
            "r" if verdict::is_one_by_one(&review) => None,
            "r" if !review.actions.is_empty() => Some(Intent::RejectAll),
            "r" => verdict::first_stop(&review).map(|option| Intent::Choose(option.id.clone())),
            "e" => {
                pane.edit.notify();
                event.prevent_default();
                None
            }
            "c" => {
                pane.write.notify();
                event.prevent_default();
                None
            }
            digit => {
                nth(digit).and_then(|index| review.options.get(index)).map(|option| Intent::Choose(option.id.clone()))
            }
        };
        if let Some(intent) = acted {
            event.prevent_default();
            // On what is critical a key only goes to the button: Enter presses it, with what follows in sight.
            if review.stakes.severity == Severity::Critical {
                focus_on(format!(".acts [data-key=\"{key}\"]"));
            } else {
                pane.press(&intent);
            }
        }
    });
    on_cleanup(move || keys.remove());
}

fn nth(key: &str) -> Option<usize> {
    let digit = key.parse::<usize>().ok().filter(|_| key.len() == 1)?;
    digit.checked_sub(1)
}

/// The key of an option: `a` for the first that accepts, `r` for the first that stops, else its place.
pub fn of_option(review: &shared::review::Review, index: usize) -> Option<String> {
    let option = review.options.get(index)?;
    let first = |kind| review.options.iter().position(|option| option.kind == kind) == Some(index);
    match option.kind {
        ChoiceKind::Accept if first(ChoiceKind::Accept) => Some("a".into()),
        ChoiceKind::Stop if first(ChoiceKind::Stop) => Some("r".into()),
        _ if index < 9 => Some((index + 1).to_string()),
        _ => None,
    }
}
