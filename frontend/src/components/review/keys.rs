//! The keyboard shortcuts of the pane.

use leptos::prelude::*;
use shared::definition::Severity;

use super::note_field::NOTE;
use super::pane::Pane;
use crate::components::focus::focus_on;
use crate::components::shortcuts::{is_free, key_of};
use crate::state::verdict::{self, Intent, keys};

/// Handles keys while the pane is shown.
pub fn listen(pane: Pane) {
    let listener = window_event_listener(leptos::ev::keydown, move |event| {
        if !is_free(&event) {
            return;
        }
        let review = pane.review.get_untracked();
        let key = key_of(&event);
        // An open form hides the other options, so their keys do nothing.
        let fills = untrack(move || pane.filled().is_some());
        let acted = match key.as_str() {
            key if fills && (matches!(key, "a" | "r") || keys::place(key).is_some()) => None,
            "a" if !review.actions.is_empty() => {
                let draft = pane.workspace.draft_now(pane.id);
                let (intent, _) = verdict::actions_say(&review, &draft);
                Some(intent)
            }
            "r" if review.is_one_by_one() => None,
            "r" if !review.actions.is_empty() => Some(Intent::RejectAll),
            "e" => {
                pane.edit.notify();
                event.prevent_default();
                None
            }
            "c" => {
                focus_on(NOTE);
                event.prevent_default();
                None
            }
            key => keys::chosen_by(&review, key).map(|option| Intent::Choose(option.id.clone())),
        };
        if let Some(intent) = acted {
            event.prevent_default();
            // In a critical review, a key only focuses the button: the person sees the effect, and presses Enter.
            if review.stakes.severity == Severity::Critical {
                focus_on(format!(".acts [data-key=\"{key}\"]"));
            } else {
                pane.press(&intent);
            }
        }
    });
    on_cleanup(move || listener.remove());
}
