//! The keys and commands of the pane.

use leptos::prelude::*;
use shared::definition::{ActionKind, Severity};
use shared::review::Review;

use super::acts::{Act, acts};
use super::note_field::NOTE;
use super::pane::Pane;
use crate::components::commands::{Command, Commands};
use crate::components::focus::focus_on;
use crate::components::shortcuts::{is_free, key_of};
use crate::state::palette::Section;
use crate::state::shortcuts::{EDIT, WRITE};
use crate::state::verdict::{self, Intent, keys};

/// Handles keys, and offers the same as commands, while the pane is shown.
pub fn listen(pane: Pane) {
    let commands = expect_context::<Commands>();
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
            key => keys::chosen_by(&review, key).map(|option| Intent::Choose(option.id.clone())),
        };
        if let Some(intent) = acted {
            event.prevent_default();
            choose(pane, &intent, format!("[data-key=\"{key}\"]"));
        }
    });
    on_cleanup(move || listener.remove());
    let may_write = move || pane.is_open().then(|| "Write a note or a correction".to_owned());
    commands.on_key(Section::Review, WRITE, may_write, || focus_on(NOTE));
    let may_edit = move || {
        let is_editable = pane.review.with(|review| {
            let may_edit = |kinds: &[ActionKind]| kinds.contains(&ActionKind::Edit);
            review.items.iter().any(|item| item.editable)
                || review.actions.iter().any(|action| may_edit(&action.allowed_decisions))
        });
        (is_editable && pane.is_open()).then(|| "Edit".to_owned())
    };
    commands.on_key(Section::Review, EDIT, may_edit, move || pane.edit.notify());
    commands.offer(Section::Review, move || decisions(pane));
}

/// The decisions that the bar at the bottom has buttons for, as far as they can be made now.
fn decisions(pane: Pane) -> Vec<Command> {
    if !pane.is_open() || pane.has_changed() {
        return Vec::new();
    }
    let all = acts(pane).into_iter().enumerate().filter(|(_, act)| act.barred.is_none());
    let command = |(at, act): (usize, Act)| {
        let is_only_focused = pane.review.with(|review| is_only_focused(review, &act.intent));
        let then = if is_only_focused { "Goes to the button.".to_owned() } else { act.does };
        let (opens, intent, button) = (act.opens, act.intent, format!("button:nth-of-type({})", at + 1));
        // What the button would do: a filled form is sent, and not opened again.
        let run = move || {
            if is_only_focused {
                focus_on(format!(".acts {button}"));
            } else if opens {
                pane.press(&intent);
            } else {
                pane.decide(&intent);
            }
        };
        Command::new(act.says, run).key(act.key).then(then)
    };
    all.map(command).collect()
}

/// Decides without the button having been pressed, or only focuses the button.
fn choose(pane: Pane, intent: &Intent, button: String) {
    if pane.review.with_untracked(|review| is_only_focused(review, intent)) {
        focus_on(format!(".acts {button}"));
    } else {
        pane.press(intent);
    }
}

/// Whether a key or command only focuses the button, so that the person sees the effect, and presses it: in a critical
/// review, and to approve several calls, of which some may never have been on screen.
fn is_only_focused(review: &Review, intent: &Intent) -> bool {
    let approves_several = *intent == Intent::ApproveAll && review.actions.len() > 1;
    review.stakes.severity == Severity::Critical || approves_several
}
