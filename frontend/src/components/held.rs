//! Held decisions on pages other than their review, so that they can be undone everywhere.

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use shared::id::ReviewId;

use super::inert::inert;
use super::notice::Notifier;
use super::shortcuts::is_free;
use crate::client::Workspace;
use crate::state::inbox::address::review_at;

/// A bar with the newest held decision, unless its own review is open and shows it; and the key `u`, which undoes one.
#[component]
pub fn HeldElsewhere() -> impl IntoView {
    let workspace = Workspace::expect();
    let notifier = Notifier::expect();
    let location = use_location();
    let open = Memo::new(move |_| location.pathname.with(|path| review_at(path)));
    // A decision on the open review is undone first.
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() != "u" || !is_free(&event) {
            return;
        }
        let undo = workspace.outbox.with_untracked(|outbox| {
            let here = open.get_untracked().filter(|id| outbox.held().contains(id));
            here.or_else(|| outbox.newest_held().map(|sending| sending.id))
        });
        if let Some(id) = undo {
            event.prevent_default();
            undo_and_say(workspace, notifier, id);
        }
    });
    on_cleanup(move || keys.remove());
    view! { <HeldBar open /> }
}

/// A bar that offers to undo the newest decision held elsewhere. It takes its space from the scrolling part above it,
/// so it moves and covers nothing; each kind of page has one place for it in the style sheet.
#[component]
pub fn HeldBar(
    /// The review that is open.
    #[prop(into)]
    open: Signal<Option<ReviewId>>,
) -> impl IntoView {
    let workspace = Workspace::expect();
    let notifier = Notifier::expect();
    let elsewhere = Memo::new(move |_| {
        let newest = workspace.outbox.with(|outbox| {
            let held = outbox.newest_held()?;
            Some((held.id, held.title.clone(), held.says.clone()))
        });
        newest.filter(|(id, ..)| Some(*id) != open.get())
    });
    move || {
        elsewhere.get().map(|(id, title, says)| {
            view! {
                <div class="held-bar" role="status">
                    <span class="grow">
                        <span class="cut"><b>{inert(&says)}</b>": "{inert(&title)}</span>
                        <span class="small cut">"Sent soon, or when you leave this tab."</span>
                    </span>
                    <button class="b sm" on:click=move |_| undo_and_say(workspace, notifier, id)>
                        "Undo "
                        <kbd aria-hidden="true">"u"</kbd>
                    </button>
                </div>
            }
        })
    }
}

fn undo_and_say(workspace: Workspace, notifier: Notifier, id: ReviewId) {
    if let Some(says) = workspace.undo(id) {
        notifier.say(says);
    }
}
