//! A modal dialog: the browser's own `<dialog>`, which keeps the focus inside and closes on Escape.

use leptos::html;
use leptos::prelude::*;

use super::button::Button;
use super::focus::{focus_within, keep_focus_in_page};
use super::glyph::Glyph;

/// A modal dialog, open while `open` is true. Its children are created at each opening.
#[component]
pub fn Dialog(
    /// Whether it is open; closing it sets this to false.
    open: RwSignal<bool>,
    #[prop(into)] title: Signal<String>,
    /// Whether it must stay open, since the answer to a request will be shown in it.
    #[prop(optional, into)]
    stay: Signal<bool>,
    /// Whether it has no header: its content begins with a field, and closes it.
    #[prop(optional)]
    bare: bool,
    children: ChildrenFn,
) -> impl IntoView {
    let node = NodeRef::<html::Dialog>::new();
    Effect::new(move |_| {
        let Some(dialog) = node.get() else { return };
        match (open.get(), dialog.open()) {
            // Showing fails only for a dialog that has left the page.
            (true, false) => {
                drop(dialog.show_modal());
                focus_within(&dialog, ".in :is(input, select, textarea, button)");
            }
            (false, true) => dialog.close(),
            _ => {}
        }
    });
    // The browser returns the focus to the element that had it before, which may be gone.
    let closed = move |_| {
        // A browser lets a page prevent the closing only once, for example by the gesture for going back on a phone.
        if open.get_untracked() && stay.get_untracked() {
            node.get_untracked().map(|dialog| dialog.show_modal());
            return;
        }
        open.set(false);
        keep_focus_in_page();
    };
    // So each press of the key is prevented, too.
    let keep = move |event: &web_sys::Event| {
        if stay.get_untracked() {
            event.prevent_default();
        }
    };
    let key = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Escape" {
            keep(&event);
        }
    };
    view! {
        <dialog class=if bare { "dialog bare" } else { "dialog" } node_ref=node aria-label=title on:close=closed on:keydown=key on:cancel=move |event: web_sys::Event| keep(&event)>
            {(!bare).then(|| view! {
                <header>
                    <h2>{title}</h2>
                    <Button class="b ghost icon" off=stay label="Close" press=move |()| open.set(false)>
                        <Glyph icon=icondata::LuX />
                    </Button>
                </header>
            })}
            <Show when=move || open.get()>{children()}</Show>
        </dialog>
    }
}
