//! Held decisions while another page is shown: they can be undone on every page.

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use shared::id::ReviewId;

use super::inert::inert;
use super::notice::Notifier;
use super::shortcuts::is_free;
use crate::client::Workspace;

/// The newest decision that is held back, unless its own review is open and says so itself.
#[component]
pub fn HeldElsewhere() -> impl IntoView {
    let workspace = Workspace::expect();
    let notifier = Notifier::expect();
    let location = use_location();
    let open = Memo::new(move |_| {
        location.pathname.with(|path| path.strip_prefix("/reviews/").and_then(|id| id.parse::<ReviewId>().ok()))
    });
    let undo = move |id: ReviewId| {
        if workspace.undo(Some(id)).is_some() {
            notifier.say("Undone. Nothing was sent.");
        }
    };
    let newest = move || {
        workspace.outbox.with(|outbox| {
            let held = outbox.newest_held()?;
            Some((held.review.id, held.review.title.clone(), held.says.clone()))
        })
    };
    let elsewhere = Memo::new(move |_| newest().filter(|(id, ..)| Some(*id) != open.get()));
    // What is open goes before what is not.
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() != "u" || !is_free(&event) {
            return;
        }
        let here =
            open.get_untracked().filter(|id| workspace.outbox.with_untracked(|outbox| outbox.held().contains(id)));
        if let Some(id) = here.or_else(|| untrack(newest).map(|(id, ..)| id)) {
            event.prevent_default();
            undo(id);
        }
    });
    on_cleanup(move || keys.remove());
    move || {
        elsewhere.get().map(|(id, title, says)| {
            view! {
                <div class="elsewhere banner accent" role="status">
                    <span class="grow">
                        <span class="cut"><b>{inert(&says)}</b>": "{inert(&title)}</span>
                        <span class="small">"Sent in a moment, or when you leave Countersign."</span>
                    </span>
                    <button class="b sm" on:click=move |_| undo(id)>"Undo "<kbd aria-hidden="true">"u"</kbd></button>
                </div>
            }
        })
    }
}
