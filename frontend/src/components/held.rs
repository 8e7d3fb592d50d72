//! Held decisions on pages other than their review, so that they can be undone everywhere.

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use shared::id::ReviewId;

use super::commands::Commands;
use super::inert::{inert, named};
use super::notice::Notifier;
use super::shortcuts;
use crate::client::{Live, Workspace};
use crate::state::inbox::address::review_at;
use crate::state::palette::Section;
use crate::state::sent;
use crate::state::shortcuts::UNDO;

/// A bar with the newest held decision, unless its own review is open and shows it; and the key `u`, which undoes one.
#[component]
pub fn HeldElsewhere() -> impl IntoView {
    let workspace = expect_context::<Workspace>();
    let notifier = expect_context::<Notifier>();
    let location = use_location();
    let open = Memo::new(move |_| location.pathname.with(|path| review_at(path)));
    // A decision on the open review is undone first.
    let held = move || {
        workspace.outbox.with_untracked(|outbox| {
            let here = open.get_untracked().filter(|id| outbox.held().contains(id));
            let sending = outbox.get(here.or_else(|| outbox.newest_held().map(|sending| sending.id))?)?;
            Some((sending.id, format!("Undo “{}: {}”", sending.says, sending.title)))
        })
    };
    let undo = move || {
        if let Some((id, _)) = held() {
            undo_and_say(workspace, notifier, id);
        }
    };
    expect_context::<Commands>().on_key(Section::Everywhere, UNDO, move || held().map(|(_, says)| says), undo);
    let newest = newest_elsewhere(move || open.get());
    // The bars come and go, so they are not announced themselves.
    let says = move || {
        newest
            .get()
            .map(|held| format!("{}: {}. Sent soon{}", named(&held.says), named(&held.title), shortcuts::undo_hint()))
    };
    view! {
        <span class="sr" role="status">{says}</span>
        <HeldBar open />
    }
}

#[derive(Debug, Clone, PartialEq)]
struct HeldDecision {
    id: ReviewId,
    title: String,
    says: String,
    /// What was written.
    words: Option<String>,
}

/// The newest held decision, unless its review is the open one.
fn newest_elsewhere(open: impl Fn() -> Option<ReviewId> + Send + Sync + 'static) -> Memo<Option<HeldDecision>> {
    let (workspace, live) = (expect_context::<Workspace>(), expect_context::<Live>());
    Memo::new(move |_| {
        let newest = workspace.outbox.with(|outbox| {
            let held = outbox.newest_held()?;
            let words = live.inbox.with_untracked(|inbox| sent::quotes(&inbox.get(held.id)?.review, &held.request));
            Some(HeldDecision { id: held.id, title: held.title.clone(), says: held.says.clone(), words })
        });
        newest.filter(|held| Some(held.id) != open())
    })
}

/// A bar that offers to undo the newest decision held elsewhere. It takes its space from the scrolling part above it,
/// so it moves and covers nothing; each kind of page has one place for it in the style sheet.
#[component]
pub fn HeldBar(#[prop(into)] open: Signal<Option<ReviewId>>) -> impl IntoView {
    let workspace = expect_context::<Workspace>();
    let notifier = expect_context::<Notifier>();
    let elsewhere = newest_elsewhere(move || open.get());
    move || {
        elsewhere.get().map(|HeldDecision { id, title, says, words }| {
            let whole = named(&format!("{says}: {title} {}", words.as_deref().unwrap_or_default()));
            let soon = if words.is_some() { "sent soon" } else { "Sent soon, or when you leave this tab." };
            view! {
                <div class="held-bar">
                    <span class="grow" title=whole>
                        <span class="cut"><b>{inert(&says)}</b>": "{inert(&title)}</span>
                        <span class="small soon">
                            {words.map(|words| view! { <span class="cut">{inert(&words)}</span><span aria-hidden="true">"·"</span> })}
                            <span class="cut">{soon}</span>
                        </span>
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
